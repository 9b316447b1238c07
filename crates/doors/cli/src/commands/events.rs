//! `exoshell events`.

use exoshell_runtime::{Happened, ProcessEvent, RuntimeError, state_code, state_name};

use super::{interrupt_on_signals, load};
use crate::args::{EventsArgs, PlaceArgs};
use crate::output;

/// Prints events and acknowledges each one that was printed.
pub(crate) async fn run(args: EventsArgs) -> u8 {
    match try_run(&args).await {
        Ok(code) => code,
        Err(error) => output::error(&error, args.json),
    }
}

async fn try_run(args: &EventsArgs) -> Result<u8, RuntimeError> {
    let runtime = load(&PlaceArgs::default())?;
    let stop = interrupt_on_signals();
    let mut events = runtime.process_events(&args.consumer, args.follow).await?;
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            () = stop.wait() => return Ok(0),
        };
        let Some(event) = event else {
            return Ok(0);
        };
        let line = if args.json {
            serde_json::to_string(&event).unwrap_or_default()
        } else {
            describe(&event)
        };
        // What could not be printed was not delivered, so it stays for the next time.
        if output::data(format!("{line}\n").as_bytes()).is_err() {
            return Ok(0);
        }
        if !args.peek {
            events.acknowledge(&event).await?;
        }
    }
}

fn describe(event: &ProcessEvent) -> String {
    let what = match &event.happened {
        Happened::Completed { state, tail } => {
            let code = state_code(*state).map_or_else(String::new, |c| format!(", code {c}"));
            let last = tail.display();
            let last = last
                .trim_end()
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned();
            format!("{}{code}: {last}", state_name(*state))
        }
        Happened::Matched {
            pattern,
            line,
            suppressed,
        } => format!(
            "`{pattern}` matched ({suppressed} more before): {}",
            line.display()
        ),
        Happened::WatchOff { why } => why.clone(),
        Happened::Progress { uptime_ms, .. } => format!("runs for {} s", uptime_ms / 1000),
        Happened::Dropped { count } => format!("{count} events were given up unread"),
    };
    let printable: String = what.chars().filter(|c| !c.is_control()).collect();
    format!("{} {printable}", event.id)
}
