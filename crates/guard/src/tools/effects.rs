//! What programs do to the world: reading, writing, deleting, running files.

use super::Grammar;
use super::options::Options;
use super::shell::Kind;
use crate::finding::{Span, Target};
use crate::paths::{self, Loss};
use crate::run::{Call, Origin, Run, Stream};
use crate::text::{UNKNOWN, shown};

/// Programs whose operands are files they print or copy.
pub(super) const READERS: &[&str] = &[
    "cat",
    "less",
    "more",
    "most",
    "head",
    "tail",
    "bat",
    "batcat",
    "tac",
    "nl",
    "rev",
    "base64",
    "base32",
    "basenc",
    "xxd",
    "od",
    "hexdump",
    "hd",
    "strings",
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "rg",
    "ag",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "cut",
    "sort",
    "uniq",
    "paste",
    "join",
    "comm",
    "diff",
    "cmp",
    "tr",
    "fold",
    "fmt",
    "pr",
    "column",
    "jq",
    "yq",
    "vim",
    "vi",
    "nano",
    "view",
    "emacs",
    "ed",
    "cp",
    "scp",
    "rsync",
    "tar",
    "zip",
    "7z",
    "gzip",
    "xz",
    "bzip2",
    "zstd",
    "openssl",
    "gpg",
    "tee",
    "dd",
    "install",
    "mv",
    "ln",
    "curl",
    "wget",
    "nc",
    "ncat",
    "socat",
    "unshadow",
    "john",
    "hashcat",
    "pbcopy",
    "xclip",
    "xsel",
    "qrencode",
    "source",
    ".",
    "mapfile",
    "readarray",
    "python",
    "perl",
    "ruby",
    "node",
    "php",
    "ssh-add",
    "bcat",
    "glow",
    "pygmentize",
    "iconv",
    "dos2unix",
    "split",
    "csplit",
    "shuf",
    "look",
    "aws",
    "gsutil",
    "rclone",
    "mail",
    "mutt",
    "sendmail",
    "hexyl",
    "ul",
    "restic",
    "borg",
    "age",
    "uuencode",
    "expand",
    "busybox",
    "getent",
    "xargs",
];

impl Run<'_> {
    /// Notes that a path is written to.
    pub(crate) fn writes_to(&mut self, text: &str, append: bool, span: Span) {
        let Some(resolved) = self.paths().resolve(text) else {
            return;
        };
        let path = resolved.path;
        if !self.user_rules.paths.is_empty() {
            self.denied(&path, false, text, span);
        }
        let paths = self.paths();
        let rule = if paths.control(&path) {
            "own-controls"
        } else if paths::disk(&path) {
            "raw-disk-write"
        } else if paths.system(&path) {
            "system-write"
        } else if paths.user_setting(&path) {
            "user-settings"
        } else if path.contains("/.git/hooks/") {
            "planned-task"
        } else if trace(&path) && !append {
            "traces-removed"
        } else {
            return;
        };
        let target = paths.target(&path);
        self.report(rule, span, target, text);
    }

    /// Notes that a path is deleted.
    pub(crate) fn deletes(&mut self, text: &str, recursive: bool, bulk: bool, span: Span) {
        let resolved = self.paths().resolve(text);
        let whole = resolved.as_ref().is_some_and(|resolved| resolved.contents);
        let path = resolved.map(|resolved| resolved.path).unwrap_or_default();
        if !self.user_rules.paths.is_empty() && !path.is_empty() {
            if whole && !recursive && !bulk {
                let all = super::protected::contents(path.clone(), text);
                self.denied(&all, false, text, span);
            } else {
                self.denied(&path, recursive || bulk, text, span);
            }
        }
        let paths = self.paths();
        let loss = if path.is_empty() {
            Loss::Some(Target::Unknown)
        } else {
            paths.loss_at(&path)
        };
        let rule = match loss {
            Loss::Root if recursive => "wipe-root",
            Loss::Home if recursive => "wipe-home",
            Loss::System if recursive => "wipe-system",
            _ if paths.control(&path) => "own-controls",
            _ if trace(&path) => "traces-removed",
            _ if paths::disk(&path) => "system-delete",
            _ if recursive && bulk => "bulk-delete",
            _ if recursive => "recursive-delete",
            Loss::Root | Loss::Home | Loss::System => "bulk-delete",
            _ if paths.system(&path) => "system-delete",
            _ if paths.user_setting(&path) => "user-settings",
            _ if whole || bulk => "bulk-delete",
            Loss::Some(_) => return,
        };
        let target = paths.target(&path);
        self.report(rule, span, target, text);
    }

    /// Notes that a file is read and returns what comes out of it.
    pub(crate) fn read_file(&mut self, text: &str, span: Span) -> Stream {
        let path = self.paths().absolute(text);
        if matches!(
            path.as_str(),
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"
        ) || text == "-"
        {
            return self.stdin.clone().unwrap_or_default();
        }
        if let Some(stream) = self.state.file(&path) {
            let stream = stream.clone();
            self.handle(stream.weight());
            return stream;
        }
        if crate::run::network_path(&path) {
            return Stream::from(Origin::NETWORK);
        }
        if path == "/dev/null" {
            return Stream::silent();
        }
        let holds_secrets = self.paths().secret_directory(&path);
        let all_of_them = holds_secrets && everything_in(text);
        if self.paths().secret(&path) || all_of_them {
            self.report("secret-read", span, Target::None, text);
            return Stream::from(Origin::SECRET.with(Origin::FILE));
        }
        if paths::disk(&path) {
            self.report("raw-disk-read", span, Target::Device, text);
        }
        if self.paths().control(&path) {
            return Stream::from(Origin::CONTROL.with(Origin::FILE));
        }
        if private(&path) || holds_secrets {
            return Stream::from(Origin::SECRET.with(Origin::FILE));
        }
        Stream::from(Origin::FILE)
    }

    /// Reports secrets among the operands of a program that reads its operands.
    pub(crate) fn reads_secrets(&mut self, call: &Call<'_>) {
        for argument in call.arguments {
            let text = argument.text.as_str();
            // Option values and `@file` or `if=file` operands count as well.
            let text = text
                .rsplit_once(['=', '@'])
                .map_or(text, |(_, value)| value);
            let text = text.strip_prefix("file://").unwrap_or(text);
            if text.is_empty() || text.starts_with('-') || text.len() > 512 {
                continue;
            }
            if !self.step(4) {
                break;
            }
            let paths = self.paths();
            let path = paths.absolute(text);
            let archives = matches!(
                call.name,
                "tar"
                    | "zip"
                    | "7z"
                    | "cp"
                    | "scp"
                    | "rsync"
                    | "grep"
                    | "rg"
                    | "restic"
                    | "borg"
                    | "aws"
                    | "gsutil"
                    | "rclone"
                    | "mv"
                    | "ag"
            );
            if paths.secret(&path)
                || (archives || everything_in(text)) && paths.secret_directory(&path)
            {
                let target = paths.target(&path);
                self.report("secret-read", argument.span, target, text);
            }
        }
    }

    /// Notes that a file is run: only a file made by this very command is known.
    pub(crate) fn executes_file(&mut self, text: &str, kind: Kind, span: Span) {
        let path = self.paths().absolute(text);
        if matches!(
            path.as_str(),
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"
        ) || text == "-" && kind == Kind::Interpreter
        {
            if let Some(stream) = self.stdin.clone() {
                self.executes_stream(&stream, kind, span);
            }
            return;
        }
        let made = self.state.file_or_parent(&path).cloned();
        // Another name for what the whole command is fed.
        let fed = || {
            let named = ["/dev/fd/", "/proc/self/fd/", "/dev/tty", "/dev/pts/"];
            let named = named.iter().any(|start| path.starts_with(start));
            self.fed.clone().filter(|_| named)
        };
        let Some(stream) = made.or_else(fed) else {
            return;
        };
        let kind = if kind == Kind::Program {
            Kind::Shell
        } else {
            kind
        };
        self.executes_stream(&stream, kind, span);
    }

    /// Notes that secrets go to the network.
    pub(crate) fn sends(&mut self, origin: Origin, span: Span) {
        if origin.has(Origin::SECRET) {
            self.report("secrets-sent", span, Target::Remote, "");
        }
    }

    /// Writing `b` or `o` there stops the machine at once.
    pub(crate) fn system_request(&mut self, output: &Stream) {
        let stops = output
            .text
            .as_deref()
            .is_none_or(|text| text.trim_start().starts_with(['b', 'o', 'c', UNKNOWN]));
        if stops {
            self.report(
                "shutdown",
                Span::default(),
                Target::System,
                "/proc/sysrq-trigger",
            );
        }
    }
}

