//! Requests about files.
//!
//! Disks can be slow and hashing takes time, so all of it happens on threads of its own: pings
//! and commands never wait for it. What is under way is bounded by short queues.

mod root;

use std::io::Read as _;
use std::ops::ControlFlow;

use bytes::Bytes;
use exoshell_files::{
    Content, Entry, EntryKind, FilesError, Hasher, Limits, RelPath, Root, RootKind,
};
use exoshell_mux::{Channel, ChannelSender, Item};
use exoshell_wire::{
    Failure, FailureKind, FileEntry, FileKind, FileRemoved, FileRoot, FileSent, FilesScanned,
    GetFile, MAX_DATA, PutFile, RawBytes, RemoveFile, Reply, Request, ScanFiles, stream,
};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::connection::answer;

/// How many pieces may wait between the pipe and the disk.
const QUEUE: usize = 8;

/// How many requests are worked on at once.
static THREADS: Semaphore = Semaphore::const_new(32);

/// The stack of a thread: a scan goes down 64 folders.
const STACK: usize = 512 * 1024;

/// Answers a request about files.
pub(crate) async fn serve(channel: Channel, request: Request) {
    match request {
        Request::ScanFiles(request) => {
            stream_out(channel, move |pieces| scan(&request, pieces)).await;
        }
        Request::GetFile(request) => {
            stream_out(channel, move |pieces| get(&request, pieces)).await;
        }
        Request::PutFile(request) => put_file(channel, request).await,
        Request::RemoveFile(request) => {
            let removed = on_thread(move || remove(&request)).await;
            answer(channel, &Reply::from(removed));
        }
        _ => {}
    }
}

type Pieces = mpsc::Sender<Bytes>;

/// Runs something on a thread that makes data for stream 1, and sends its result as the reply. A
/// host that loses interest makes the thread stop at its next piece.
async fn stream_out<T, W>(channel: Channel, work: W)
where
    T: Serialize + Send + 'static,
    W: FnOnce(&Pieces) -> Result<T, Failure> + Send + 'static,
{
    let (pieces, made) = mpsc::channel(QUEUE);
    let sender = channel.sender();
    let sent = tokio::select! {
        (done, sent) = async {
            tokio::join!(on_thread(move || work(&pieces)), send_pieces(&sender, made))
        } => sent.then_some(done),
        _ = sender.cancelled() => None,
    };
    if let Some(done) = sent {
        answer(channel, &Reply::from(done));
    }
}

async fn send_pieces(sender: &ChannelSender, mut made: mpsc::Receiver<Bytes>) -> bool {
    while let Some(piece) = made.recv().await {
        if sender.send(stream::STDOUT, piece).await.is_err() {
            return false;
        }
    }
    true
}

/// Runs something on a thread of its own.
///
/// Not on the runtime's: those end the whole guest where the place has no thread left, and a
/// command there can bring that about.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let no_thread = |why: String| {
        let message = format!("no thread can be started in the place: {why}");
        Failure::new(FailureKind::NotPossible, message)
    };
    let turn = THREADS.acquire().await;
    let (done, result) = oneshot::channel();
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            // Whoever asked may have lost interest.
            let _ = done.send(work());
        })
        .map_err(|error| no_thread(error.to_string()))?;
    let result = result.await.map_err(|error| no_thread(error.to_string()))?;
    drop(turn);
    result
}

/// Collects lines into pieces of a frame's size.
struct Lines<'a> {
    pieces: &'a Pieces,
    buffer: Vec<u8>,
    entries: u64,
}

impl Lines<'_> {
    fn push(&mut self, entry: Entry) -> ControlFlow<()> {
        self.entries += 1;
        if serde_json::to_writer(&mut self.buffer, &described(entry)).is_err() {
            return ControlFlow::Break(());
        }
        self.buffer.push(b'\n');
        if self.buffer.len() < MAX_DATA / 2 {
            return ControlFlow::Continue(());
        }
        self.flush()
    }

    fn flush(&mut self) -> ControlFlow<()> {
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        match self.pieces.blocking_send(piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_nobody_listens) => ControlFlow::Break(()),
        }
    }
}

fn described(entry: Entry) -> FileEntry {
    let content = entry.content();
    let (kind, why) = match entry.kind {
        EntryKind::File(_) => (FileKind::File, None),
        EntryKind::Folder => (FileKind::Folder, None),
        EntryKind::Link => (FileKind::Link, None),
        EntryKind::Skipped(why) => (FileKind::Skipped, Some(why)),
    };
    FileEntry {
        path: RawBytes(entry.path.as_bytes().to_vec()),
        kind,
        mode: entry.mode,
        mtime_ns: entry.mtime_ns,
        size: content.map(|content| content.size),
        sha256: content.map(|content| content.digest.to_string()),
        why,
    }
}

fn scan(request: &ScanFiles, pieces: &Pieces) -> Result<FilesScanned, Failure> {
    let root = match Root::open(&root::locate(&request.root)?) {
        Err(FilesError::Missing { .. }) => {
            return Ok(FilesScanned {
                root: FileRoot::Missing,
                entries: 0,
            });
        }
        root => root.map_err(failure)?,
    };
    let limits = Limits {
        entries: usize::try_from(request.max_entries).unwrap_or(usize::MAX),
        file_bytes: request.max_file_bytes,
        ..Limits::default()
    };
    let mut lines = Lines {
        pieces,
        buffer: Vec::new(),
        entries: 0,
    };
    match &request.paths {
        None => root
            .scan(&limits, &mut |entry| lines.push(entry))
            .map_err(failure)?,
        Some(paths) => look_at(&root, paths, &limits, &mut lines)?,
    }
    let _ = lines.flush();
    Ok(FilesScanned {
        root: match root.kind() {
            RootKind::Folder => FileRoot::Folder,
            RootKind::File => FileRoot::File,
        },
        entries: lines.entries,
    })
}

