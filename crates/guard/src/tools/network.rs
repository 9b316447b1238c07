//! Programs that talk to other machines.

use super::builtin::ordinary;
use super::options::{Grammar, Options};
use super::shell::Kind;
use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::run::{Call, Origin, Run, Stream};

pub(super) const TABLE: Table = &[
    (&["curl", "curlie"], curl as Handler),
    (&["wget", "wget2"], wget),
    (&["ssh", "autossh", "mosh", "slogin", "dbclient"], ssh),
    (&["scp", "sftp", "lftp", "ftp"], scp),
    (
        &[
            "nc",
            "ncat",
            "netcat",
            "nc.traditional",
            "nc.openbsd",
            "pwncat",
            "cryptcat",
        ],
        netcat,
    ),
    (&["socat"], socat),
    (&["telnet", "rlogin", "openssl-s_client"], talk),
    (
        &[
            "fetch",
            "aria2c",
            "axel",
            "http",
            "https",
            "xh",
            "xhs",
            "lynx",
            "w3m",
            "links",
            "elinks",
            "lwp-request",
            "lwp-download",
            "GET",
            "POST",
            "tftp",
            "ipfs",
            "youtube-dl",
            "yt-dlp",
            "httpie",
            "hget",
            "svn",
            "ncftpget",
            "smbget",
        ],
        download,
    ),
    (&["dig", "nslookup", "host", "drill", "ping"], lookup),
    (
        &["mail", "mailx", "mutt", "sendmail", "msmtp", "swaks"],
        mail,
    ),
];

/// Addresses at which a cloud machine gives out its credentials.
const METADATA: &[&str] = &[
    "169.254.169.254",
    "169.254.170.2",
    "metadata.google.internal",
    "100.100.100.200",
    "[fd00:ec2::254]",
    "metadata.azure.internal",
    "metadata.oraclecloud.com",
    "0xA9FEA9FE",
    "2852039166",
];

fn asks_metadata(run: &mut Run<'_>, url: &str, span: Span) {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = if host.starts_with('[') {
        host.split_inclusive(']').next().unwrap_or_default()
    } else {
        host.split(':').next().unwrap_or_default()
    };
    if METADATA.contains(&name) {
        run.report("cloud-credentials", span, Target::Remote, name);
    }
    if let Some(file) = url.strip_prefix("file://") {
        run.read_file(file, span);
    }
}

/// What goes out: the input, substitutions in the arguments.
fn outgoing(run: &Run<'_>) -> Origin {
    run.substituted
}

/// The letters of curl's options that take a value.
const CURL_SHORT: &str = "XHdFoTuAbcCeEhKmQrtUwxyYzD";
const CURL_LONG: &[&str] = &[
    "request",
    "header",
    "data",
    "data-raw",
    "data-binary",
    "data-urlencode",
    "data-ascii",
    "form",
    "form-string",
    "output",
    "upload-file",
    "user",
    "user-agent",
    "cookie",
    "cookie-jar",
    "config",
    "max-time",
    "referer",
    "range",
    "proxy",
    "write-out",
    "cacert",
    "cert",
    "key",
    "connect-timeout",
    "retry",
    "retry-delay",
    "resolve",
    "url",
    "output-dir",
    "unix-socket",
    "json",
    "dump-header",
    "interface",
    "limit-rate",
    "oauth2-bearer",
    "netrc-file",
    "abstract-unix-socket",
    "retry-max-time",
    "ciphers",
    "capath",
    "max-redirs",
    "max-filesize",
    "variable",
    "trace",
    "trace-ascii",
    "stderr",
];

