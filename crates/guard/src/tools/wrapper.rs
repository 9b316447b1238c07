//! Programs that run another program: they are taken off and the rest is judged.

use super::options::{Grammar, Options};
use super::shell::{Kind, SHELLS};
use crate::finding::Target;
use crate::run::{Argument, Call, Origin, Run, Stream};
use crate::text::UNKNOWN;

/// How a wrapper finds the command it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// Letters and long names of options that take a value.
    short: &'static str,
    long: &'static [&'static str],
    /// Operands before the command.
    skip: usize,
    /// Letters and long names whose value is shell code.
    code: (&'static str, &'static [&'static str]),
    /// Options that mean that nothing is run.
    idle: &'static str,
    rest: Rest,
}

/// What the words after the options are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Command,
    /// `NAME=value` may come first.
    Assignments,
    /// Shell code in one or more words.
    Code,
    /// Each word is shell code of its own.
    Codes,
    /// Runs somewhere else: nothing there is blocked.
    Elsewhere,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    short: "",
    long: &[],
    skip: 0,
    code: ("", &[]),
    idle: "",
    rest: Rest::Command,
};

const fn plain(names: &'static [&'static str]) -> Wrapper {
    Wrapper { names, ..PLAIN }
}

const fn with(
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        names,
        short,
        long,
        ..PLAIN
    }
}