/// Looks at single paths. One that cannot be looked at is an entry that was skipped.
fn look_at(
    root: &Root,
    paths: &[RawBytes],
    limits: &Limits,
    lines: &mut Lines<'_>,
) -> Result<(), Failure> {
    for path in paths {
        let path = checked(path)?;
        let entry = match root.look(&path, limits) {
            Ok(None) => continue,
            Ok(Some(entry)) => entry,
            Err(error) => Entry {
                path,
                kind: EntryKind::Skipped(error.to_string()),
                mode: 0,
                mtime_ns: 0,
            },
        };
        if lines.push(entry).is_break() {
            break;
        }
    }
    Ok(())
}

fn get(request: &GetFile, pieces: &Pieces) -> Result<FileSent, Failure> {
    let path = checked(&request.path)?;
    let root = Root::open(&root::locate(&request.root)?).map_err(failure)?;
    let mut file = root.open_file(&path).map_err(failure)?;
    let mut hasher = Hasher::default();
    loop {
        let mut piece = vec![0_u8; MAX_DATA];
        let length = file.read(&mut piece).map_err(|error| {
            Failure::new(
                FailureKind::NotAllowed,
                format!("`{}` cannot be read: {error}", root.describe(&path)),
            )
        })?;
        piece.truncate(length);
        hasher.update(&piece);
        if hasher.size() > request.max_bytes {
            return Err(Failure::new(
                FailureKind::TooMuch,
                format!(
                    "`{}` is larger than {} bytes",
                    root.describe(&path),
                    request.max_bytes
                ),
            ));
        }
        if piece.is_empty() || pieces.blocking_send(Bytes::from(piece)).is_err() {
            break;
        }
    }
    let content = hasher.finish();
    Ok(FileSent {
        size: content.size,
        sha256: content.digest.to_string(),
    })
}

/// What a thread that writes a file is told. A queue that ends without an end is a host that is
/// gone, and what came so far is thrown away.
enum Incoming {
    Bytes(Bytes),
    End,
}

async fn put_file(mut channel: Channel, request: PutFile) {
    let (pieces, incoming) = mpsc::channel(QUEUE);
    let sender = channel.sender();
    let passing = async {
        let received = tokio::select! {
            received = receive(&mut channel, &pieces) => received,
            _ = sender.cancelled() => false,
        };
        drop(pieces);
        received
    };
    let (result, received) = tokio::join!(on_thread(move || put(&request, incoming)), passing);
    // Without the whole file, only a failure of the disk is worth an answer.
    if received || result.is_err() {
        answer(channel, &Reply::from(result));
    }
}

/// Passes the file on. Returns whether all of it came, or nobody wants the rest.
async fn receive(channel: &mut Channel, pieces: &mpsc::Sender<Incoming>) -> bool {
    loop {
        match channel.receive().await {
            Ok(Item::Data { bytes, last, .. }) => {
                if pieces.send(Incoming::Bytes(bytes)).await.is_err() {
                    return true;
                }
                if last {
                    return pieces.send(Incoming::End).await.is_ok() || pieces.is_closed();
                }
            }
            Ok(Item::Event(_)) => {}
            Ok(Item::Cancel | Item::Reply(_) | Item::Reset) | Err(_) => return false,
        }
    }
}

fn put(request: &PutFile, mut incoming: mpsc::Receiver<Incoming>) -> Result<(), Failure> {
    let path = checked(&request.path)?;
    let digest = request
        .sha256
        .parse()
        .map_err(|error| Failure::new(FailureKind::BadRequest, format!("{error}")))?;
    let expected = Content {
        size: request.size,
        digest,
    };
    let kind = if path.is_root() {
        RootKind::File
    } else {
        RootKind::Folder
    };
    let root = Root::create(&root::locate(&request.root)?, kind).map_err(failure)?;
    let mut draft = root.draft(&path, request.mode).map_err(failure)?;
    loop {
        match incoming.blocking_recv() {
            Some(Incoming::Bytes(bytes)) => draft.write(&bytes).map_err(failure)?,
            Some(Incoming::End) => break,
            None => return Ok(()),
        }
        if draft.size() > request.size {
            break;
        }
    }
    draft.commit(Some(expected)).map_err(failure)?;
    Ok(())
}

fn remove(request: &RemoveFile) -> Result<FileRemoved, Failure> {
    let path = checked(&request.path)?;
    let root = match Root::open(&root::locate(&request.root)?) {
        Err(FilesError::Missing { .. }) => return Ok(FileRemoved { existed: false }),
        root => root.map_err(failure)?,
    };
    let existed = root.remove(&path).map_err(failure)?;
    Ok(FileRemoved { existed })
}

fn checked(path: &RawBytes) -> Result<RelPath, Failure> {
    RelPath::new(path.0.clone()).map_err(failure)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands behind every `map_err`"
)]
fn failure(error: FilesError) -> Failure {
    let kind = match &error {
        FilesError::BadPath { .. } => FailureKind::BadRequest,
        FilesError::Missing { .. } => FailureKind::NoFile,
        FilesError::Link { .. } => FailureKind::Link,
        FilesError::NotAFolder { .. } => FailureKind::NotAFolder,
        FilesError::NotAFile { .. } => FailureKind::NotAFile,
        FilesError::NoSpace { .. } => FailureKind::DiskFull,
        FilesError::Denied { .. } => FailureKind::NotAllowed,
        FilesError::TooMany { .. } => FailureKind::TooMuch,
        FilesError::Damaged { .. } => FailureKind::Damaged,
        _ => FailureKind::NotPossible,
    };
    Failure::new(kind, error.to_string())
}
