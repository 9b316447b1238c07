//! The words of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const AFTER_HELP: &str = "\
Examples:
  exoshell run 'echo hello'                       one command, streamed, like bash -c
  exoshell run --task web 'cd src && make'        in a session that remembers
  exoshell call terminal '{\"command\":\"pwd\"}'     one JSON object in, one out
  exoshell shell --task web                       a prompt into that session
  exoshell run --image debian:12 'cat /etc/issue' in a container of that image
  exoshell run --host build@box 'nproc'           on a remote host
  exoshell places ls                              what exists; `places rm --all` ends it

Exit codes of `run`: the command's own; 77 refused by the guard, 124 timeout, 125 our own
failure, 126/127 as sh, 130 interrupted.
Configuration: `exoshell config show`. Everything lives in EXOSHELL_HOME (default ~/.exoshell).";

/// The execution layer AI agents run on.
#[derive(Debug, Parser)]
#[command(
    name = "exoshell",
    version = env!("EXOSHELL_VERSION"),
    about,
    after_help = AFTER_HELP,
    propagate_version = false,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command and stream its output.
    Run(RunArgs),
    /// Call a tool with JSON arguments; prints one JSON object.
    Call(CallArgs),
    /// Open a prompt into a task's session.
    Shell(ShellArgs),
    /// List background processes.
    Ps(PsArgs),
    /// Print a process's output.
    Logs(LogsArgs),
    /// Wait for a process to end; exits with its code.
    Wait(WaitArgs),
    /// End a process and everything it started.
    Kill(KillArgs),
    /// Use a process's terminal; Ctrl-] detaches.
    Attach {
        /// The process.
        id: String,
    },
    /// Print what happened to processes: ends, matched lines, progress.
    Events(EventsArgs),
    /// List, describe and remove the places of tasks.
    #[command(subcommand)]
    Places(PlacesCommand),
    /// Say what the guard thinks of a command, without running it.
    Check(CheckArgs),
    /// List, answer and take back approvals. Only a person can.
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Show what was attempted, or check that the record of it is whole.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Look at what works on this machine, and say how to fix what does not.
    Doctor(DoctorArgs),
    /// Show where settings come from, or write a commented file.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the tools' schemas for a model.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Measure this machine: each number beside the plain tool, in one run.
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct RunArgs {
    /// The command, as shell text. Several words are joined by spaces.
    #[arg(required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    /// Run in this task's session, which keeps the directory, exported variables and functions.
    #[arg(long)]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Print one JSON object at the end instead of streaming.
    #[arg(long)]
    pub(crate) json: bool,
    /// Seconds until the command is ended; 0 is the configured limit.
    #[arg(long, value_name = "S")]
    pub(crate) timeout: Option<f64>,
    /// Directory for this command only.
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// A variable for this command only (repeatable).
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Pass this program's stdin on to the command; otherwise its stdin is empty.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Give it a terminal; at a terminal, this one.
    #[arg(long)]
    pub(crate) pty: bool,
    /// Start it as a process, print its id and return.
    #[arg(long)]
    pub(crate) background: bool,
    /// With --background: report its end in `exoshell events`.
    #[arg(long, requires = "background")]
    pub(crate) notify: bool,
    /// With --background: report lines that match this regular expression (repeatable).
    #[arg(long, value_name = "REGEX", requires = "background")]
    pub(crate) watch: Vec<String>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Where it runs")]
pub(crate) struct PlaceArgs {
    /// Kind of place: local, docker, podman, ssh or command.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Image of the task's container (backend docker).
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// A container that exists, by name or id; it is never removed (backend docker).
    #[arg(long, value_name = "NAME", conflicts_with = "image")]
    pub(crate) container: Option<String>,
    /// Remote host, as HOST, USER@HOST or USER@HOST:PORT, or an alias of ~/.ssh/config (backend ssh).
    #[arg(long, value_name = "HOST", conflicts_with_all = ["image", "container"])]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Only this backend.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Only those of this task.
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Also those that have ended.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The process.
    pub(crate) id: String,
    /// Go on as output comes, until it ends.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only the last so many lines.
    #[arg(long, short = 'n', value_name = "LINES")]
    pub(crate) tail: Option<u64>,
    /// Print one JSON object with the text as a model sees it.
    #[arg(long, conflicts_with = "follow")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The process.
    pub(crate) id: String,
    /// At most so many seconds; then exits with 124.
    #[arg(long, value_name = "S")]
    pub(crate) timeout: Option<f64>,
    /// Return with 0 when a line matches this regular expression.
    #[arg(long, value_name = "REGEX")]
    pub(crate) until: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The processes.
    #[arg(required = true)]
    pub(crate) id: Vec<String>,
    /// Send this signal instead of ending it for good.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) signal: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on as they come.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Who asks; each name gets each event once.
    #[arg(long, default_value = "cli")]
    pub(crate) consumer: String,
    /// Look without taking: the same events come again.
    #[arg(long)]
    pub(crate) peek: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool; `exoshell schema` lists them.
    pub(crate) tool: String,
    /// Its arguments as a JSON object, or `-` to read them from stdin.
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// The task; goes before a `task_id` among the arguments.
    #[arg(long)]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Accepted for symmetry: the answer is always JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// The task.
    #[arg(long, default_value = "default")]
    pub(crate) task: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Print one JSON object per command.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlacesCommand {
    /// List all places.
    Ls {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Describe the place of a task.
    Info {
        /// The task.
        task: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove the place of a task: end what runs in it and forget its state.
    Rm {
        /// The tasks.
        #[arg(required_unless_present = "all")]
        task: Vec<String>,
        /// Remove every place and end the guest, whoever uses it.
        #[arg(long, conflicts_with = "task")]
        all: bool,
        /// Forget a place even if it cannot be removed; what is left of it is then yours to
        /// remove.
        #[arg(long)]
        force: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 when it may run, 76 when a person is asked, 77 when it never runs."
)]
pub(crate) struct CheckArgs {
    /// The command, as shell text. Several words are joined by spaces.
    #[arg(required_unless_present = "jsonl", trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    /// Judge each line of stdin, a JSON string or an object with `command`; answers line by line.
    #[arg(long, conflicts_with = "command")]
    pub(crate) jsonl: bool,
    /// Directory it would start in; the current one unless told.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the questions that can be answered, and what is allowed.
    Ls {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a question in full.
    Show {
        /// The question.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow what a question asks, once: the next call that is exactly this one runs.
    Allow {
        /// The question.
        id: String,
        /// Everything of its kind, for its session.
        #[arg(long)]
        session: bool,
        /// Everything of its kind, from now on.
        #[arg(long, conflicts_with = "session")]
        always: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say no to what a question asks.
    Deny {
        /// The question.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take back what was allowed for sessions or for good, or the answer to a question.
    Revoke {
        /// What, as `category:target`, or the question.
        #[arg(required_unless_present = "all")]
        key: Option<String>,
        /// Everything.
        #[arg(long, conflicts_with = "key")]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show questions as they come, and answer them at a terminal.
    Watch {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
}

impl ApprovalsCommand {
    /// Tells whether JSON was asked for.
    pub(crate) const fn is_json(&self) -> bool {
        match self {
            Self::Ls { json }
            | Self::Show { json, .. }
            | Self::Allow { json, .. }
            | Self::Deny { json, .. }
            | Self::Revoke { json, .. }
            | Self::Watch { json } => *json,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List what was attempted, who allowed it and how it ended.
    Show {
        /// Only that of this task.
        #[arg(long)]
        task: Option<String>,
        /// Only the last so many attempts.
        #[arg(long, short = 'n', value_name = "N")]
        tail: Option<usize>,
        /// Print one JSON object per line: the start record and the end record.
        #[arg(long)]
        json: bool,
    },
    /// Check that no record was changed, removed or moved; exits with 1 if one was.
    Verify {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting and where it comes from.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the configuration file.
    Path {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a commented configuration file; never overwrites one.
    Init {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Whose format.
    #[arg(long, value_enum, default_value_t = Format::Openai)]
    pub(crate) format: Format,
    /// Accepted for symmetry: the schema is always JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Functions of the `OpenAI` API.
    Openai,
    /// Tools of the Anthropic API.
    Anthropic,
    /// Tools of an MCP server.
    Mcp,
}

#[derive(Debug, Args)]
#[command(after_help = BENCH_HELP)]
pub(crate) struct BenchArgs {
    /// Print JSON: `{"rows":[{"name","ours_ms","baseline","baseline_ms","ratio"}]}`.
    #[arg(long)]
    pub(crate) json: bool,
    /// Fewer rounds, for a first look.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only rows whose name contains this.
    #[arg(long, value_name = "WORD")]
    pub(crate) only: Option<String>,
    /// The image of the docker and podman rows, which must be there already; the configured one
    /// unless told. Engines without it are left out.
    #[arg(long)]
    pub(crate) image: Option<String>,
    /// Measure the ssh rows on this host (USER@HOST:PORT) instead of on a throw-away sshd
    /// on this machine.
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// Also make 100 docker places at once (10 with --quick). It takes minutes.
    #[arg(long)]
    pub(crate) crowd: bool,
}

/// What the rows of places need.
const BENCH_HELP: &str = "\
Rows of other places are measured where they can be: docker and podman if the engine answers and \
has the image, ssh if `ssh`, `sshd` and `ssh-keygen` are installed (or with --host). What is left \
out is said on stderr and is no failure. `--only docker`, `--only podman` and `--only ssh` measure \
one of them; `--only places` is the crowd of --crowd. All containers, keys and servers are the \
bench's own and are gone when it ends; on a --host, the guest stays as after any use.";