fn curl(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new(CURL_SHORT, CURL_LONG));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let mut origin = outgoing(run);
    let mut output = None;
    let mut method = "";
    let mut urls: Vec<(&str, usize)> = options
        .operands
        .iter()
        .map(|operand| (operand.text, operand.at))
        .collect();
    for flag in &options.flags {
        let Some(value) = flag.value else { continue };
        let span = call.span_of(flag.at);
        match flag.name {
            "d" | "data" | "data-binary" | "data-ascii" | "data-urlencode" | "json" | "F"
            | "form" => origin = origin.with(sent(run, value, span)),
            "T" | "upload-file" => origin = origin.with(run.read_file(value, span).origin),
            "o" | "output" => output = Some((value, span)),
            "X" | "request" => method = value,
            "url" => urls.push((value, flag.at)),
            "K" | "config" => {
                run.read_file(value, span);
            }
            "unix-socket" if value.contains("docker.sock") || value.contains("containerd") => {
                run.report("container-escape", span, Target::System, value);
            }
            _ => {}
        }
    }
    run.sends(origin, call.span);
    for (url, at) in &urls {
        asks_metadata(run, url, call.span_of(*at));
        if method.eq_ignore_ascii_case("delete") && !local(url) {
            run.report("remote-delete", call.span_of(*at), Target::Remote, url);
        }
        if method.eq_ignore_ascii_case("delete") && url.contains(":9200") {
            run.report("database-reset", call.span_of(*at), Target::Remote, url);
        }
    }
    if let Some((file, span)) = output.filter(|(file, _)| *file != "-") {
        return fetched(run, file, span);
    }
    if options.has("O", "remote-name") || options.long_flag("remote-name-all") {
        let directory = options.value("", "output-dir").unwrap_or(".").to_owned();
        for (url, at) in urls {
            fetched(
                run,
                &format!("{directory}/{}", file_name(url)),
                call.span_of(at),
            );
        }
        return Stream::silent();
    }
    Stream::from(Origin::NETWORK)
}

fn local(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    [
        "localhost",
        "127.",
        "[::1]",
        "0.0.0.0",
        "host.docker.internal",
    ]
    .iter()
    .any(|prefix| host.starts_with(prefix))
        || host.starts_with(crate::text::UNKNOWN)
}

/// The value of a data option: text, `@file`, or `name=@file`.
fn sent(run: &mut Run<'_>, value: &str, span: Span) -> Origin {
    let file = value
        .strip_prefix('@')
        .or_else(|| value.split_once("=@").map(|(_, file)| file))
        .or_else(|| value.split_once("=<").map(|(_, file)| file));
    match file {
        Some("-") => run
            .stdin
            .as_ref()
            .map_or(Origin::NONE, |stream| stream.origin),
        Some(file) => {
            let file = file.split(';').next().unwrap_or(file);
            run.read_file(file, span).origin
        }
        None => Origin::NONE,
    }
}

/// Notes that a file came from the network.
fn fetched(run: &mut Run<'_>, file: &str, span: Span) -> Stream {
    run.writes_to(file, false, span);
    let path = run.paths().absolute(file);
    if !path.is_empty() {
        run.state.write_file(&path, Stream::from(Origin::NETWORK));
    }
    Stream::silent()
}

fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("index.html")
}

fn wget(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    const LONG: &[&str] = &[
        "output-document",
        "directory-prefix",
        "output-file",
        "append-output",
        "input-file",
        "post-data",
        "post-file",
        "body-data",
        "body-file",
        "header",
        "user",
        "password",
        "user-agent",
        "tries",
        "timeout",
        "execute",
        "method",
        "use-askpass",
        "referer",
        "wait",
        "level",
        "accept",
        "reject",
        "domains",
    ];
    let options = Options::parse(call.arguments, Grammar::new("OPoaieUtTQlARDIXBw", LONG));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let mut origin = outgoing(run);
    for (file, at) in options
        .values("", "post-file")
        .chain(options.values("", "body-file"))
    {
        let span = call.span_of(at);
        origin = origin.with(run.read_file(file, span).origin);
        if file == "-" {
            origin = origin.with(
                run.stdin
                    .as_ref()
                    .map_or(Origin::NONE, |stream| stream.origin),
            );
        }
    }
    run.sends(origin, call.span);
    if let Some(command) = options.value("", "use-askpass") {
        run.report("tool-runs-command", call.span, Target::None, command);
    }
    for operand in &options.operands {
        asks_metadata(run, operand.text, call.span_of(operand.at));
    }
    for (log, at) in options.values("oa", "output-file") {
        run.writes_to(log, true, call.span_of(at));
    }
    if let Some((file, at)) = options.values("O", "output-document").next() {
        if file == "-" || file == "/dev/stdout" {
            return Stream::from(Origin::NETWORK);
        }
        return fetched(run, file, call.span_of(at));
    }
    let directory = options
        .value("P", "directory-prefix")
        .unwrap_or(".")
        .to_owned();
    if directory != "." {
        run.writes_to(&directory, true, call.span);
    }
    if !options.has("", "spider") {
        for operand in &options.operands {
            fetched(
                run,
                &format!("{directory}/{}", file_name(operand.text)),
                call.span,
            );
        }
    }
    Stream::silent()
}

