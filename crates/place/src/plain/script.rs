//! What is run in the place, and how text gets there unharmed.

use exoshell_wire::RawBytes;

use super::state::Start;

/// The byte every marker begins with; the nonce follows.
pub(super) const MARK: u8 = 0x1e;

/// The program that is launched. Everything that varies comes on its stdin, a line at a time,
/// because `read` is the one way to take from a pipe no more than is meant.
///
/// It outlives the command's shell, whatever that does, and reports its exit code on both
/// streams. Where there is a `setsid` the command gets a session of its own, so that it can be
/// ended as a whole and has no terminal to wait at.
pub(super) const LAUNCHER: &str = concat!(
    "trap : HUP INT TERM; ",
    "IFS= read -r n && IFS= read -r i || exit 125; ",
    "i=$(printf %b \"$i\"); ",
    "s=sh; command -v bash >/dev/null 2>&1 && s=bash; ",
    "if command -v setsid >/dev/null 2>&1; ",
    "then setsid \"$s\" -c \"$i\" \"$s\"; else \"$s\" -c \"$i\" \"$s\"; fi; ",
    "c=$?; ",
    r#"printf '\036%sX%s;' "$n" "$c" >&2; printf '\036%sX%s;' "$n" "$c""#,
);

/// The text of the command's shell: it takes the prelude, reports what it starts from, takes the
/// command, runs it, and reports what became of it.
///
/// `@` stands for the nonce. Reports go to descriptor 7, because the command may send stdout
/// elsewhere. It is one line, so that `set -v` has nothing left to print, and uses one variable.
const SHELL: &str = concat!(
    "unset exo; exec 7>&1; ",
    "IFS= read -r exo || exit 125; eval \"$(printf %b \"$exo\")\"; ",
    r#"printf '\036@R%s\0%s\0%s\0' "$$" "${BASH_VERSION-}" "${exo_gone-}"; unset exo_gone; "#,
    r"pwd; printf '\0'; export -p; printf '\036@E'; printf '\036@R\036@E' >&2; ",
    "IFS= read -r exo || exit 125; exo=$(printf %b. \"$exo\"); exo=${exo%.}; ",
    "@REDIRECT",
    "trap '@END' EXIT; eval \"$exo\"; ",
    "@END",
);

/// Reports directory and variables, and ends the shell with the code it had. It is run when the
/// shell exits and also where the command comes to its end, as the command may have set a trap
/// of its own.
///
/// The variables are printed twice: what a process in the background writes meanwhile would
/// otherwise pass for a part of them.
const END: &str = concat!(
    "{ exo=$?; set +e +u +x; unset -f printf pwd export exit; { ",
    r#"printf "\036@S"; pwd; printf "\0"; export -p; printf "\0"; export -p; printf "\036@E"; "#,
    "} >&7; } 2>/dev/null; exit \"$exo\"",
);

/// Returns the text of the command's shell.
pub(super) fn shell(nonce: &str, merge: bool, stdin: bool) -> String {
    let mut redirect = String::new();
    if !stdin {
        redirect.push_str("exec </dev/null; ");
    }
    if merge {
        redirect.push_str("exec 2>&1; ");
    }
    SHELL
        .replace("@REDIRECT", &redirect)
        .replace("@END", END)
        .replace('@', nonce)
}

/// Returns the statements that bring a shell to where the command starts.
pub(super) fn prelude(nonce: &str, start: &Start, workdir: Option<&[u8]>) -> Vec<u8> {
    let mut text = Vec::new();
    let last = |name: &[u8]| name == b"OLDPWD";
    for (name, value) in start.variables.iter().filter(|(name, _)| !last(name)) {
        text.extend(assignment(name, value.as_deref()));
    }
    if let Some(cwd) = &start.cwd {
        let cwd = directory(cwd);
        text.extend([b"cd -- ", cwd.as_slice(), b" >/dev/null 2>&1 || "].concat());
        text.extend(b"{ exo_gone=1; cd >/dev/null 2>&1 || cd /; }; ");
    }
    if let Some(workdir) = workdir {
        text.extend(enter(nonce, &directory(workdir)));
    }
    // Entering a directory sets it.
    for (name, value) in start.variables.iter().filter(|(name, _)| last(name)) {
        text.extend(assignment(name, value.as_deref()));
    }
    text
}

fn assignment(name: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    match value {
        Some(value) => [b"export ", name, b"=", &quote(value), b"; "].concat(),
        None => [b"unset ", name, b"; "].concat(),
    }
}

