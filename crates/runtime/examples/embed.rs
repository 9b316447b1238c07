//! Embeds Exoshell in a program: two commands in one task, then clean-up.
//!
//! ```sh
//! cargo run -p exoshell-runtime --example embed
//! ```

use exoshell_runtime::config::{Config, Environment, Resolved};
use exoshell_runtime::{Runtime, RuntimeError, TerminalRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RuntimeError> {
    let environment = Environment::from_process();
    let config = Resolved::load(&environment, Config::default())?;
    let runtime = Runtime::new(config, environment);

    let task = "example";
    let first = TerminalRequest::new("cd /usr && export GREETING='hello there'").in_task(task);
    let first = runtime.terminal(first).await;
    assert_eq!(first.exit_code, 0, "{first:?}");

    let second = TerminalRequest::new("echo \"$GREETING from $PWD\"").in_task(task);
    let second = runtime.terminal(second).await;
    assert_eq!(second.output, "hello there from /usr\n", "{second:?}");

    runtime.cleanup(task).await?;
    Ok(())
}
