//! What each word does.

mod attach;
mod call;
mod config;
mod events;
mod places;
mod processes;
mod run;
mod shell;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use exoshell_runtime::config::{Backend, Config, Environment, Resolved};
use exoshell_runtime::{Interrupt, Runtime, RuntimeError, SchemaFormat, schemas};
use serde::de::IntoDeserializer as _;

use crate::args::{Cli, Command, Format};
use crate::output;

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
pub(crate) fn load(backend: Option<&str>) -> Result<Runtime, RuntimeError> {
    let mut overrides = Config::default();
    if let Some(name) = backend {
        overrides.terminal.backend = Some(parse_backend(name)?);
    }
    let environment = Environment::from_process();
    let config = Resolved::load(&environment, overrides)?;
    Ok(Runtime::new(config, environment).owned_by_tasks())
}

fn parse_backend(name: &str) -> Result<Backend, RuntimeError> {
    use serde::Deserialize as _;
    let reader: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        name.into_deserializer();
    Backend::deserialize(reader).map_err(|_unknown| {
        RuntimeError::Usage(format!(
            "there is no backend `{name}`; this build has: local"
        ))
    })
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
