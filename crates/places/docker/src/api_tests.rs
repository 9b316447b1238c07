use super::*;

#[test]
fn names_are_made_fit_for_an_address() {
    assert_eq!(encode("debian:12"), "debian:12");
    assert_eq!(encode("r.example/a/b@sha256:1"), "r.example/a/b@sha256:1");
    assert_eq!(encode("a b?c#d%\n"), "a%20b%3Fc%23d%25%0A");
}

#[test]
fn a_refusal_is_read_from_its_field_or_as_it_is() {
    assert_eq!(message(br#"{"message":"no"}"#), "no");
    assert_eq!(message(b"plain"), "plain");
}

#[tokio::test]
async fn a_socket_without_an_engine_is_no_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let api = Api::new(folder.path().join("none.sock"), "docker".to_owned());
    let error = api.version(ANSWER_LIMIT).await.unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::NoDaemon));
    let error = api.get("look", "/info").await.unwrap_err();
    assert_eq!(
        error.trouble(),
        Some(Trouble::Interrupted),
        "it had answered before"
    );
}

#[tokio::test]
async fn an_engine_that_never_answers_is_no_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mute.sock");
    let _listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let api = Api::new(socket, "docker".to_owned());
    let limit = Duration::from_millis(50);
    let error = api.version(limit).await.unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::NoDaemon));
    assert!(error.to_string().contains("nothing came"));
}
