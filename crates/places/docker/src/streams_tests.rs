use tokio::io::AsyncReadExt as _;

use super::*;

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind, 0, 0, 0];
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

/// Gives one byte at a time.
struct Slow(io::Cursor<Vec<u8>>);

impl AsyncRead for Slow {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut one = [0_u8; 1];
        let mut part = ReadBuf::new(&mut one);
        ready!(Pin::new(&mut self.0).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

fn mixed() -> Vec<u8> {
    let big = vec![b'x'; 10_000];
    [
        frame(1, b"one "),
        frame(2, b"bad "),
        frame(1, b""),
        frame(2, &big),
        frame(1, b"two"),
    ]
    .concat()
}

async fn both(reader: impl AsyncRead + Unpin) -> (io::Result<Vec<u8>>, Vec<u8>) {
    let (mut stderr, errors) = tokio::io::duplex(64);
    let mut demultiplexer = Demultiplexer::new(reader, errors);
    let read = async {
        let mut stdout = Vec::new();
        demultiplexer
            .read_to_end(&mut stdout)
            .await
            .map(|_length| stdout)
    };
    let mut complaint = Vec::new();
    let (stdout, _) = tokio::join!(read, stderr.read_to_end(&mut complaint));
    (stdout, complaint)
}

#[tokio::test]
async fn stdout_and_stderr_are_taken_apart_however_they_arrive() {
    let expected = [b"bad ".to_vec(), vec![b'x'; 10_000]].concat();
    let (stdout, stderr) = both(io::Cursor::new(mixed())).await;
    assert_eq!(stdout.unwrap(), b"one two");
    assert_eq!(stderr, expected);
    let (stdout, stderr) = both(Slow(io::Cursor::new(mixed()))).await;
    assert_eq!(stdout.unwrap(), b"one two");
    assert_eq!(stderr, expected);
}

#[tokio::test]
async fn a_stream_cut_in_a_frame_is_an_error() {
    let whole = frame(1, b"hello");
    for length in 1..whole.len() {
        let (stdout, _) = both(io::Cursor::new(whole[..length].to_vec())).await;
        let error = stdout.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
    }
}

#[tokio::test]
async fn stderr_that_nobody_reads_is_no_obstacle() {
    let (stderr, errors) = tokio::io::duplex(64);
    drop(stderr);
    let mut stdout = Vec::new();
    let mut demultiplexer = Demultiplexer::new(io::Cursor::new(mixed()), errors);
    demultiplexer.read_to_end(&mut stdout).await.unwrap();
    assert_eq!(stdout, b"one two");
}