/// Enters a directory, or says why not and ends the shell.
fn enter(nonce: &str, directory: &[u8]) -> Vec<u8> {
    let report = |why: &str| format!("printf '\\036{nonce}W{why}\\036{nonce}E'; ");
    let mut text = [b"cd -- ", directory, b" >/dev/null 2>&1 || { if [ -d "].concat();
    text.extend_from_slice(directory);
    text.extend(b" ]; then ");
    text.extend(report("permission denied").bytes());
    text.extend(b"elif [ -e ");
    text.extend_from_slice(directory);
    text.extend(b" ]; then ");
    text.extend(report("it is not a directory").bytes());
    text.extend(b"else ");
    text.extend(report("there is no such directory").bytes());
    text.extend(b"fi; exit 126; }; ");
    text
}

/// Writes a directory as a word of the shell, with `~` as people mean it. A relative one does
/// not follow `CDPATH`.
fn directory(path: &[u8]) -> Vec<u8> {
    match path {
        b"~" => b"\"$HOME\"".to_vec(),
        [b'~', b'/', rest @ ..] => [b"\"$HOME\"/", quote(rest).as_slice()].concat(),
        [b'/', ..] => quote(path),
        _ => quote(&[b"./", path].concat()),
    }
}

/// Quotes bytes so that a shell reads back exactly them. They must not contain NUL.
pub(super) fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
    out
}

/// Makes one line of a text, which `printf %b` turns back.
pub(super) fn line(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8 + 1);
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            other => out.push(*other),
        }
    }
    out.push(b'\n');
    out
}

/// Tells whether a shell can hold a variable of this name and value.
pub(super) fn is_variable((name, value): &(RawBytes, RawBytes)) -> bool {
    is_name(&name.0) && !value.0.contains(&0)
}

/// Tells whether this is the name of a shell variable.
pub(super) fn is_name(name: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.first().is_some_and(|byte| !byte.is_ascii_digit()) && name.iter().all(letter)
}

/// The program that ends a command: `PID TENTHS` comes on its stdin.
///
/// It looks for everything below the command's shell, in its session or in its group, asks it to
/// end, gives it that many tenths of a second, and kills what is left, looking again each time.
/// What is still alive then is printed. Without `/proc` only the group can be reached.
pub(super) const ENDER: &str = concat!(
    "IFS=' ' read -r r t || exit 125; all=; ",
    // Takes apart the line of a process: its state, parent, group, session and start.
    "look() { IFS= read -r l <\"/proc/$1/stat\" || return 1; p=$1; ",
    "c=${l#*\\(}; c=${c%%\\)*}; set -- ${l##*\\) }; ",
    "a=$1 b=$2 g=$3 s=$4; shift 19; at=$1; case $a in Z|X) return 1;; esac; }; ",
    "seek() { more=1; while [ -n \"$more\" ]; do more=; for d in /proc/[0-9]*; do ",
    "case $all in *\" ${d#/proc/}:\"*) continue;; esac; look \"${d#/proc/}\" || continue; ",
    "case \" $p $g $s \" in *\" $r \"*) ;; *) case $all in *\" $b:\"*) ;; *) continue;; esac;; esac; ",
    "all=\"$all $p:$at\" more=1; done; done; }; ",
    "alive() { look \"${1%:*}\" && [ \"$at\" = \"${1#*:}\" ]; }; ",
    "send() { seek; for e in $all; do alive \"$e\" && kill -s \"$1\" \"${e%:*}\"; done; }; ",
    "left() { for e in $all; do alive \"$e\" && return 0; done; return 1; }; ",
    "[ -e /proc/self/stat ] || { ",
    "send() { kill -s \"$1\" -- \"-$r\" || kill -s \"$1\" \"$r\"; }; ",
    "left() { kill -0 -- \"-$r\" || kill -0 \"$r\"; }; }; ",
    "rest() { while [ \"$t\" -gt 0 ] && left; do ",
    "if sleep 0.1; then t=$((t-1)); else sleep 1; t=$((t-10)); fi; done; }; ",
    "exec 2>/dev/null; send TERM; rest; k=0; ",
    "while left && [ \"$k\" -lt 5 ]; do send KILL; t=4; rest; k=$((k+1)); done; ",
    "for e in $all; do alive \"$e\" && printf '\\036%s %s %s\\n' \"$p\" \"$at\" \"$c\"; done; ",
    "[ -e /proc/self/stat ] || { left && printf '\\036%s 0 \\n' \"$r\"; }; ",
    "printf '\\036end\\n'",
);
