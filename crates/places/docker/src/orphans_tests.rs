use super::*;

const NOW: i64 = 1_000_000;
const LIFETIME: Duration = Duration::from_secs(300);

fn container(state: &str, finished: Option<i64>, labels: &[(&str, &str)]) -> Container {
    Container {
        id: "1".to_owned(),
        name: "exoshell-t-1".to_owned(),
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
    let name = ("exoshell.name", "exoshell-t-1");
    let ours = [("exoshell", "1"), ("exoshell.profile", "me"), name];
    let other = [("exoshell", "1"), ("exoshell.profile", "you"), name];
    let foreign = [("exoshell.profile", "me"), name];
    let nameless = [("exoshell", "1"), ("exoshell.profile", "me")];
    let committed = [
        ("exoshell", "1"),
        ("exoshell.profile", "me"),
        ("exoshell.name", "exoshell-t-2"),
    ];
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
        (
            "of an image committed from one of ours",
            container("exited", long_ago, &committed),
            false,
        ),
        (
            "without a word about its name",
            container("exited", long_ago, &nameless),
            false,
        ),
        (
            "nobody knows its name",
            Container {
                name: String::new(),
                ..container(
                    "exited",
                    long_ago,
                    &[ours[0], ours[1], ("exoshell.name", "")],
                )
            },
            false,
        ),
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
