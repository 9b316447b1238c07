//! The guard against a real bash: whatever bash runs, the guard has seen.
//!
//! Random snippets call a harmless function `MARK`. Each is run by bash, without any program in
//! reach and in a directory of its own; where `MARK` ran, the guard, which has a rule about it,
//! must not have let the snippet pass.

#![expect(
    clippy::expect_used,
    reason = "helper functions of a test may fail loudly"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use exoshell_guard::{Action, CommandRule, Context, Guard, UserRules, Verdict};

/// What snippets are made of. Nothing here can do harm: no program is in reach.
const PIECES: &[&str] = &[
    "MARK",
    "MARK",
    "MARK",
    "MARK a",
    "'",
    "\"",
    "\\",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "{ ",
    "; }",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "\n",
    " ",
    " ",
    " ",
    "\t",
    "#",
    " #",
    "$",
    "${x:-",
    "${x",
    "${",
    "$((",
    "))",
    "((",
    "$[",
    "]",
    "[",
    "[[ ",
    " ]]",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n",
    "<<<",
    "<(",
    ">(",
    "< x",
    "> x",
    ">> x",
    "2>&1",
    ">&2",
    "x=",
    "x+=",
    "x=(",
    "a[",
    "a[0]=",
    "]=",
    "$x",
    "\"$x\"",
    "$'",
    "$\"",
    "\\n",
    "\\\n",
    "!",
    "! ",
    "if ",
    "then ",
    "else ",
    "elif ",
    "fi",
    "; then ",
    "; fi",
    "for i in ",
    "; do ",
    "; done",
    "do ",
    "done",
    "case x in ",
    "x) ",
    "esac",
    "*) ",
    " in ",
    "time ",
    "time -p ",
    "coproc ",
    "function f ",
    "f() ",
    "f",
    "eval ",
    "echo ",
    "true",
    ": ",
    "a",
    "b",
    "=",
    "+",
    "-",
    "*",
    "?",
    "@(",
    "!(",
    "{a,",
    ",b}",
    "MARK}",
    "{MARK,",
    "\"$(",
    ")\"",
    "${x/",
    "/b}",
    "${x#",
    "${#x}",
    "${!x",
    "set -- ",
    "$1",
    "\"$@\"",
    "alias ",
    "trap ",
    "command ",
    "builtin ",
    "exec ",
    "unset ",
    "read ",
    "\r",
    "until ",
    "while ",
    "select ",
    "&>x",
    "{fd}>x",
    "3<x",
    "E",
    "\\`",
    "\\$",
    "\\\"",
    "''",
    "\"\"",
    "$@",
    "$*",
    "$#",
    "$?",
    "1",
    "0",
    ",",
    ":",
    "%",
    "^",
];

/// Whole snippets that are easy to get wrong.
const KNOWN: &[&str] = &[
    "echo {x; MARK",
    "( (MARK) )",
    "((MARK))",
    "cat <<E; echo $(MARK)\nx\nE",
    "v=(a)#x; MARK",
    "v=(a); MARK",
    ": \"$\\\n(MARK)\"",
    ": `: \\`MARK\\``",
    ": \"a\\$\"; MARK",
    ": ${x/$(MARK)/b}",
    ": <<A <<B\nx\nA\n$(MARK)\nB",
    "x['$(MARK)']=1",
    "echo $((x['$(MARK)']))",
    "!(MARK)",
    "! (MARK)",
    ": # '\nMARK\n#'",
    ": a#'\nMARK'\nMARK",
    "{ MARK\n}",
    "f(){ MARK; }; f",
    "f()\n{\nMARK\n}\nf",
    "function f { MARK; }\nf",
    "if :; then MARK; fi",
    "for i in a; { MARK; }",
    "for ((i=0;i<1;i++)); do MARK; done",
    "for ((i=0;i<1;i++)) { MARK; }",
    "case a in (a) MARK;; esac",
    "case a in a) MARK; esac",
    "case a in b) ;; a) MARK ;& c) ;; esac",
    "[[ a == $(MARK) ]]",
    "[[ a =~ (a)$(MARK) ]]",
    "coproc MARK; wait",
    "coproc X { MARK; }; wait",
    "time MARK",
    "time -p MARK",
    "! MARK",
    "! ! MARK",
    "MARK&",
    ": | MARK",
    ": |& MARK",
    ": |\nMARK",
    ": &&\n\nMARK",
    "<<E MARK\nE",
    "<x MARK; MARK",
    "x=1 MARK",
    "x=(1 2) y=3; MARK",
    "a[1]=2 MARK",
    "a[ 1 + 1 ]=2; MARK",
    ">x MARK",
    "2>x>y MARK",
    "&>x MARK",
    "{fd}>x MARK",
    "M\\\nARK",
    "'M'A\"R\"K",
    "$'\\x4dARK'",
    "$'MARK\\0x'",
    "\\MARK",
    "{MARK,a}",
    "x=MARK; $x",
    "x=(MARK a); \"${x[@]}\"",
    "set -- MARK; \"$@\"",
    "eval MARK",
    "eval 'MA''RK'",
    "x=RK; MA$x",
    "y=MARK; x=y; ${!x}",
    "trap MARK EXIT",
    "echo \"${x:-'$(MARK)'}\"",
    "echo \"${x:-$(MARK)}\"",
    "echo ${x:-\"$(MARK)\"}",
    "echo $[ $(MARK) ]",
    "echo \"`MARK`\"",
    "echo \"\\`MARK\\`\"; MARK",
    "cat <<\"E\"\n$(:)\nE\nMARK",
    "cat <<E\n\\$(MARK) $(MARK)\nE",
    "cat <<E\n`MARK`\nE",
    ": <<E\\\nF\nEF\nMARK",
    "echo \\\nMARK; MARK",
    "#x\\\nMARK",
    "while MARK; do break; done",
    "until MARK; do :; done",
    "select i in a; do MARK; break; done <<< 1",
    "f() (MARK); f",
    "f() [[ -n $(MARK) ]]; f",
    "x() { y; }; y() { MARK; }; x",
    "command MARK",
    "builtin eval MARK",
    "printf -v x MARK; $x",
    "read x <<< MARK; $x",
    "x=${y:=MARK}; $y",
    "IFS=,; x=,MARK; $x",
    "x='a b'; MARK",
    "a=( $(MARK) )",
    "a=([0]=$(MARK))",
    "declare x=$(MARK)",
    "export x=`MARK`",
    "local x; MARK",
    "echo >(MARK)",
    "echo <(MARK)",
    "MARK | :",
    "(MARK)",
    "{ MARK; } 2>&1",
    "if ! MARK; then :; fi",
    "echo $(( $(MARK) ))",
    "echo $(($(MARK)))",
    "echo $( (MARK) )",
    "echo $((MARK) )",
    ": ${x%%$(MARK)}",
    ": ${x:$(MARK)}",
    ": ${x[$(MARK)]}",
    ": ${x^^$(MARK)}",
    "alias q=MARK\nshopt -s expand_aliases\nq",
    "shopt -s expand_aliases\nalias q=MARK\nq",
    "; MARK",
    "MARK\n)",
    "MARK\nif",
    "MARK; if",
    "echo 'x\n' MARK\nMARK",
    "true\rMARK\nMARK",
    "$x MARK",
    "x= MARK",
    "[ -v 'a[$(MARK)]' ]",
    "let 'a[$(MARK)]=1'",
    "x='a[$(MARK)]'; ((x))",
    "x='a[$(MARK)]'; echo $((x))",
    "unset 'a[$(MARK)]'",
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }
}

