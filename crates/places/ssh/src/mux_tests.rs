use std::os::unix::net::UnixListener;

use tokio::io::AsyncWriteExt as _;

use super::*;

#[tokio::test]
async fn a_socket_without_a_process_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    assert_eq!(sign_of_life(&path).await, Sign::Dead);
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(sign_of_life(&path).await, Sign::Dead);
}

#[tokio::test]
async fn a_process_that_does_not_answer_is_stuck() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    assert_eq!(sign_of_life(&path).await, Sign::Stuck);
}

#[tokio::test]
async fn nonsense_is_no_sign_of_life_and_costs_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&[0xff; 64]).await.unwrap();
        stream
    };
    let (_stream, sign) = tokio::join!(serving, sign_of_life(&path));
    assert_eq!(sign, Sign::Stuck);
}
