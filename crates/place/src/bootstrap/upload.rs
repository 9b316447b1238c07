//! Sending the guest's program through the stdin of a shell.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::answer::collect;
use super::{Bootstrap, program, script};
use crate::bundle::GuestBinary;
use crate::{PlaceError, Progress, Trouble, nonce};

/// How long a piece of the program may take: a link that moves at all is faster.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// How long sending and checking may take together.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// How much is sent at once.
const PIECE: usize = 32 * 1024;

/// No place has more folders to try than this.
const MAX_TRIES: usize = 6;

/// A folder of the place that cannot hold the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unfit {
    number: String,
    folder: String,
    reason: String,
}

impl Bootstrap<'_> {
    /// Puts the program into the first folder of the place that can hold it.
    pub(super) async fn install(
        &self,
        guest: &GuestBinary,
        progress: &Progress,
    ) -> Result<(), PlaceError> {
        let bytes = guest.bytes()?;
        let mut unfit: Vec<Unfit> = Vec::new();
        for _ in 0..MAX_TRIES {
            let answers = self.send(guest, &bytes, &unfit, progress).await?;
            unfit.extend(answers.iter().filter_map(|line| read_unfit(line)));
            if answers.iter().any(|line| line.starts_with("ok:")) {
                return Ok(());
            }
            if answers.iter().any(|line| line.starts_with("none:")) {
                break;
            }
        }
        Err(no_folder(&unfit))
    }

    /// Runs the installing script once and returns its answers.
    async fn send(
        &self,
        guest: &GuestBinary,
        bytes: &[u8],
        unfit: &[Unfit],
        progress: &Progress,
    ) -> Result<Vec<String>, PlaceError> {
        let nonce = nonce()?;
        let mut pass_over = ":".to_owned();
        for folder in unfit {
            pass_over.push_str(&folder.number);
            pass_over.push(':');
        }
        let arguments = [
            nonce.as_str(),
            guest.folder_name(),
            self.folder.unwrap_or_default(),
            &guest.sha256,
            &guest.size.to_string(),
            &pass_over,
        ];
        let words = program(script::INSTALL, &arguments);
        let mut launched = self.launcher.launch(&words).await?;
        let nobody = Box::new(tokio::io::sink());
        let stdin = std::mem::replace(&mut launched.stdin, nobody);
        let mut answers = std::pin::pin!(collect(launched, &nonce, INSTALL_LIMIT));
        let answers = tokio::select! {
            answers = &mut answers => answers,
            sent = feed(stdin, bytes, progress) => {
                if !sent {
                    return Err(stalled());
                }
                answers.await
            }
        };
        answers.map_err(|silence| self.explained(&silence))
    }
}

fn stalled() -> PlaceError {
    PlaceError::backend(
        Trouble::Interrupted,
        "sending the guest stalled: the place takes no more data",
        "try again; look at the connection if it happens again",
    )
}

/// Sends everything and ends the stream; `false` when it stalled. A reader that has seen enough
/// is no fault: what it prints says why.
async fn feed(
    mut stdin: Box<dyn AsyncWrite + Send + Unpin>,
    bytes: &[u8],
    progress: &Progress,
) -> bool {
    let total = bytes.len().max(1);
    let mut told = 0;
    progress.step(&format!("uploading the guest ({} KiB)", total / 1024));
    for (number, piece) in bytes.chunks(PIECE).enumerate() {
        match tokio::time::timeout(STALL_LIMIT, stdin.write_all(piece)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return true,
            Err(_) => return false,
        }
        let percent = (number * PIECE + piece.len()) * 100 / total;
        if percent >= told + 25 && percent < 100 {
            told = percent;
            progress.step(&format!("uploading the guest ({percent} %)"));
        }
    }
    let ending = tokio::time::timeout(STALL_LIMIT, stdin.shutdown());
    ending.await.is_ok()
}

/// Reads `no:<number>:<folder>:<reason>`.
fn read_unfit(line: &str) -> Option<Unfit> {
    let mut parts = line.strip_prefix("no:")?.splitn(3, ':');
    let number = parts.next()?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Unfit {
        number: number.to_owned(),
        folder: parts.next()?.to_owned(),
        reason: parts.next()?.trim().to_owned(),
    })
}

/// Says of every folder why the guest cannot be there. A full disk is for a person to clear;
/// anything else leaves the commands to a plain shell.
fn no_folder(unfit: &[Unfit]) -> PlaceError {
    let list: Vec<String> = unfit
        .iter()
        .map(|folder| format!("`{}`: {}", folder.folder, folder.reason))
        .collect();
    let why = format!("no folder can hold it ({})", list.join("; "));
    let full = unfit.iter().find(|folder| is_full(&folder.reason));
    match full {
        Some(folder) => PlaceError::backend(
            Trouble::DiskFull,
            format!("the guest does not fit into the place: {why}"),
            format!(
                "free some space there, about 4 MiB under `{}`",
                folder.folder
            ),
        ),
        None => PlaceError::NoGuest { why },
    }
}

fn is_full(reason: &str) -> bool {
    ["No space left", "Disk quota exceeded", "disk full"]
        .iter()
        .any(|text| reason.contains(text))
}
