use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

#[tokio::test]
async fn shutting_down_stdin_is_its_end() {
    let mut launched = Launched::program(&["cat".to_owned()]).unwrap();
    launched.stdin.write_all(b"all of it").await.unwrap();
    launched.stdin.shutdown().await.unwrap();
    let mut output = String::new();
    launched.stdout.read_to_string(&mut output).await.unwrap();
    assert_eq!(output, "all of it");
    assert!(launched.stdin.write_all(b"more").await.is_err());
}
