//! What each word does.

mod approvals;
mod attach;
mod audit;
mod call;
mod check;
mod config;
mod doctor;
mod events;
pub(crate) mod place_args;
mod places;
mod processes;
mod run;
mod shell;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use exoshell_runtime::config::{Config, Environment, Resolved};
use exoshell_runtime::{EventKind, Interrupt, Runtime, RuntimeError, SchemaFormat, schemas};

use crate::args::{Cli, Command, Format, PlaceArgs};
use crate::output;
use crate::prompt::TerminalApprover;

/// Reads the command line, does it, and returns the exit code.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a misuse.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(dispatch(cli.command));
            // A read of stdin that never returns must not hold up the end.
            runtime.shutdown_background();
            ExitCode::from(code)
        }
        Err(error) => {
            output::talk(&format!("exoshell: error: cannot start: {error}"));
            ExitCode::from(output::OWN_FAILURE)
        }
    }
}

async fn dispatch(command: Command) -> u8 {
    match command {
        Command::Run(args) => run::run(args).await,
        Command::Call(args) => call::run(args).await,
        Command::Shell(args) => shell::run(args).await,
        Command::Ps(args) => processes::list(args).await,
        Command::Logs(args) => processes::logs(args).await,
        Command::Wait(args) => processes::wait(args).await,
        Command::Kill(args) => processes::kill(args).await,
        Command::Attach { id } => attach::run(&id).await,
        Command::Events(args) => events::run(args).await,
        Command::Places(command) => places::run(command).await,
        Command::Check(args) => check::run(&args),
        Command::Approvals(command) => approvals::run(command).await,
        Command::Audit(command) => audit::run(command),
        Command::Doctor(args) => doctor::run(args).await,
        Command::Config(command) => config::run(&command),
        Command::Schema(args) => written(output::json(&schemas(match args.format {
            Format::Openai => SchemaFormat::OpenAi,
            Format::Anthropic => SchemaFormat::Anthropic,
            Format::Mcp => SchemaFormat::Mcp,
        }))),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "exoshell", &mut script);
            written(output::data(&script))
        }
        Command::Bench(args) => crate::bench::run(args).await,
    }
}

/// Turns the result of writing an answer into an exit code. A closed pipe is the reader's wish.
pub(crate) fn written(result: std::io::Result<()>) -> u8 {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            output::talk(&format!(
                "exoshell: error: cannot write the answer: {error}"
            ));
            output::OWN_FAILURE
        }
        _ => 0,
    }
}

/// Loads the configuration and makes a runtime.
pub(crate) fn load(place: &PlaceArgs) -> Result<Runtime, RuntimeError> {
    let environment = Environment::from_process();
    let configured = || {
        Ok(Resolved::load(&environment, Config::default())?
            .terminal
            .backend)
    };
    let overrides = place_args::overrides(place, configured)?;
    let config = Resolved::load(&environment, overrides)?;
    let mut runtime = Runtime::new(config, environment).owned_by_tasks();
    if let Some(approver) = TerminalApprover::if_person() {
        runtime = runtime.with_approver(approver);
    }
    output::hide_secrets(runtime.keeper());
    if std::io::stderr().is_terminal() {
        show_progress(&runtime);
    }
    Ok(runtime)
}

/// Prints the long steps on the way to a place.
fn show_progress(runtime: &Runtime) {
    let mut events = runtime.events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let EventKind::Progress { step } = event.kind {
                output::talk(&format!("exoshell: {step}"));
            }
        }
    });
}

/// Returns an interrupt that Ctrl-C and a polite kill set.
pub(crate) fn interrupt_on_signals() -> Interrupt {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = Interrupt::new();
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        if let Ok(mut stream) = signal(kind) {
            let interrupt = interrupt.clone();
            tokio::spawn(async move {
                stream.recv().await;
                interrupt.set();
            });
        }
    }
    interrupt
}
