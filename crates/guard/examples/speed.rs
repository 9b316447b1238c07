//! Prints how long a check takes: a corpus if one is named, texts of 4 KiB, and hostile ones.
//!
//! `cargo run --release -p exoshell-guard --example speed -- [commands.jsonl]`
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "it is a program for a terminal"
)]

use std::hint::black_box;
use std::time::Duration;

use exoshell_guard::{Context, Guard, MAX_COMMAND};

fn percentile(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * share / 1000]
}

/// Returns the processor time of this thread; a busy machine does not change it.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")
        .expect("a Linux with scheduler statistics");
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number");
    Duration::from_nanos(nanoseconds)
}

fn measure(name: &str, commands: &[String], rounds: usize) {
    let guard = Guard::new();
    let context = Context::new("/home/user/work/project", "/home/user");
    let mut times = Vec::new();
    for _ in 0..rounds {
        for command in commands {
            // The clock advances in steps of milliseconds, so short checks are measured many at once.
            let repeats = if command.len() < 8192 { 400 } else { 1 };
            let start = spent();
            for _ in 0..repeats {
                black_box(guard.check(black_box(command), &context));
            }
            times.push(spent().saturating_sub(start) / repeats);
        }
    }
    let total: Duration = times.iter().sum();
    let each = total / u32::try_from(times.len()).unwrap_or(1);
    println!(
        "{name:<34} {:>6} checks  mean {each:>9.1?}  p50 {:>9.1?}  p99 {:>9.1?}  max {:>9.1?}",
        times.len(),
        percentile(&mut times, 500),
        percentile(&mut times, 990),
        percentile(&mut times, 1000),
    );
}

/// Repeats `unit` up to `size` bytes.
fn filled(unit: &str, size: usize) -> String {
    unit.repeat(size / unit.len())
}

fn main() {
    if let Some(path) = std::env::args().nth(1) {
        let text = std::fs::read_to_string(path).expect("a readable corpus");
        let commands: Vec<String> = text
            .lines()
            .filter_map(|line| {
                serde_json::from_str::<serde_json::Value>(line).ok()?["command"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect();
        measure("corpus, one by one", &commands, 1);
    }
    if std::env::var_os("GUARD_PROFILE").is_some() {
        measure(
            "4 KiB of commands",
            &[filled("git status --short; ls -la src | head -n 5\n", 4096)],
            40,
        );
        return;
    }
    let units = [
        ("words", "echo some words that mean nothing at all "),
        ("commands", "git status --short; ls -la src | head -n 5\n"),
        ("shortest commands", "a;"),
        ("variables", "x=abc; y=\"$x/def\"; echo \"$y\" \"${x%c}\"; "),
        ("substitutions", "echo \"$(date) $(git rev-parse HEAD)\"; "),
        ("quotes", "echo 'a'\"b\"'c' \"$d\" "),
        ("braces", "echo {a,b}{c,d} "),
        (
            "options",
            "rm -rf build; chmod 755 x; find . -name y -exec wc -l {} +; ",
        ),
        ("subshells", "(a=1; b=2; echo $a | cat); "),
    ];
    for (name, unit) in units {
        measure(&format!("4 KiB of {name}"), &[filled(unit, 4096)], 10);
    }
    let heredoc = format!(
        "cat > x <<'EOF'\n{}\nEOF\n",
        filled("a line of text, nothing more\n", 4000)
    );
    measure("4 KiB in a here-document", &[heredoc], 10);
    for (name, unit) in units {
        measure(
            &format!("64 KiB of {name}"),
            &[filled(unit, MAX_COMMAND)],
            3,
        );
    }
    for (name, open) in [
        ("$(", "$("),
        ("$((", "$(("),
        ("((", "(("),
        ("{a,", "{a,"),
        ("backquotes", "`"),
        ("a[", "a["),
        ("<<E", "<<E "),
        ("${x:-", "${x:-"),
        ("\"", "\""),
        ("( ", "( "),
        ("@(", "@("),
        ("\\`", "`\\`\\\\\\`"),
        ("quoted $(", "\"$("),
        ("alternating", "$(`"),
        ("case", "case x in x) "),
        ("tilde", "~/"),
        ("stars", "*"),
        ("eval", "eval "),
        ("sudo", "sudo "),
        ("x=$x$x;", "x=$x$x;"),
        ("for", "for i in 1 2 3 4 5 6 7 8;do "),
        ("pipes", ":|"),
        ("functions", "f(){ f;f;};f;"),
        ("sed", "sed 's/a/b/;s/c/d/' "),
        ("here-documents", "cat <<E\n"),
        ("star names", "/b*n/*?*?*?*?* "),
    ] {
        measure(
            &format!("64 KiB of {name}"),
            &[filled(open, MAX_COMMAND)],
            2,
        );
    }
    measure("1 MiB", &[filled("echo words ", 1024 * 1024)], 3);
}
