//! One host's pipe: hello, then requests, each in a task of its own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use exoshell_mux::{Channel, Connection, Options, Role};
use exoshell_wire::{
    EndSession, Failure, FailureKind, Frame, FrameDecoder, HostHello, Kind, OpenSession, Reply,
    Request, SessionOpened, Wait,
};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::exec;
use crate::files;
use crate::guest::Guest;
use crate::process::serve as process;
use crate::session;
use crate::sudo;

/// How long a host may take to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// How long TERM may take when the guest is told to stop.
const SHUTDOWN_GRACE_MS: u64 = 1000;

/// Serves one host until its pipe ends.
pub(crate) async fn serve(guest: Arc<Guest>, mut socket: UnixStream) {
    let _connected = guest.connect();
    let hello = tokio::time::timeout(HELLO_LIMIT, exchange_hellos(&guest, &mut socket)).await;
    let Ok(Ok((host, early))) = hello else {
        return;
    };
    let options = Options {
        // As often as the host does, so that both notice a dead pipe.
        heartbeat: host.heartbeat_ms.and_then(|ms| {
            let period = Duration::from_millis(ms);
            (!period.is_zero()).then_some(period)
        }),
    };
    let (reader, writer) = socket.into_split();
    let (connection, mut incoming) =
        Connection::start(reader, writer, Role::Guest, options, &early);
    while let Some((channel, body)) = incoming.accept().await {
        tokio::spawn(handle(Arc::clone(&guest), channel, body.to_vec()));
    }
    drop(connection);
}

/// Reads the host's hello and answers it. Returns it and what was read behind it.
async fn exchange_hellos(
    guest: &Guest,
    socket: &mut UnixStream,
) -> io::Result<(HostHello, Vec<u8>)> {
    let mut decoder = FrameDecoder::default();
    let frame = loop {
        if let Some(frame) = decoder.next_frame().map_err(io::Error::other)? {
            break frame;
        }
        if socket.read_buf(decoder.buffer()).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    if frame.kind != Kind::Hello {
        return Err(io::Error::other("the first frame is no hello"));
    }
    let host: HostHello = serde_json::from_slice(&frame.body)?;
    let answer = guest.hello(&host);
    let refused = answer.refusal.is_some();
    let body = serde_json::to_vec(&answer)?;
    let frame = Frame::new(Kind::Hello, 0, 0, body);
    socket.write_all(&frame.encode()).await?;
    if refused {
        return Err(io::Error::other("the host was refused"));
    }
    Ok((host, decoder.buffer().to_vec()))
}

async fn handle(guest: Arc<Guest>, channel: Channel, body: Vec<u8>) {
    let request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            let failure = Failure::new(
                FailureKind::BadRequest,
                format!("the request is not understood: {error}"),
            );
            return answer(channel, &Reply::<()>::Failed(failure));
        }
    };
    let _asked = is_use(&request).then(|| guest.request());
    match request {
        Request::Exec(request) => exec::serve(guest, channel, *request).await,
        Request::Resume(request) => exec::resume::resume(&guest, channel, request).await,
        Request::Passwords(request) => sudo::serve(&guest, channel, &request).await,
        Request::Start(request) => process::start_process(guest, channel, *request).await,
        Request::Processes(request) => {
            let listed = process::list(&guest, &request).await;
            answer(channel, &Reply::from(listed));
        }
        Request::Output(request) => process::output(&guest, channel, &request).await,
        Request::Follow(request) => process::follow(&guest, channel, &request).await,
        Request::Wait(request) => wait(&guest, channel, &request).await,
        Request::Act(request) => {
            answer(channel, &Reply::from(process::act(&guest, &request).await));
        }
        Request::Write(request) => process::write(guest, channel, request).await,
        Request::Events(request) => process::events(&guest, channel, &request).await,
        Request::Acknowledge(request) => {
            process::acknowledge(&guest, &request);
            answer(channel, &Reply::Ok(()));
        }
        Request::OpenSession(request) => {
            let opened = open_session(&guest, &request).await;
            let sender = channel.sender();
            answer(channel, &Reply::from(opened));
            let _ = sender.flushed().await;
            if let Some(session) = guest.session(&request.key) {
                guest.prepare(&session);
            }
        }
        Request::EndSession(EndSession { key, grace_ms }) => {
            let ended = guest.end_session(&key, grace_ms).await;
            answer(channel, &Reply::Ok(ended));
        }
        request @ (Request::ScanFiles(_)
        | Request::PutFile(_)
        | Request::GetFile(_)
        | Request::RemoveFile(_)) => files::serve(channel, request).await,
        Request::Info => answer(channel, &Reply::Ok(guest.info().await)),
        Request::Shutdown => {
            guest.shut_down(SHUTDOWN_GRACE_MS).await;
            let sender = channel.sender();
            answer(channel, &Reply::Ok(()));
            let _ = sender.flushed().await;
        }
    }
}

/// Tells whether a request uses the place. Who only looks must not keep it alive, and who waits
/// for events may wait for ever.
const fn is_use(request: &Request) -> bool {
    !matches!(
        request,
        Request::Events(_) | Request::Acknowledge(_) | Request::Info | Request::Processes(_)
    )
}

/// Waits for a process, unless the host loses interest first.
async fn wait(guest: &Guest, channel: Channel, request: &Wait) {
    let cancelled = channel.sender();
    tokio::select! {
        waited = process::wait(guest, request) => answer(channel, &Reply::from(waited)),
        _ = cancelled.cancelled() => {}
    }
}

async fn open_session(guest: &Arc<Guest>, request: &OpenSession) -> Result<SessionOpened, Failure> {
    if request.only_existing && guest.session(&request.key).is_none() {
        return Err(Failure::new(
            FailureKind::NoSession,
            format!("there is no session `{}`", request.key),
        ));
    }
    let cell = guest.session_cell(&request.key);
    let (session, created) = session::open(guest, &cell, &request.key, &request.spec).await?;
    Ok(SessionOpened {
        created,
        session: session.info(0),
        notes: Vec::new(),
    })
}

/// Sends a reply. A host that is gone does not need it.
pub(crate) fn answer<T: Serialize>(channel: Channel, reply: &Reply<T>) {
    if let Ok(body) = serde_json::to_vec(reply) {
        let _ = channel.reply(body);
    }
}
