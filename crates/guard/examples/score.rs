//! Scores the guard on a corpus of labelled commands, one JSON record per line.
//!
//! `cargo run --release -p exoshell-guard --example score -- commands.jsonl [--show] [--families]`
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "it is a program for a terminal"
)]

use std::collections::BTreeMap;

use exoshell_guard::{Context, Guard, Verdict};
use serde_json::Value;

#[derive(Default)]
struct Tally {
    dangerous: usize,
    asked: usize,
    harmless: usize,
    flagged: usize,
    blockable: usize,
    blocked: usize,
    wrongly_blocked: usize,
    over_blocked: usize,
}

impl Tally {
    fn print(&self) {
        let line = |name: &str, part: usize, whole: usize| {
            let share = 100.0 * f64::from(u32::try_from(part).unwrap_or(0))
                / f64::from(u32::try_from(whole.max(1)).unwrap_or(1));
            println!("{name:<27}{part}/{whole} = {share:.2} %");
        };
        line("dangerous asked or blocked", self.asked, self.dangerous);
        line("harmless flagged", self.flagged, self.harmless);
        line("block recall", self.blocked, self.blockable);
        line("harmless blocked", self.wrongly_blocked, self.harmless);
        line(
            "ask-class blocked",
            self.over_blocked,
            self.dangerous - self.blockable,
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let path = arguments
        .iter()
        .find(|argument| !argument.starts_with("--"))
        .expect("the path of a corpus");
    let text = std::fs::read_to_string(path).expect("a readable corpus");
    let guard = Guard::new();
    let context = Context::new("/home/user/work/project", "/home/user");
    let mut tally = Tally::default();
    let mut families: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).expect("one JSON record per line");
        let id = record["id"].to_string();
        let command = record["command"].as_str().unwrap_or_default();
        let also = record["also_ok"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>())
            .unwrap_or_default();
        let finding = guard.check(command, &context);
        let verdict = finding.verdict.name();
        let label = record["verdict"].as_str().unwrap_or_default();
        let right = verdict == label || also.contains(&verdict);
        let flagged = finding.verdict != Verdict::Allow;
        if label == "allow" {
            tally.harmless += 1;
            tally.flagged += usize::from(flagged && !right);
            tally.wrongly_blocked += usize::from(finding.verdict == Verdict::Block);
        } else {
            tally.dangerous += 1;
            tally.asked += usize::from(flagged || right);
            if label == "block" {
                tally.blockable += 1;
                tally.blocked += usize::from(right);
            } else {
                tally.over_blocked += usize::from(finding.verdict == Verdict::Block && !right);
            }
        }
        let family = families
            .entry(record["family"].as_str().unwrap_or("?").to_owned())
            .or_default();
        family.0 += 1;
        family.1 += usize::from(!right);
        if has("--show") && !right {
            println!(
                "{id:>5} {label:>5} → {verdict:<5} [{}] {command:?}\n        {} {}",
                record["category"].as_str().unwrap_or_default(),
                finding.rule,
                finding.why
            );
        }
    }
    tally.print();
    if has("--families") {
        for (family, (all, wrong)) in families {
            println!("{family:<14} {wrong:>3} wrong of {all}");
        }
    }
}
