use super::*;

const NOW: i64 = 1_000_000;
const LIFETIME: Duration = Duration::from_secs(300);

fn container(state: &str, finished: Option<i64>, labels: &[(&str, &str)]) -> Container {
    Container {
        id: "1".to_owned(),
        state: state.to_owned(),
        finished,
        labels: labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..Container::default()
    }
}

#[test]
fn only_old_ended_containers_of_this_profile_are_orphans() {
    let ours = [("exoshell", "1"), ("exoshell.profile", "me")];
    let other = [("exoshell", "1"), ("exoshell.profile", "you")];
    let foreign = [("exoshell.profile", "me")];
    let long_ago = Some(NOW - 601);
    let cases = [
        ("old and exited", container("exited", long_ago, &ours), true),
        (
            "exactly at the limit",
            container("exited", Some(NOW - 600), &ours),
            false,
        ),
        ("young", container("exited", Some(NOW - 10), &ours), false),
        ("running", container("running", long_ago, &ours), false),
        ("paused", container("paused", long_ago, &ours), false),
        (
            "restarting",
            container("restarting", long_ago, &ours),
            false,
        ),
        ("never started", container("created", None, &ours), false),
        (
            "never started, odd time",
            container("created", long_ago, &ours),
            false,
        ),
        ("unknown age", container("exited", None, &ours), false),
        (
            "another profile",
            container("exited", long_ago, &other),
            false,
        ),
        ("foreign", container("exited", long_ago, &foreign), false),
        ("no labels", container("exited", long_ago, &[]), false),
        (
            "ended in the future",
            container("exited", Some(NOW + 9999), &ours),
            false,
        ),
    ];
    for (name, container, expected) in cases {
        assert_eq!(
            is_orphan(&container, NOW, LIFETIME, "me"),
            expected,
            "{name}"
        );
    }
    let eternal = container("exited", long_ago, &ours);
    assert!(!is_orphan(&eternal, NOW, Duration::ZERO, "me"));
}
