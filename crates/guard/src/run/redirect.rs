//! Redirections: what a command reads instead, and where its output goes.

use super::Run;
use super::stream::{Origin, Stream};
use crate::syntax::{Redirect, RedirectKind};
use crate::text::UNKNOWN;

/// What the redirections of a command do to it.
#[derive(Debug, Default, Clone)]
pub(super) struct Redirected {
    pub(super) stdin: Option<Stream>,
    /// The file that gets the output, resolved.
    stdout: Option<String>,
    /// Whether a network path stands among them.
    pub(super) network: bool,
}

impl Run<'_> {
    pub(super) fn redirects(&mut self, redirects: &[Redirect]) -> Redirected {
        let mut redirected = Redirected::default();
        for redirect in redirects {
            self.redirect(redirect, &mut redirected);
        }
        redirected
    }

    fn redirect(&mut self, redirect: &Redirect, into: &mut Redirected) {
        match redirect.kind {
            RedirectKind::HereDocument => {
                let text = redirect
                    .body
                    .get()
                    .map(|word| self.single(&word.parts))
                    .unwrap_or_default();
                into.stdin = Some(Stream::known(text));
            }
            RedirectKind::HereString => {
                let mut text = self.single(&redirect.target.parts);
                let origin = std::mem::take(&mut self.substituted);
                text.push('\n');
                into.stdin = Some(Stream {
                    text: Some(text),
                    origin,
                });
            }
            RedirectKind::Read => {
                let path = self.target_path(redirect);
                into.network |= network_path(&path);
                let stream = self.read_file(&path, redirect.target.span);
                if redirect.descriptor.is_none_or(|descriptor| descriptor == 0) {
                    into.stdin = Some(stream);
                }
            }
            RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite => {
                self.redirect_write(redirect, into);
            }
            RedirectKind::Duplicate => {
                let target = self.target_path(redirect);
                let number = target
                    .trim_end_matches('-')
                    .bytes()
                    .all(|byte| byte.is_ascii_digit());
                if !number && !target.starts_with(UNKNOWN) {
                    self.redirect_write(redirect, into);
                }
            }
        }
    }

    fn redirect_write(&mut self, redirect: &Redirect, into: &mut Redirected) {
        let path = self.target_path(redirect);
        into.network |= network_path(&path);
        if network_path(&path) {
            return;
        }
        let append = redirect.kind == RedirectKind::Append;
        self.writes_to(&path, append, redirect.target.span);
        if redirect.kind == RedirectKind::ReadWrite && redirect.descriptor.unwrap_or(0) == 0 {
            into.stdin = Some(Stream::from(Origin::FILE));
        } else if redirect.descriptor.is_none_or(|descriptor| descriptor == 1) {
            into.stdout = Some(self.paths().absolute(&path));
        }
    }

    fn target_path(&mut self, redirect: &Redirect) -> String {
        let words = self.arguments(std::slice::from_ref(&redirect.target));
        words
            .into_iter()
            .next()
            .map_or_else(|| UNKNOWN.to_string(), |argument| argument.text)
    }

    /// Sends the output of a command where its redirections say.
    pub(super) fn written(&mut self, redirected: &Redirected, output: Stream) -> Stream {
        let Some(path) = redirected.stdout.as_deref() else {
            return output;
        };
        if matches!(
            path,
            "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2"
        ) {
            return output;
        }
        if path == "/proc/sysrq-trigger" {
            self.system_request(&output);
        }
        if !path.is_empty() && !path.starts_with("/dev/") {
            self.state.write_file(path, output);
        }
        Stream::silent()
    }
}

/// Tells whether bash would open a connection for this path.
pub(crate) fn network_path(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}
