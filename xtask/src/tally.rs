//! Counting the conformance tests per place, from what cargo and the tests print.

use std::collections::BTreeMap;
use std::fmt;

use crate::Result;

/// Where the suite is, as cargo names it.
const SUITE: &str = "tests/places/main.rs";

/// What cargo writes before each binary's tests.
const HEADINGS: [&str; 2] = ["Running ", "Doc-tests "];

/// How many tests each place passed and left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    in_suite: bool,
    places: BTreeMap<String, Count>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: usize,
    ignored: usize,
}

impl Tally {
    /// Takes in a line.
    pub(crate) fn see(&mut self, line: &str) {
        let plain = without_colors(line);
        let plain = plain.trim();
        if HEADINGS.iter().any(|heading| plain.starts_with(heading)) {
            self.in_suite = plain.contains(SUITE);
        } else if self.in_suite
            && let Some((name, outcome)) = plain
                .strip_prefix("test ")
                .and_then(|rest| rest.split_once(" ... "))
            && let Some((place, _)) = name.split_once("::")
        {
            let count = self.places.entry(place.to_owned()).or_default();
            match outcome.split([',', ' ']).next() {
                Some("ok") => count.passed += 1,
                Some("ignored") => count.ignored += 1,
                _ => {}
            }
        }
    }

    /// Fails when tests were left out.
    pub(crate) fn check(&self) -> Result<()> {
        let left_out: Vec<&str> = self
            .places
            .iter()
            .filter(|(_, count)| count.ignored > 0)
            .map(|(place, _)| place.as_str())
            .collect();
        if left_out.is_empty() {
            Ok(())
        } else {
            Err(format!("conformance tests are ignored on: {}", left_out.join(", ")).into())
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "== conformance tests per place")?;
        for (place, Count { passed, ignored }) in &self.places {
            write!(
                formatter,
                "\n  {place:<12} {passed:>4} passed, {ignored} ignored"
            )?;
        }
        Ok(())
    }
}

/// Removes the sequences that colour a line.
fn without_colors(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(text: &str) -> Tally {
        let mut tally = Tally::default();
        text.lines().for_each(|line| tally.see(line));
        tally
    }

    #[test]
    fn only_the_tests_of_the_suite_count() {
        let tally = tally(
            "     Running tests/cli/main.rs (target/debug/deps/cli-1)\n\
             test state::a ... ok\n\
             \x1b[1m\x1b[32m     Running\x1b[0m tests/places/main.rs (target/debug/deps/places-1)\n\
             running 4 tests\n\
             test docker::a ... ok\n\
             test docker::b ... \x1b[32mok\x1b[0m\n\
             test local::a has been running for over 60 seconds\n\
             test local::a ... ok\n\
             test local::b ... FAILED\n\
             test result: FAILED. 3 passed; 1 failed\n\
             \x20  Doc-tests exoshell_wire\n\
             test crates/wire/src/lib.rs - (line 1) ... ok\n",
        );
        assert_eq!(
            tally.to_string(),
            "== conformance tests per place\n\
             \x20 docker          2 passed, 0 ignored\n\
             \x20 local           1 passed, 0 ignored"
        );
        assert!(tally.check().is_ok());
    }

    #[test]
    fn an_ignored_test_is_a_failure() {
        let tally = tally(
            "Running tests/places/main.rs (x)\ntest ssh::a ... ignored, no sshd\ntest ssh::b ... ok\n",
        );
        assert_eq!(
            tally.check().unwrap_err().to_string(),
            "conformance tests are ignored on: ssh"
        );
    }
}
