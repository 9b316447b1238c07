use super::*;
use crate::finding::Span;

fn words(text: &str) -> Vec<Argument> {
    text.split(' ')
        .map(|text| Argument {
            text: text.to_owned(),
            span: Span::default(),
        })
        .collect()
}

fn rules() -> UserRules {
    UserRules {
        commands: vec![
            CommandRule::new("git", Action::Allow),
            CommandRule::new("git push", Action::Deny),
            CommandRule::new("npm * x", Action::Ask),
        ],
        paths: vec![
            PathRule {
                path: "/srv".to_owned(),
                action: Action::Allow,
            },
            PathRule {
                path: "/srv/data/".to_owned(),
                action: Action::Deny,
            },
        ],
    }
}

#[test]
fn the_strictest_rule_holds() {
    assert!(rules().command(&words("git status")).allows());
    assert_eq!(
        rules().command(&words("git push origin")).report(),
        Some("user-deny")
    );
    assert_eq!(
        rules().command(&words("npm add x")).report(),
        Some("user-ask")
    );
    assert_eq!(rules().command(&words("npm add y")).report(), None);
}

#[test]
fn a_path_does_not_borrow_the_allowance_of_a_name() {
    assert!(!rules().command(&words("./git status")).allows());
    assert_eq!(
        rules().command(&words("/usr/bin/git push")).report(),
        Some("user-deny")
    );
}

#[test]
fn paths_are_matched_by_whole_parts() {
    assert!(rules().path("/srv/x", false).allows());
    assert_eq!(
        rules().path("/srv/data/x", false).report(),
        Some("user-deny")
    );
    assert_eq!(rules().path("/srv/data", false).report(), Some("user-deny"));
    assert_eq!(rules().path("/srv2", false), Opinion(None));
    assert_eq!(rules().path("/", false), Opinion(None));
    assert_eq!(rules().path("/", true).report(), Some("user-deny"));
}
