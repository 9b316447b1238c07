//! What one command changes is there for the next, and nothing else is.

use serde_json::json;

use crate::site::Kind;
use crate::support::{HEX, hex, quoted};

pub(crate) fn the_directory_and_exports_survive_an_exit_with_a_code(kind: Kind) {
    let site = kind.site();
    let answer = site.terminal("cd /usr; export A='a b'; exit 3");
    assert_eq!((answer.code(), answer.cwd()), (3, "/usr"), "{}", answer.0);
    site.terminal("pwd; echo \"$A\"; printenv A")
        .printed("/usr\na b\na b\n");
    site.terminal("cd /tmp; cd -").printed("/usr\n");
    site.terminal("cd - && pwd").printed("/tmp\n/tmp\n");
    // `run` with a task is in the same session, and one without is not.
    let ran = site.exoshell(["run", "--task", "default", "pwd; echo \"$A\""]);
    assert_eq!(ran.text(), "/tmp\na b\n", "{}", ran.talk());
    let ran = site.exoshell(["run", "echo \"${A-unset}\""]);
    assert_eq!(ran.text(), "unset\n", "{}", ran.talk());
}

pub(crate) fn aliases_functions_options_and_umask_are_carried_over(kind: Kind) {
    let site = kind.site();
    site.enter_folder();
    site.terminal(
        "shopt -s expand_aliases dotglob; alias hi='echo \"it'\\''s\"'; umask 077; set -o noglob\n\
         first() { cat <<'E'\ntext\nE\n}\nsecond() { echo \"real $1\"; }; export -f second",
    )
    .printed("");
    for _ in 0..2 {
        site.terminal(
            "hi; first; bash -c 'second x'; umask; shopt -q dotglob && echo on; echo *; \
             touch f; stat -c %a f; rm f",
        )
        .printed("it's\ntext\nreal x\n0077\non\n*\n600\n");
    }
    site.terminal("unalias hi; unset -f first; set +o noglob; umask 022")
        .printed("");
    site.terminal("alias; declare -F first; umask; set -o | grep noglob")
        .printed("0022\nnoglob         \toff\n");
}

pub(crate) fn every_byte_survives_in_a_value(kind: Kind) {
    let site = kind.site();
    let awkward = "one\ntwo 'three' \"four\" `id` $(id) ${HOME} \\ } ) ü 漢字 🦀\n\n";
    let make = format!(
        "v=; for i in {{1..255}}; do printf -v c %03o $i; printf -v b \"\\\\$c\"; v+=$b; done; \
         export V=$v W=$'\\xff\\xfe\\x80 \\xc3' X={}",
        quoted(awkward)
    );
    site.terminal(&make).printed("");
    let all: Vec<u8> = (1..=255).collect();
    let show = format!(
        "printenv V | {HEX}; echo; printf %s \"$W\" | {HEX}; echo; printf %s \"$X\" | {HEX}"
    );
    let expected = format!(
        "{}0a\n{}\n{}",
        hex(&all),
        hex(b"\xff\xfe\x80 \xc3"),
        hex(awkward.as_bytes())
    );
    site.terminal(&show).printed(&expected);
    // And after one more round, when the values only pass through.
    site.terminal("export OTHER=1").printed("");
    site.terminal(&show).printed(&expected);
    // A large one arrives whole, and nothing in it is executed.
    let make = "export L=$(head -c 102400 /dev/zero | tr '\\0' '(')\"'\\$(touch executed)}\"; \
                cd \"$(mktemp -d)\"; printf %s \"$L\" | sha256sum";
    let made = site.terminal(make);
    assert_eq!(made.code(), 0, "{}", made.0);
    let expected = made.output().repeat(2);
    site.terminal("printf %s \"$L\" | sha256sum; printf %s \"$(printenv L)\" | sha256sum; ls")
        .printed(&expected);
}