/// The options of ssh that take a value.
const SSH: Grammar<'static> = Grammar::new("BbcDEeFIiJLlmOopQRSWwM", &["ssh", "port"]).stopping();

fn ssh(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, SSH);
    if options.short("VGQ") {
        return Stream::unknown();
    }
    ssh_options(run, call, &options);
    let input = run.stdin.clone();
    if let Some(input) = &input {
        run.sends(input.origin, call.span);
    }
    run.sends(run.substituted, call.span);
    let Some(host) = options.operands.first() else {
        return Stream::unknown();
    };
    // Options may also follow the host.
    let after = Options::parse(call.from(host.at + 1), SSH);
    let from = after
        .operands
        .first()
        .map_or(call.arguments.len(), |first| host.at + 1 + first.at);
    let words = call.from(from);
    let outer = run.state.cwd.take();
    if let (Some(first), Some(last)) = (words.first(), words.last()) {
        let code: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let code = code.join(" ");
        let span = Span::new(first.span.start, last.span.end);
        run.elsewhere(|run| run.subshell(|run| run.script(&code, span)));
    } else if let Some(input) = input {
        run.elsewhere(|run| run.executes_stream(&input, Kind::Shell, call.span));
    }
    run.state.cwd = outer;
    Stream::from(Origin::NETWORK)
}

/// Settings of ssh that run a command here.
fn ssh_options(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>) {
    for (setting, at) in options.values("o", "") {
        let (name, value) = setting.split_once(['=', ' ']).unwrap_or((setting, ""));
        let runs = [
            "proxycommand",
            "localcommand",
            "knownhostscommand",
            "proxyusefdpass",
            "securitykeyprovider",
            "pkcs11provider",
        ]
        .contains(&name.trim().to_ascii_lowercase().as_str());
        let value = value.trim();
        let plain = value == "none"
            || value.starts_with("ssh ") && !value.contains([';', '|', '&', '`', '$'])
            || value.starts_with("nc ") && value.ends_with("%p")
            || value.starts_with("cloudflared ")
            || value.starts_with("aws ssm ");
        if runs && !plain {
            let span = call.span_of(at);
            run.report("tool-runs-command", span, Target::None, value);
            run.subshell(|run| run.script(value, span));
        }
    }
}

fn scp(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    input_escapes(run, call);
    let options = Options::parse(call.arguments, Grammar::new("cFiJloPSDXbBRse", &[]));
    ssh_options(run, call, &options);
    if let Some(program) = options.value("S", "").filter(|program| !ordinary(program)) {
        run.report("tool-runs-command", call.span, Target::None, program);
    }
    if call.name == "lftp"
        && let Some(code) = options.value("ce", "")
        && code.contains('!')
    {
        run.report("tool-runs-command", call.span, Target::None, code);
    }
    let remote = |text: &str| {
        text.split('/')
            .next()
            .is_some_and(|head| head.contains(':'))
            || text.starts_with("scp://")
    };
    let Some((target, sources)) = options.operands.split_last() else {
        return Stream::unknown();
    };
    if remote(target.text) {
        for source in sources.iter().filter(|source| !remote(source.text)) {
            let origin = run.read_file(source.text, call.span_of(source.at)).origin;
            run.sends(origin, call.span_of(source.at));
        }
    } else if sources.iter().any(|source| remote(source.text)) {
        fetched(run, target.text, call.span_of(target.at));
        for source in sources {
            let name = source
                .text
                .rsplit(['/', ':'])
                .next()
                .unwrap_or_default()
                .to_owned();
            let path = run.paths().absolute(&format!("{}/{name}", target.text));
            run.state.write_file(&path, Stream::from(Origin::NETWORK));
        }
    }
    Stream::unknown()
}

