use std::collections::HashSet;

use super::*;
use crate::{Context, Guard};

fn context() -> Context {
    Context::new("/home/ada/work/project", "/home/ada")
}

#[test]
fn every_rule_catches_its_examples() {
    let mut wrong = Vec::new();
    for rule in all() {
        for command in rule.catches {
            let finding = Guard::new().check(command, &context());
            let found = finding.keys.iter().any(|key| key.category == rule.category);
            if !found || finding.verdict < rule.verdict() {
                wrong.push(format!(
                    "{}: {command:?} {} {}",
                    rule.id, finding.verdict, finding.rule
                ));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_rule_spares_the_near_twins() {
    let mut wrong = Vec::new();
    for rule in all() {
        for command in rule.spares {
            let finding = Guard::new().check(command, &context());
            if finding.verdict != Verdict::Allow {
                wrong.push(format!(
                    "{}: {command:?} {} {}",
                    rule.id, finding.rule, finding.why
                ));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn ids_are_unique_and_reasons_are_sentences() {
    let mut ids = HashSet::new();
    for rule in all() {
        assert!(ids.insert(rule.id), "{} is there twice", rule.id);
        assert!(
            rule.why.starts_with(char::is_uppercase) && !rule.why.ends_with('.'),
            "{}",
            rule.why
        );
    }
}

#[test]
fn a_rule_that_only_code_can_show_is_the_exception() {
    let without: Vec<&str> = all()
        .filter(|rule| rule.catches.is_empty())
        .map(|rule| rule.id)
        .collect();
    assert_eq!(
        without,
        [
            "later-command",
            "not-text",
            "too-large",
            "too-intricate",
            "user-deny",
            "user-ask"
        ]
    );
}

#[test]
fn patterns_hold_no_empty_word() {
    for rule in all() {
        for pattern in rule.patterns {
            let empty = pattern.split_whitespace().any(|word| {
                word.split('|')
                    .any(|part| part.trim_matches(['!', '@']).is_empty())
            });
            assert!(!empty, "{}: {pattern}", rule.id);
        }
    }
}
