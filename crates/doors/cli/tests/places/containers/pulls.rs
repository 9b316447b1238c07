//! Images that are not there yet, from a real registry.

use std::process::Command;

use exoshell_testkit::{Engine, image, wanted};

use crate::site::Kind;
use crate::support::{EXOSHELL, Program, quoted};

/// An image of a test, removed at its end.
struct Pulled<'a>(&'a Engine, String);

impl Drop for Pulled<'_> {
    fn drop(&mut self) {
        let mut remove = self.0.command();
        let _ = remove.args(["image", "rm", "--force", &self.1]).output();
    }
}

pub(super) fn a_pull_tells_how_far_it_is(kind: Kind) {
    let site = kind.site();
    let name = format!("{}/{}", wanted("REGISTRY"), image::LAYERS);
    let pulled = Pulled(site.engine(), name.clone());
    drop(Pulled(site.engine(), name.clone()));
    // Progress is for terminals.
    let line = format!("{} run --image {name} true", quoted(EXOSHELL));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    site.dress(&mut command);
    let ran = Program::start(command, b"").finish();
    let text = ran.text();
    let steps: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("exoshell: pulling "))
        .collect();
    assert!(steps.len() >= 2, "no steps: {text}");
    assert!(steps.iter().all(|step| step.starts_with(&name)), "{text}");
    assert!(steps.iter().any(|step| step.contains("6 layers")), "{text}");
    if kind == Kind::Docker {
        let partly = (1..6).any(|count| text.contains(&format!("({count} of 6 layers)")));
        assert!(partly, "all at once: {text}");
    }
    // The image has no shell at all, which is said, and is no mystery.
    assert_eq!(ran.code(), 125, "{text}");
    assert!(text.contains("shell"), "{text}");
    // An image in use could not be removed wholly.
    let removed = site.exoshell(["places", "rm", "--all"]);
    assert_eq!(removed.code(), 0, "{}", removed.talk());
    drop(pulled);
}