pub(super) const WRAPPERS: &[Wrapper] = &[
    plain(&[
        "nohup",
        "builtin",
        "eatmydata",
        "linux32",
        "linux64",
        "setarch",
        "arch",
        "catchsegv",
        "dbus-run-session",
        "fakeroot",
        "winpty",
        "unbuffer",
        "tsocks",
        "torify",
        "torsocks",
        "rlwrap",
        "stdout",
        "ts",
        "chronic",
        "ifne",
        "pee",
        "sponge-run",
        "noglob",
        "nocorrect",
        "gamemoderun",
        "primusrun",
        "optirun",
        "proxychains",
        "proxychains4",
        "detach",
        "dbus-launch",
        "aa-exec",
        "pasuspender",
        "softlimit",
        "chpst",
        "envchain",
        "git-crypt-exec",
        "faketime-run",
        "i386",
        "x86_64",
        "uname26",
        "with-contenv",
        "dumb-init",
        "tini",
        "catatonit",
        "sem",
        "retry",
        "command-not-found-run",
    ]),
    with(&["setarch_"], "", &[]),
    with(&["nice"], "n", &["adjustment"]),
    Wrapper {
        names: &["ionice"],
        short: "cnpPu",
        long: &["class", "classdata", "pid", "pgid", "uid"],
        idle: "pPu",
        ..PLAIN
    },
    with(&["setsid"], "", &[]),
    Wrapper {
        names: &["timeout", "gtimeout"],
        short: "ks",
        long: &["kill-after", "signal"],
        skip: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["timelimit"],
        short: "tTsS",
        long: &[],
        ..PLAIN
    },
    with(&["time", "gtime"], "fo", &["format", "output"]),
    with(&["stdbuf"], "ioe", &["input", "output", "error"]),
    Wrapper {
        names: &["chrt"],
        short: "TPDp",
        long: &["sched-runtime", "sched-period", "sched-deadline", "pid"],
        skip: 1,
        idle: "pm",
        ..PLAIN
    },
    Wrapper {
        names: &["taskset"],
        short: "",
        long: &[],
        skip: 1,
        idle: "p",
        ..PLAIN
    },
    Wrapper {
        names: &["numactl"],
        short: "NmipCl",
        long: &[
            "membind",
            "cpunodebind",
            "interleave",
            "preferred",
            "physcpubind",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["flock"],
        short: "wE",
        long: &["wait", "timeout", "conflict-exit-code"],
        skip: 1,
        code: ("c", &["command"]),
        ..PLAIN
    },
    Wrapper {
        names: &["lockf"],
        short: "t",
        long: &[],
        skip: 1,
        ..PLAIN
    },
    with(
        &["strace"],
        "aeEIoOpPsSuUX",
        &[
            "trace",
            "output",
            "attach",
            "user",
            "env",
            "string-limit",
            "signal",
            "status",
        ],
    ),
    with(&["ltrace"], "aeFlnopSsux", &["output", "library"]),
    with(
        &["valgrind", "perf-stat", "heaptrack", "rr-record"],
        "",
        &[],
    ),
    Wrapper {
        names: &["watch", "viddy", "hwatch"],
        short: "nq",
        long: &["interval", "equexit"],
        rest: Rest::Code,
        ..PLAIN
    },
    Wrapper {
        names: &["script"],
        short: "cEILOBTmo",
        long: &[
            "command",
            "echo",
            "log-in",
            "log-out",
            "log-io",
            "log-timing",
            "output-limit",
        ],
        code: ("c", &["command"]),
        skip: 1,
        ..PLAIN
    },
    with(&["caffeinate"], "tw", &[]),
    with(&["systemd-inhibit"], "", &["what", "who", "why", "mode"]),
    with(&["proot"], "rbwvSRkqi", &["rootfs", "bind", "cwd"]),
    Wrapper {
        names: &["chroot", "arch-chroot"],
        short: "u",
        long: &["userspec", "groups"],
        skip: 1,
        ..PLAIN
    },
    with(
        &["unshare"],
        "SGRw",
        &[
            "setuid",
            "setgid",
            "root",
            "wd",
            "map-user",
            "map-group",
            "propagation",
            "mount-proc",
        ],
    ),
    with(&["nsenter"], "tSGrw", &["target", "setuid", "setgid"]),
    Wrapper {
        names: &["systemd-run"],
        short: "pHMGE",
        long: &[
            "unit",
            "property",
            "description",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "on-active",
            "on-boot",
            "on-startup",
            "on-unit-active",
            "on-unit-inactive",
            "on-calendar",
            "timer-property",
            "path-property",
            "socket-property",
            "host",
            "machine",
            "service-type",
        ],
        ..PLAIN
    },
    with(&["systemd-cat"], "tp", &["identifier", "priority"]),
    with(&["firejail"], "", &[]),
    with(
        &["prlimit", "choom", "cpulimit", "cgexec"],
        "ongplec",
        &["pid", "limit"],
    ),
    with(
        &["xvfb-run"],
        "efnpsw",
        &[
            "error-file",
            "auth-file",
            "server-num",
            "server-args",
            "wait",
        ],
    ),
    with(&["ssh-agent"], "atEOP", &[]),
    with(
        &[
            "dotenv",
            "dotenvx",
            "dotenv-cli",
            "env-cmd",
            "cross-env",
            "cross-env-shell",
        ],
        "fepv",
        &["file"],
    ),
    Wrapper {
        names: &["sshpass"],
        short: "pfdP",
        long: &[],
        ..PLAIN
    },
    Wrapper {
        names: &["gosu", "su-exec", "chpst_", "setuidgid", "s6-setuidgid"],
        skip: 1,
        ..PLAIN
    },
    with(
        &["setpriv"],
        "",
        &[
            "reuid",
            "regid",
            "groups",
            "ruid",
            "euid",
            "rgid",
            "egid",
            "securebits",
            "pdeathsig",
        ],
    ),
    with(
        &["run0"],
        "uDg",
        &["user", "unit", "property", "chdir", "nice", "group"],
    ),
    with(
        &["start-stop-daemon"],
        "xnpucgdsR",
        &[
            "exec", "name", "pidfile", "user", "chuid", "startas", "chdir", "signal", "retry",
        ],
    ),
    with(&["daemonize"], "acEeolpu", &[]),
    Wrapper {
        names: &["entr"],
        short: "",
        long: &[],
        code: ("", &[]),
        ..PLAIN
    },
    Wrapper {
        names: &[
            "watchexec",
            "inotifywait-run",
            "reflex",
            "cargo-watch",
            "chokidar",
        ],
        short: "wefioscdrt",
        long: &[
            "watch", "exts", "filter", "ignore", "signal", "shell", "debounce", "command", "exec",
        ],
        code: ("c", &["command", "exec"]),
        rest: Rest::Code,
        ..PLAIN
    },
    Wrapper {
        names: &["nodemon"],
        short: "xewid",
        long: &["exec", "ext", "watch", "ignore", "delay"],
        code: ("x", &["exec"]),
        rest: Rest::Assignments,
        ..PLAIN
    },
    Wrapper {
        names: &["hyperfine", "multitime", "poop"],
        short: "wmMrpcnNsSLDPiu",
        long: &[
            "warmup",
            "min-runs",
            "max-runs",
            "runs",
            "setup",
            "prepare",
            "conclude",
            "cleanup",
            "shell",
            "style",
            "export-json",
            "export-csv",
            "export-markdown",
            "parameter-list",
            "parameter-scan",
            "command-name",
            "time-unit",
        ],
        code: ("pcs", &["prepare", "setup", "cleanup", "conclude"]),
        rest: Rest::Codes,
        ..PLAIN
    },
    Wrapper {
        names: &["concurrently"],
        short: "nckpm",
        long: &["names", "prefix", "prefix-colors"],
        rest: Rest::Codes,
        ..PLAIN
    },
    Wrapper {
        names: &["mpirun", "mpiexec", "srun", "orterun", "horovodrun"],
        short: "nNHptcJoeAGwx",
        long: &[
            "np",
            "host",
            "hostfile",
            "ntasks",
            "nodes",
            "partition",
            "time",
            "mem",
            "gres",
            "account",
            "job-name",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["sbatch", "qsub", "bsub"],
        short: "pntJoecNAqlM",
        long: &[
            "wrap",
            "partition",
            "time",
            "nodes",
            "ntasks",
            "output",
            "error",
            "job-name",
        ],
        code: ("", &["wrap"]),
        idle: "_",
        ..PLAIN
    },
    Wrapper {
        names: &["pdsh", "clush", "dsh", "pssh", "parallel-ssh"],
        short: "wgxlftuhHBiIo",
        long: &["hosts", "host", "user"],
        rest: Rest::Code,
        ..PLAIN
    },
    Wrapper {
        names: &["expect_unbuffer", "faketime"],
        skip: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["perf"],
        skip: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["tmux-run"],
        rest: Rest::Code,
        ..PLAIN
    },
    with(
        &["bwrap"],
        "",
        &[
            "bind", "ro-bind", "dev", "proc", "tmpfs", "chdir", "setenv", "unsetenv", "uid", "gid",
            "hostname", "dir", "file", "symlink",
        ],
    ),
];

/// Programs that run a command only after certain words: `uv run`, `aws-vault exec profile --`.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) name: &'static str,
    words: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    skip: usize,
    code: (&'static str, &'static [&'static str]),
    rest: Rest,
}

const fn runner(name: &'static str, words: &'static [&'static str], skip: usize) -> Runner {
    Runner {
        name,
        words,
        short: "",
        long: &[],
        skip,
        code: ("", &[]),
        rest: Rest::Command,
    }
}

const CONTAINER_LONG: &[&str] = &[
    "name",
    "volume",
    "env",
    "env-file",
    "workdir",
    "user",
    "publish",
    "network",
    "entrypoint",
    "mount",
    "memory",
    "cpus",
    "hostname",
    "label",
    "platform",
    "add-host",
    "device",
    "cap-add",
    "cap-drop",
    "security-opt",
    "ulimit",
    "shm-size",
    "tmpfs",
    "restart",
    "pull",
    "log-driver",
    "log-opt",
    "ip",
    "dns",
    "gpus",
    "runtime",
    "detach-keys",
    "container",
    "namespace",
    "image",
    "overrides",
    "kubeconfig",
    "context",
    "cidfile",
    "volumes-from",
    "link",
    "expose",
    "group-add",
    "pids-limit",
    "stop-signal",
    "cgroup-parent",
    "index",
    "service-ports_",
    "file",
    "project-name",
];

pub(super) const RUNNERS: &[Runner] = &[
    runner("uv", &["run"], 0),
    runner("poetry", &["run"], 0),
    runner("pipenv", &["run"], 0),
    runner("pdm", &["run"], 0),
    runner("hatch", &["run"], 0),
    runner("rye", &["run"], 0),
    runner("bundle", &["exec"], 0),
    runner("rbenv", &["exec"], 0),
    runner("pyenv", &["exec"], 0),
    runner("nodenv", &["exec"], 0),
    runner("asdf", &["exec"], 0),
    runner("mise", &["exec"], 0),
    runner("mise", &["x"], 0),
    runner("pnpm", &["exec"], 0),
    runner("pnpm", &["dlx"], 0),
    runner("yarn", &["exec"], 0),
    runner("yarn", &["dlx"], 0),
    runner("bun", &["x"], 0),
    runner("rustup", &["run"], 1),
    runner("direnv", &["exec"], 1),
    runner("op", &["run"], 0),
    runner("doppler", &["run"], 0),
    runner("infisical", &["run"], 0),
    runner("teller", &["run"], 0),
    runner("chamber", &["exec"], 1),
    runner("aws-vault", &["exec"], 1),
    runner("vault-env", &[], 0),
    runner("sops", &["exec-env"], 1),
    runner("sops", &["exec-file"], 1),
    runner("snap", &["run"], 0),
    runner("flatpak-spawn", &[], 0),
    runner("nvm", &["exec"], 1),
    runner("devbox", &["run"], 0),
    runner("ddev", &["exec"], 0),
    runner("lando", &["ssh"], 0),
    runner("xcrun", &[], 0),
    runner("perf", &["record"], 0),
    runner("perf", &["stat"], 0),
    runner("perf", &["trace"], 0),
    Runner {
        name: "conda",
        words: &["run"],
        short: "np",
        long: &["name", "prefix", "cwd"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "mamba",
        words: &["run"],
        short: "np",
        long: &["name", "prefix", "cwd"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "npx",
        words: &[],
        short: "pc",
        long: &["package", "call"],
        code: ("c", &["call"]),
        ..runner("", &[], 0)
    },
    Runner {
        name: "bunx",
        words: &[],
        short: "p",
        long: &["package"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "npm",
        words: &["exec"],
        short: "cpw",
        long: &["call", "package", "workspace"],
        code: ("c", &["call"]),
        ..runner("", &[], 0)
    },
    Runner {
        name: "npm",
        words: &["x"],
        short: "cpw",
        long: &["call", "package", "workspace"],
        code: ("c", &["call"]),
        ..runner("", &[], 0)
    },
    Runner {
        name: "nix",
        words: &["develop"],
        short: "c",
        long: &["command"],
        code: ("", &[]),
        ..runner("", &[], 0)
    },
    Runner {
        name: "nix-shell",
        words: &[],
        short: "pAI",
        long: &["run", "command", "packages"],
        code: ("", &["run", "command"]),
        rest: Rest::Command,
        ..runner("", &[], 99)
    },
    Runner {
        name: "docker",
        words: &["exec"],
        short: "ewudn",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "podman",
        words: &["exec"],
        short: "ewudn",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "nerdctl",
        words: &["exec"],
        short: "ewudn",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker",
        words: &["container", "exec"],
        short: "ewu",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker",
        words: &["run"],
        short: "vewuphmlac",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker",
        words: &["container", "run"],
        short: "vewuphmlac",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "podman",
        words: &["run"],
        short: "vewuphmlac",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "nerdctl",
        words: &["run"],
        short: "vewuphmlac",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker",
        words: &["compose", "exec"],
        short: "ewuf",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker",
        words: &["compose", "run"],
        short: "vewupf",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker-compose",
        words: &["exec"],
        short: "ewuf",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "docker-compose",
        words: &["run"],
        short: "vewupf",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "kubectl",
        words: &["exec"],
        short: "cnfs",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "oc",
        words: &["exec"],
        short: "cnf",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "oc",
        words: &["rsh"],
        short: "cnf",
        long: CONTAINER_LONG,
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "lxc",
        words: &["exec"],
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "incus",
        words: &["exec"],
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "lxc-attach",
        words: &[],
        short: "n",
        long: &["name"],
        rest: Rest::Elsewhere,
        ..runner("", &[], 0)
    },
    Runner {
        name: "podman",
        words: &["unshare"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "singularity",
        words: &["exec"],
        short: "BHW",
        long: &["bind", "home", "pwd"],
        ..runner("", &[], 1)
    },
    Runner {
        name: "apptainer",
        words: &["exec"],
        short: "BHW",
        long: &["bind", "home", "pwd"],
        ..runner("", &[], 1)
    },
    Runner {
        name: "machinectl",
        words: &["shell"],
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "toolbox",
        words: &["run"],
        short: "c",
        long: &["container"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "distrobox",
        words: &["enter"],
        short: "n",
        long: &["name"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "distrobox-enter",
        words: &[],
        short: "n",
        long: &["name"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "multipass",
        words: &["exec"],
        rest: Rest::Elsewhere,
        ..runner("", &[], 1)
    },
    Runner {
        name: "limactl",
        words: &["shell"],
        ..runner("", &[], 1)
    },
    Runner {
        name: "colima",
        words: &["ssh"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "vagrant",
        words: &["ssh"],
        short: "c",
        long: &["command"],
        code: ("c", &["command"]),
        rest: Rest::Elsewhere,
        ..runner("", &[], 99)
    },
    Runner {
        name: "gcloud",
        words: &["compute", "ssh"],
        long: &["command", "zone", "project"],
        code: ("", &["command"]),
        ..runner("", &[], 99)
    },
    Runner {
        name: "heroku",
        words: &["run"],
        short: "a",
        long: &["app"],
        rest: Rest::Elsewhere,
        ..runner("", &[], 0)
    },
    Runner {
        name: "fly",
        words: &["ssh", "console"],
        short: "Ca",
        long: &["command", "app"],
        code: ("C", &["command"]),
        rest: Rest::Elsewhere,
        ..runner("", &[], 99)
    },
    Runner {
        name: "flyctl",
        words: &["ssh", "console"],
        short: "Ca",
        long: &["command", "app"],
        code: ("C", &["command"]),
        rest: Rest::Elsewhere,
        ..runner("", &[], 99)
    },
    Runner {
        name: "repo",
        words: &["forall"],
        short: "c",
        long: &["command"],
        code: ("c", &["command"]),
        ..runner("", &[], 99)
    },
    Runner {
        name: "lerna",
        words: &["exec"],
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["new-session"],
        short: "csnxytFe",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["new"],
        short: "csnxytFe",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["new-window"],
        short: "cntFe",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["neww"],
        short: "cntFe",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["split-window"],
        short: "cltFep",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["run-shell"],
        short: "cdt",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["run"],
        short: "cdt",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["if-shell"],
        short: "t",
        long: &[],
        rest: Rest::Codes,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["respawn-pane"],
        short: "cte",
        long: &[],
        rest: Rest::Code,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["send-keys"],
        short: "tN",
        long: &[],
        rest: Rest::Codes,
        ..runner("", &[], 0)
    },
    Runner {
        name: "tmux",
        words: &["send"],
        short: "tN",
        long: &[],
        rest: Rest::Codes,
        ..runner("", &[], 0)
    },
    Runner {
        name: "screen",
        words: &[],
        short: "cSshTetpX",
        long: &[],
        ..runner("", &[], 0)
    },
    Runner {
        name: "byobu",
        words: &[],
        ..runner("", &[], 0)
    },
    Runner {
        name: "dtach",
        words: &[],
        short: "Ancer",
        ..runner("", &[], 0)
    },
    Runner {
        name: "abduco",
        words: &[],
        short: "Ance",
        ..runner("", &[], 0)
    },
    Runner {
        name: "xterm",
        words: &[],
        short: "T",
        long: &[],
        ..runner("", &[], 0)
    },
    Runner {
        name: "go",
        words: &["generate_"],
        ..runner("", &[], 0)
    },
];

/// Judges the command inside, if this is a wrapper.
pub(super) fn judge(
    run: &mut Run<'_>,
    call: &Call<'_>,
    wrapper: Option<&Wrapper>,
    runners: &[&Runner],
) -> Option<Stream> {
    if let Some(wrapper) = wrapper {
        return Some(wrapped(run, call, wrapper));
    }
    if call.name == "cargo"
        && call
            .arguments
            .first()
            .is_some_and(|first| first.text == "watch")
    {
        let options = Options::parse(
            &call.arguments[1..],
            Grammar::new("xsw", &["exec", "shell", "watch"]),
        );
        for (code, _) in options.values("s", "shell") {
            run.executes_text(code, call.span);
        }
        return Some(Stream::unknown());
    }
    runners.iter().find_map(|runner| runs(run, call, runner))
}

fn wrapped(run: &mut Run<'_>, call: &Call<'_>, wrapper: &Wrapper) -> Stream {
    let single_dash = call.name == "valgrind";
    let grammar = Grammar {
        single_dash,
        ..Grammar::new(wrapper.short, wrapper.long).stopping()
    };
    let options = Options::parse(call.arguments, grammar);
    if options.asks_for_help() || (!wrapper.idle.is_empty() && options.short(wrapper.idle)) {
        return Stream::unknown();
    }
    codes(run, call, &options, wrapper.code);
    let first = options.operands.get(wrapper.skip).map(|operand| operand.at);
    let Some(mut first) = first else {
        return Stream::unknown();
    };
    if matches!(call.name, "setarch" | "arch")
        && options.operands.len() > 1
        && is_architecture(options.operands[0].text)
    {
        first += 1;
    }
    let words = &call.arguments[first..];
    // `flock file -c code`: the option comes after the operand.
    if let [option, code, ..] = words
        && !wrapper.code.0.is_empty()
        && (option
            .text
            .strip_prefix('-')
            .is_some_and(|letter| wrapper.code.0 == letter)
            || option.text == "--command")
    {
        return run.subshell(|run| run.executes_text(&code.text, code.span));
    }
    rest(run, call, words, wrapper.rest)
}

fn is_architecture(text: &str) -> bool {
    matches!(
        text,
        "x86_64"
            | "i386"
            | "i686"
            | "arm64"
            | "aarch64"
            | "linux32"
            | "linux64"
            | "ppc64"
            | "s390x"
    )
}

/// Judges option values that are shell code.
fn codes(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>, code: (&str, &[&str])) {
    for flag in &options.flags {
        let named = if flag.long {
            code.1.contains(&flag.name)
        } else {
            !code.0.is_empty() && code.0.contains(flag.name)
        };
        if let Some(text) = flag.value.filter(|_| named) {
            let span = call.span_of(flag.at);
            run.subshell(|run| run.executes_text(text, span));
        }
    }
}

/// Judges what a wrapper runs.
fn rest(run: &mut Run<'_>, call: &Call<'_>, words: &[Argument], rest: Rest) -> Stream {
    let words = match words.split_first() {
        Some((dashes, after)) if dashes.text == "--" => after,
        _ => words,
    };
    match rest {
        Rest::Command => command(run, words, call),
        Rest::Assignments => {
            let from = assignments(run, words);
            command(run, &words[from..], call)
        }
        Rest::Code => {
            let code: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            let code = code.join(" ");
            run.subshell(|run| run.script(&code, call.span))
        }
        Rest::Codes => {
            for word in words {
                run.subshell(|run| run.script(&word.text, word.span));
                if call.name == "hyperfine" {
                    run.report("tool-runs-command", word.span, Target::None, &word.text);
                }
            }
            Stream::unknown()
        }
        Rest::Elsewhere => {
            let outer = run.state.cwd.take();
            let output = run.at_most_ask(|run| command(run, words, call));
            run.state.cwd = outer;
            output
        }
    }
}

fn command(run: &mut Run<'_>, words: &[Argument], call: &Call<'_>) -> Stream {
    run.run_words(words, call.span, call.bulk)
}

/// Judges `NAME=value` words; returns how many there are.
fn assignments(run: &mut Run<'_>, words: &[Argument]) -> usize {
    let mut count = 0;
    for word in words {
        let Some((name, value)) = word.text.split_once('=') else {
            break;
        };
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'%')
        {
            break;
        }
        run.environment(name, value, word.span);
        count += 1;
    }
    count
}

fn runs(run: &mut Run<'_>, call: &Call<'_>, runner: &Runner) -> Option<Stream> {
    let mut from = 0;
    if !runner.words.is_empty() {
        // Options of the program itself may come before its words.
        let options = Options::parse(call.arguments, super::programs::grammar(call.name));
        let mut operands = options
            .operands
            .iter()
            .skip_while(|operand| operand.doubtful && operand.text != runner.words[0]);
        for word in runner.words {
            let operand = operands.next().filter(|operand| operand.text == *word)?;
            from = operand.at + 1;
        }
    }
    let options = Options::parse(
        &call.arguments[from..],
        Grammar::new(runner.short, runner.long).stopping(),
    );
    if options.asks_for_help() {
        return Some(Stream::unknown());
    }
    let inner = Call {
        arguments: &call.arguments[from..],
        ..*call
    };
    codes(run, &inner, &options, runner.code);
    let first = options.operands.get(runner.skip).map(|operand| operand.at);
    let words = match first {
        Some(first) => &inner.arguments[first..],
        None => {
            // `kubectl exec pod -- command`: the dashes end the options before the command.
            match inner
                .arguments
                .iter()
                .position(|argument| argument.text == "--")
            {
                Some(at) if runner.skip < 99 => &inner.arguments[at + 1..],
                _ => return None,
            }
        }
    };
    if words.is_empty() {
        return None;
    }
    if call.name == "screen" && !options.short("dDmS") && options.short("rxl") {
        return None;
    }
    if matches!(call.name, "docker" | "podman" | "nerdctl") {
        container(run, call);
    }
    if let Some(entrypoint) = options
        .value("", "entrypoint")
        .filter(|entrypoint| !entrypoint.is_empty())
    {
        let mut with = vec![Argument {
            text: entrypoint.to_owned(),
            span: call.span,
        }];
        with.extend_from_slice(words);
        return Some(rest(run, call, &with, runner.rest));
    }
    if matches!(call.name, "vagrant" | "gcloud" | "nix-shell") {
        return Some(Stream::unknown());
    }
    Some(rest(run, call, words, runner.rest))
}

/// Containers that hold the host: its root mounted, its namespaces, all privileges.
fn container(run: &mut Run<'_>, call: &Call<'_>) {
    for (index, argument) in call.arguments.iter().enumerate() {
        let text = argument.text.as_str();
        let value = text.split_once('=').map_or_else(
            || {
                call.arguments
                    .get(index + 1)
                    .map_or("", |next| next.text.as_str())
            },
            |(_, value)| value,
        );
        let mounts = matches!(text, "-v" | "--volume")
            || text.starts_with("--volume=")
            || text.starts_with("--mount");
        let host_root = mounts
            && (value.starts_with("/:")
                || value.contains("source=/,")
                || value.contains("src=/,")
                || value.starts_with("/etc:")
                || value.contains("docker.sock"));
        let attached = text
            .strip_prefix("-v")
            .is_some_and(|rest| rest.starts_with("/:") || rest.contains("docker.sock"));
        if host_root
            || attached
            || text == "--privileged"
            || text == "--pid=host"
            || text.starts_with("--cap-add=ALL")
            || text.starts_with("--cap-add=SYS_ADMIN")
        {
            run.report("container-escape", argument.span, Target::System, text);
        }
    }
}

/// Judges the wrappers that have a way of their own.
pub(super) fn special(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    Some(match call.name {
        "env" => env(run, call),
        "sudo" => sudo(run, call),
        "doas" | "pkexec" => doas(run, call),
        "su" | "runuser" => su(run, call),
        "command" => return command_builtin(run, call),
        "exec" => {
            let options = Options::parse(call.arguments, Grammar::new("a", &[]).stopping());
            let first = options.operands.first()?.at;
            command(run, &call.arguments[first..], call)
        }
        "entr" => entr(run, call),
        "busybox" | "toybox" => {
            call.arguments
                .first()
                .filter(|first| !first.text.starts_with('-'))?;
            command(run, call.arguments, call)
        }
        name if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" => {
            return loader(run, call);
        }
        _ => return None,
    })
}

/// The dynamic loader, run by hand, runs a program.
fn loader(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    let options = Options::parse(
        call.arguments,
        Grammar::new("", &["library-path", "preload", "audit", "argv0"]).stopping(),
    );
    let first = options.operands.first()?.at;
    run.report("tool-runs-command", call.span, Target::None, call.name);
    Some(command(run, &call.arguments[first..], call))
}

fn env(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("uCSPa", &["unset", "chdir", "split-string", "argv0"]).stopping(),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let outer = run.state.cwd.clone();
    if let Some(directory) = options.value("C", "chdir") {
        let resolved = run.paths().resolve(directory);
        run.state.cwd = resolved.map(|resolved| resolved.path.into());
    }
    let split = options.values("S", "split-string").next();
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    let mut words = Vec::new();
    if let Some((text, at)) = split {
        words.extend(text.split_whitespace().map(|word| Argument {
            text: unquoted(word),
            span: call.span_of(at),
        }));
        if text.contains(['\'', '"', '\\']) {
            words = split_string(text, call.span_of(at));
        }
    }
    words.extend_from_slice(&call.arguments[from..]);
    let skip = assignments(run, &words);
    let output = if words.len() > skip {
        command(run, &words[skip..], call)
    } else {
        Stream::from(Origin::SECRET)
    };
    run.state.cwd = outer;
    output
}

fn unquoted(word: &str) -> String {
    word.trim_matches(['\'', '"']).to_owned()
}

/// Splits as `env -S` does: blanks and quotes, nothing else.
fn split_string(text: &str, span: crate::finding::Span) -> Vec<Argument> {
    let mut words: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => match characters.next() {
                Some('_' | 't' | 'n') if quote.is_none() => words.extend(current.take()),
                Some(next) => current.get_or_insert_default().push(next),
                None => {}
            },
            (_, Some(open)) if character == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(character);
                current.get_or_insert_default();
            }
            (blank, None) if blank.is_whitespace() => words.extend(current.take()),
            (other, _) => current.get_or_insert_default().push(other),
        }
    }
    words.extend(current);
    words
        .into_iter()
        .map(|text| Argument { text, span })
        .collect()
}

fn sudo(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    const LONG: &[&str] = &[
        "user",
        "group",
        "host",
        "prompt",
        "close-from",
        "role",
        "type",
        "command-timeout",
        "other-user",
        "chdir",
        "chroot",
        "preserve-env_",
    ];
    let options = Options::parse(call.arguments, Grammar::new("ughpCrtTUDR", LONG).stopping());
    if options.asks_for_help()
        || options.short("VlvkK") && options.operands.is_empty() && !options.short("sSiA")
    {
        return Stream::unknown();
    }
    if options.has("S", "stdin") || options.has("A", "askpass") {
        run.report("password-input", call.span, Target::None, "");
    }
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    let words = &call.arguments[from..];
    let words = &words[assignments(run, words)..];
    if options.has("e", "edit") {
        for word in words {
            run.writes_to(&word.text, false, word.span);
        }
        return Stream::unknown();
    }
    let shell = options.short("si") || options.long_flag("shell") || options.long_flag("login");
    root(run, call, words, shell)
}

/// Runs words as root; a shell without anything to do is a root shell.
fn root(run: &mut Run<'_>, call: &Call<'_>, words: &[Argument], shell: bool) -> Stream {
    let Some(first) = words.first() else {
        if shell {
            run.report("root-shell", call.span, Target::None, "");
        }
        return Stream::unknown();
    };
    let name = first.text.rsplit('/').next().unwrap_or_default();
    let bare = words[1..]
        .iter()
        .all(|word| word.text.starts_with('-') && !word.text.contains('c'))
        && run.stdin.is_none();
    if bare && (SHELLS.contains(&name) || name == "su") {
        run.report("root-shell", call.span, Target::None, name);
    }
    command(run, words, call)
}

fn doas(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("uC", &["user"]).stopping());
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    root(run, call, &call.arguments[from..], options.short("s"))
}

fn su(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "cgGsuwC",
            &[
                "command",
                "group",
                "supp-group",
                "shell",
                "user",
                "session-command",
            ],
        ),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let code = options
        .value("cC", "command")
        .or_else(|| options.value("", "session-command"));
    if let Some(code) = code {
        return run.subshell(|run| run.executes_text(code, call.span));
    }
    if call.name == "runuser" && options.value("u", "user").is_some() {
        let from = options
            .operands
            .first()
            .map_or(call.arguments.len(), |operand| operand.at);
        return root(run, call, &call.arguments[from..], false);
    }
    run.report("root-shell", call.span, Target::None, call.name);
    if let Some(stream) = run.stdin.clone() {
        run.executes_stream(&stream, Kind::Shell, call.span);
    }
    Stream::unknown()
}

fn command_builtin(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    let options = Options::parse(call.arguments, Grammar::PLAIN.stopping());
    let first = options.operands.first()?.at;
    if options.short("vV") {
        return Some(Stream::known(format!("{}\n", call.arguments[first].text)));
    }
    // Functions and aliases are passed over.
    let words = &call.arguments[first..];
    let name = words[0].text.rsplit('/').next().unwrap_or_default();
    if name.contains(UNKNOWN) {
        return Some(command(run, words, call));
    }
    run.deeper(call.span, |run| {
        Some(super::judge(
            run,
            &Call {
                name,
                word: &words[0].text,
                arguments: &words[1..],
                ..*call
            },
        ))
        .unwrap_or_default()
    })
    .into()
}

/// `entr -s code`, or a command in which `/_` is the changed file.
fn entr(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN.stopping());
    let Some(first) = options.operands.first() else {
        return Stream::unknown();
    };
    if options.short("s") {
        return run.executes_text(first.text, call.span);
    }
    command(run, &call.arguments[first.at..], call)
}