pub(crate) fn options_that_would_break_the_next_call_are_not_carried_over(kind: Kind) {
    let site = kind.site();
    site.terminal("set -o pipefail; shopt -s globstar; set -euxv")
        .code();
    let show = "set +o | grep -E 'errexit|nounset|xtrace|verbose|noexec|pipefail'; \
                shopt -q globstar && echo on";
    site.terminal(show).printed(
        "set +o errexit\nset +o noexec\nset +o nounset\nset -o pipefail\n\
         set +o verbose\nset +o xtrace\non\n",
    );
}

pub(crate) fn plain_variables_end_with_their_command_and_what_is_unset_stays_so(kind: Kind) {
    let site = kind.site();
    site.terminal("x=1; export Y=2; export -n Y; export Z=3")
        .printed("");
    site.terminal("echo ${x-unset} ${Y-unset} $Z; unset Z PATH_IS_NOT_SET")
        .printed("unset unset 3\n");
    site.terminal("echo ${Z-unset} $# \"$!\"")
        .printed("unset 0 \n");
}

pub(crate) fn a_command_that_breaks_its_shell_does_no_harm(kind: Kind) {
    let site = kind.site();
    site.terminal("cd /usr; export KEPT=yes; ok() { echo ok; }")
        .printed("");
    for command in [
        "exit 7",
        "set -e; false; echo no",
        "set -u; echo $nope; echo no",
        "exec true",
        "exec /nonexistent",
        "kill -9 $$",
        "if",
        "echo 'open",
        "cat <<EOF\nopen",
        "exec 0<&- 1>&- 2>&-",
        "enable -n builtin declare printf shopt",
        "trap '' EXIT; trap '' TERM HUP INT PIPE",
    ] {
        let broken = site.call(&json!({"command": command, "timeout": 10}));
        assert_eq!(broken.status(), "", "{command}: {}", broken.0);
        let next = site.terminal("ok; echo \"$KEPT\"; pwd; true");
        assert_eq!(
            (next.output(), next.code()),
            ("ok\nyes\n/usr\n", 0),
            "after `{command}`, which gave {}",
            broken.0
        );
    }
}

pub(crate) fn directories_with_awkward_names_are_kept(kind: Kind) {
    let site = kind.site();
    let work = site.enter_folder();
    for name in ["a b", "-n", "line\nbreak", "end\n", "'\"$(id)", "ü漢", "~"] {
        let path = format!("{work}/{name}");
        let folder = quoted(&path);
        site.terminal(&format!("mkdir -- {folder} && cd -- {folder}"))
            .printed("");
        // The shell must really be there, not only say so.
        site.terminal(&format!(
            "printf %s \"$PWD\" | {HEX}; echo; readlink -n /proc/self/cwd | {HEX}"
        ))
        .printed(&format!("{0}\n{0}", hex(path.as_bytes())));
        site.call(&json!({"command": format!("printf %s \"$PWD\" | {HEX}"), "workdir": path}))
            .printed(&hex(path.as_bytes()));
    }
}

pub(crate) fn a_directory_that_is_gone_is_said_once_and_the_call_works(kind: Kind) {
    let site = kind.site();
    let work = site.enter_folder();
    site.terminal("mkdir -p deep/er && cd deep/er").printed("");
    // Containers have a filesystem for each task; there the task itself removes it.
    let remover = match kind {
        Kind::Docker | Kind::Podman => "default",
        Kind::Local | Kind::Ssh | Kind::Command => "other",
    };
    site.task(remover, &format!("rm -r {work}/deep"))
        .printed("");
    let answer = site.terminal("pwd -P");
    assert_eq!(answer.code(), 0, "{}", answer.0);
    assert!(!answer.output().contains("deep"), "{}", answer.0);
    assert!(
        answer.hint().contains("deep/er") && answer.hint().contains("does not exist"),
        "{}",
        answer.0
    );
    assert_eq!(site.terminal("true").hint(), "");
}