fn snippet(random: &mut Random) -> String {
    let count = 1 + random.below(9);
    (0..count)
        .map(|_| PIECES[random.below(PIECES.len())])
        .collect()
}

/// Runs a snippet with bash alone and tells whether `MARK` ran.
fn marked(snippet: &str, directory: &Path) -> bool {
    // What an earlier snippet left in the background must not be taken for this one.
    let own = tempfile::tempdir_in(directory).expect("a directory");
    let mark = own.path().join("mark");
    let work = own.path().join("work");
    fs::create_dir(&work).expect("a directory to run in");
    fs::write(work.join("x"), "1\n").expect("a file to read");
    let script = r#"MARK() { builtin printf x >> "$MARK_FILE"; }; readonly -f MARK; readonly MARK_FILE; builtin cd "$1"; builtin eval "$2""#;
    // Five seconds of processor time end a loop; there is no program it could start.
    let mut bash = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &format!("ulimit -t 5 -f 64; exec /bin/bash --norc --noprofile -c '{script}' bash \"$1\" \"$2\""), "bash"])
        .arg(&work)
        .arg(snippet)
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("MARK_FILE", &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash");
    bash.wait().expect("bash ends");
    mark.exists()
}

fn guard() -> Guard {
    Guard::with_rules(UserRules {
        commands: vec![CommandRule::new("MARK", Action::Ask)],
        paths: Vec::new(),
    })
}

fn compare(snippets: impl Iterator<Item = String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let guard = guard();
    let context = Context::new("/work", "/home/user");
    let (mut ran, mut seen) = (0, 0);
    let mut blind = Vec::new();
    for snippet in snippets {
        // `eval` in the harness sees NUL-free text only.
        if !marked(&snippet, directory.path()) {
            continue;
        }
        ran += 1;
        if guard.check(&snippet, &context).verdict == Verdict::Allow {
            blind.push(snippet);
        } else {
            seen += 1;
        }
    }
    assert!(ran > 0, "no snippet ran");
    assert_eq!(blind, Vec::<String>::new(), "{seen} of {ran} were seen");
}

#[test]
fn whatever_bash_runs_in_known_traps_is_seen() {
    compare(KNOWN.iter().map(|known| (*known).to_owned()));
}

#[test]
fn whatever_bash_runs_in_random_snippets_is_seen() {
    // More with `GUARD_SNIPPETS=100000`, and from elsewhere with `GUARD_SEED=7`.
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let mut random = Random(number("GUARD_SEED", 4));
    let count = number("GUARD_SNIPPETS", 1_500);
    compare((0..count).map(|_| {
        let mut text = snippet(&mut random);
        if !text.contains("MARK") {
            text.push_str("MARK");
        }
        text
    }));
}

/// A snippet in which `MARK` is never a command is not flagged more often than need be.
#[test]
fn data_that_bash_does_not_run_passes() {
    let directory = tempfile::tempdir().expect("a directory");
    let guard = guard();
    let context = Context::new("/work", "/home/user");
    for snippet in [
        "echo MARK",
        "echo 'x; MARK'",
        "echo \"x; MARK\"",
        ": # MARK",
        "x=MARK",
        "x='MARK; MARK'",
        "read x <<E\nMARK\nE",
        "read x <<'E'\n$(MARK)\nE",
        "case MARK in MARK) :;; esac",
        "[[ MARK == MARK ]]",
        "for i in MARK; do :; done",
        "f() { MARK; }",
        "echo {MARK,a}",
        "echo $'\\x4dARK'",
        "echo \\$\\(MARK\\)",
        "set -- MARK",
        "a=(MARK)",
        "x=1; echo ${x:-MARK}",
        "> MARK",
        "((MARK))",
    ] {
        assert!(!marked(snippet, directory.path()), "bash runs {snippet:?}");
        assert_eq!(
            guard.check(snippet, &context).verdict,
            Verdict::Allow,
            "{snippet:?}"
        );
    }
}