/// Tells whether a path names everything in its directory.
fn everything_in(text: &str) -> bool {
    text.rsplit('/').next().is_some_and(paths::everything)
}

/// Files whose loss hides what was done.
fn trace(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    paths::below(path, "/var/log")
        || path == "/var/run/utmp"
        || matches!(
            name,
            ".bash_history"
                | ".zsh_history"
                | ".history"
                | ".python_history"
                | ".mysql_history"
                | ".psql_history"
                | ".node_repl_history"
                | ".lesshst"
                | "fish_history"
        )
}

/// Files that are no secret by themselves but nothing to send away.
fn private(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    trace(path)
        || name == ".env"
        || name.starts_with(".env.") && !name.ends_with(".example") && !name.ends_with(".sample")
        || matches!(path, "/etc/passwd" | "/etc/group")
        || name.rsplit_once('.').is_some_and(|(_, extension)| {
            matches!(extension, "pem" | "key" | "p12" | "pfx" | "kdbx")
        })
        || matches!(
            name,
            "credentials.json"
                | "secrets.yml"
                | "secrets.yaml"
                | "secrets.json"
                | "service-account.json"
                | "wallet.dat"
        )
}

/// A filter: prints something made of its input and of the files it is given.
pub(super) fn passes_through(run: &mut Run<'_>, call: &Call<'_>, reads: bool) -> Stream {
    let mut origin = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin);
    if reads {
        let options = Options::parse(call.arguments, Grammar::PLAIN);
        for operand in &options.operands {
            if !run.step(4) {
                break;
            }
            if operand.text.len() < 512
                && (operand.text.contains(['/', '.'])
                    || run
                        .state
                        .file(&run.paths().absolute(operand.text))
                        .is_some())
            {
                let span = call.span_of(operand.at);
                origin = origin.with(run.read_file(operand.text, span).origin);
            }
        }
    }
    Stream::from(origin)
}

/// Returns a short form of a command for a sentence.
pub(super) fn brief(call: &Call<'_>) -> String {
    let mut text = call.name.to_owned();
    for argument in call.texts().take(3) {
        text.push(' ');
        text.push_str(argument);
    }
    shown(&text)
}
