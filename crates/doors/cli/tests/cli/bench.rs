//! The bench where a place cannot be measured.

use crate::support::World;

#[test]
fn an_engine_that_does_not_answer_is_left_out_and_is_no_failure() {
    let world = World::new().with_variable("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    let ran = world.exoshell(["bench", "--quick", "--json", "--only", "docker, "]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    let lines: Vec<String> = ran.talk().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("the rows of docker are left out"),
        "{lines:?}"
    );
    let report: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
    assert_eq!(report["rows"], serde_json::json!([]));
    assert_eq!(report["left_out"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_host_out_of_reach_is_left_out_and_is_no_failure() {
    let world = World::new();
    let ran = world.exoshell([
        "bench",
        "--quick",
        "--only",
        "ssh",
        "--host",
        "me@127.0.0.1:1",
    ]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    assert!(
        ran.talk().contains("the rows of ssh are left out"),
        "{}",
        ran.talk()
    );
}

#[test]
fn a_name_that_no_row_has_is_misuse() {
    let ran = World::new().exoshell(["bench", "--quick", "--only", "nonesuch"]);
    assert_eq!(ran.code(), 2, "{}", ran.talk());
}