fn netcat(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "ecpsqwiImMoOgGxXTVd",
            &[
                "exec",
                "sh-exec",
                "lua-exec",
                "proxy",
                "wait",
                "source-port",
                "source",
                "output",
            ],
        ),
    );
    let shell = options.flags.iter().find(|flag| {
        matches!(flag.name, "exec" | "sh-exec" | "lua-exec")
            || (!flag.long && flag.name == "e")
            || (!flag.long
                && flag.name == "c"
                && flag.value.is_some_and(|value| {
                    value.contains(['/', ' ']) || value == "sh" || value == "bash"
                }))
    });
    if let Some(flag) = shell {
        run.report(
            "network-shell",
            call.span_of(flag.at),
            Target::Remote,
            call.name,
        );
    }
    talk(run, call)
}

fn socat(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    for argument in call.arguments {
        let kind = argument
            .text
            .split([':', ','])
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        if matches!(kind.as_str(), "EXEC" | "SYSTEM" | "SHELL") {
            run.report(
                "network-shell",
                argument.span,
                Target::Remote,
                &argument.text,
            );
            if let Some((_, command)) = argument.text.split_once(':') {
                run.subshell(|run| run.script(command, argument.span));
            }
        }
    }
    talk(run, call)
}

/// Lines that begin with `!` in the input of such a program are run by a shell.
pub(super) fn input_escapes(run: &mut Run<'_>, call: &Call<'_>) {
    let text = run
        .stdin
        .as_ref()
        .and_then(|stream| stream.text.clone())
        .unwrap_or_default();
    for line in text.lines().take(64) {
        if let Some(command) = line.trim_start().strip_prefix('!') {
            run.report("tool-runs-command", call.span, Target::None, command);
            run.subshell(|run| run.script(command, call.span));
        }
    }
}

fn talk(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    input_escapes(run, call);
    let input = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin)
        .with(run.substituted);
    run.sends(input, call.span);
    Stream::from(Origin::NETWORK)
}

fn download(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "od",
            &["out", "output", "dir", "output-document", "download"],
        ),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let input = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin)
        .with(run.substituted);
    run.sends(input, call.span);
    for operand in &options.operands {
        asks_metadata(run, operand.text, call.span_of(operand.at));
        if let Some((_, file)) = operand
            .text
            .split_once('@')
            .filter(|(name, _)| !name.contains(['/', ':']))
        {
            let origin = run.read_file(file, call.span_of(operand.at)).origin;
            run.sends(origin, call.span_of(operand.at));
        }
        if call.name.starts_with("http") && operand.text == "DELETE" && !options.texts().any(local)
        {
            run.report(
                "remote-delete",
                call.span_of(operand.at),
                Target::Remote,
                call.name,
            );
        }
    }
    let named = options
        .value("o", "output")
        .or_else(|| options.value("", "out"))
        .filter(|file| *file != "-");
    if let Some(file) = named {
        let directory = options.value("d", "dir").unwrap_or(".");
        let file = if file.starts_with('/') {
            file.to_owned()
        } else {
            format!("{directory}/{file}")
        };
        return fetched(run, &file, call.span);
    }
    if matches!(
        call.name,
        "aria2c" | "axel" | "lwp-download" | "youtube-dl" | "yt-dlp"
    ) {
        for operand in &options.operands {
            fetched(run, file_name(operand.text), call.span_of(operand.at));
        }
        if call.texts().any(|text| {
            text == "--exec" || text.starts_with("--exec=") || text.starts_with("--on-download")
        }) {
            run.report("tool-runs-command", call.span, Target::None, call.name);
        }
    }
    Stream::from(Origin::NETWORK)
}

/// A name that is looked up can carry data.
fn lookup(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    run.sends(run.substituted, call.span);
    Stream::from(Origin::NETWORK)
}

fn mail(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("aAsrcbi", &["attach"]));
    let mut origin = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin)
        .with(run.substituted);
    for (file, at) in options.values("aAi", "attach") {
        origin = origin.with(run.read_file(file, call.span_of(at)).origin);
    }
    run.sends(origin, call.span);
    Stream::unknown()
}
