//! Prints the processor time of checks: a corpus, commands of 4 KiB as agents write them, the
//! densest ones, and hostile ones. It fails when one takes over 50 ms.
//!
//! `cargo run --release -p exoshell-guard --example speed -- [commands.jsonl | folder]`
//!
//! Of a folder, such as the corpus of a fuzzer, each file is one command.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "it is a program for a terminal"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use exoshell_guard::{Context, Guard, MAX_COMMAND};
use rustix::time::{ClockId, clock_gettime};

/// No command of any kind may take longer.
const LIMIT: Duration = Duration::from_millis(50);

/// Returns the processor time of this thread; a busy machine hardly changes it.
fn spent() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a clock")
}

/// Times of checks, sorted.
struct Times {
    name: String,
    /// Of each command the median of its rounds.
    each: Vec<Duration>,
    /// Of each command its fastest round: what others do on the same machine slows it least.
    fastest: Vec<Duration>,
}

impl Times {
    fn measure(name: &str, commands: &[Vec<u8>], rounds: usize) -> Self {
        let guard = Guard::new();
        let context = Context::new("/home/user/work/project", "/home/user");
        // The tables of rules are made once in a process.
        black_box(guard.check("true", &context));
        let mut each = Vec::with_capacity(commands.len());
        let mut fastest = Vec::with_capacity(commands.len());
        for command in commands {
            let mut times: Vec<Duration> = (0..rounds)
                .map(|_| {
                    let start = spent();
                    black_box(guard.check_bytes(black_box(command), &context));
                    spent().saturating_sub(start)
                })
                .collect();
            times.sort_unstable();
            each.extend(times.get(times.len() / 2));
            fastest.extend(times.first());
        }
        let mut times = Self {
            name: name.to_owned(),
            each,
            fastest,
        };
        times.sort();
        times
    }

    fn sort(&mut self) {
        self.each.sort_unstable();
        self.fastest.sort_unstable();
    }

    /// Adds the times of others.
    fn extend(&mut self, other: Self) {
        self.each.extend(other.each);
        self.fastest.extend(other.fastest);
    }

    fn percentile(&self, thousandths: usize) -> Duration {
        percentile(&self.each, thousandths)
    }

    fn total(&self) -> Duration {
        self.each.iter().sum()
    }

    /// Prints one line and returns the slowest.
    fn print(&self) -> Duration {
        let mean = self.total() / u32::try_from(self.each.len().max(1)).unwrap_or(1);
        println!(
            "{:<32} {:>6} commands  mean {mean:>9.1?}  p50 {:>9.1?}  p99 {:>9.1?}  max {:>9.1?}  \
             fastest rounds p99 {:>9.1?}",
            self.name,
            self.each.len(),
            self.percentile(500),
            self.percentile(990),
            self.percentile(1000),
            percentile(&self.fastest, 990),
        );
        self.percentile(1000)
    }
}

fn percentile(times: &[Duration], thousandths: usize) -> Duration {
    times
        .get(times.len().saturating_sub(1) * thousandths / 1000)
        .copied()
        .unwrap_or_default()
}

/// Repeats `unit` up to `size` bytes.
fn filled(unit: &str, size: usize) -> Vec<u8> {
    unit.repeat(size / unit.len()).into_bytes()
}

/// `before`, then as much of `unit` as has room, then `after`.
fn around(before: &str, unit: &str, after: &str, size: usize) -> Vec<u8> {
    let mut text = before.as_bytes().to_vec();
    text.extend(filled(unit, size - before.len() - after.len()));
    text.extend(after.as_bytes());
    text
}

/// Joins commands, one after the other, to texts of up to `size` bytes.
fn joined(commands: &[String], separator: &str, size: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut text = String::new();
    for command in commands {
        if text.len() + separator.len() + command.len() > size {
            all.push(std::mem::take(&mut text).into_bytes());
        }
        if !text.is_empty() {
            text.push_str(separator);
        }
        text.push_str(command);
    }
    all
}

/// A script as a coding agent writes it.
const SCRIPT: &str = include_str!("agent.sh");

/// Commands of 4 KiB as agents write them.
fn realistic(commands: &[String]) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    const SIZE: usize = 4096;
    let here = |line: &str| around("cat > data.txt <<'END'\n", line, "\nEND\n", SIZE);
    let files: Vec<String> = (0..SIZE / 28)
        .map(|number| format!("src/module_{number}/file-{number}.rs"))
        .collect();
    let files = files.join(" ");
    let mut script = SCRIPT.repeat(2).into_bytes();
    script.truncate(SIZE);
    vec![
        ("corpus, joined by lines", joined(commands, "\n", SIZE)),
        ("corpus, joined by ;", joined(commands, " ; ", SIZE)),
        ("corpus, joined by &&", joined(commands, " && ", SIZE)),
        ("a script of an agent", vec![script]),
        (
            "here-documents",
            vec![
                here("a line of text, nothing more\n"),
                here("{\"key\": \"value\", \"list\": [1, 2, 3]}\n"),
                here("    let x = vec![\"$a\", `b`];\n"),
            ],
        ),
        (
            "long lists of arguments",
            vec![
                format!("git add {files}").into_bytes(),
                format!("ls -la {files}").into_bytes(),
                format!("cat {files}").into_bytes(),
                format!("for f in {files}; do wc -l \"$f\"; done").into_bytes(),
            ],
        ),
        (
            "one long argument",
            vec![
                around("git commit -m '", "words and words ", "'", SIZE),
                around("python3 -c \"", "print(1); ", "\"", SIZE),
            ],
        ),
    ]
}

/// Texts of nothing but this: what a command can be made of, as dense as it can be.
const DENSE: &[(&str, &str)] = &[
    ("shortest commands", "a;"),
    ("commands", "git status --short; ls -la src | head -n 5\n"),
    ("words", "echo some words that mean nothing at all "),
    ("shortest words", "a "),
    ("variables", "x=abc; y=\"$x/def\"; echo \"$y\" \"${x%c}\"; "),
    ("many variables", "$a "),
    ("assignments", "a=1;"),
    ("substitutions", "echo \"$(date) $(git rev-parse HEAD)\"; "),
    ("shortest substitutions", "$(a)"),
    ("quotes", "echo 'a'\"b\"'c' \"$d\" "),
    ("braces", "echo {a,b}{c,d} "),
    ("braces in one word", "{a,b}"),
    (
        "options",
        "rm -rf build; chmod 755 x; find . -name y -exec wc -l {} +; ",
    ),
    ("subshells", "(a=1; b=2; echo $a | cat); "),
    ("pipes", "a|"),
    ("nested shells", "bash -c 'sh -c \"eval \\\"ls; ls\\\"\"';"),
    ("shells", "sh -c 'a;a;a;a;a;a;a;a;a;a;a;a;a;a;a;a';"),
    ("globs", "/*/?[a-z]*/* "),
    ("files", "cat ../a/b/../c.txt ~/.x/y > /tmp/z;"),
    ("functions", "f(){ a;};f;"),
    ("loops", "for i in 1 2 3 4 5 6 7 8;do a;done;"),
    (
        "loops in loops",
        "for i in 1 2 3;do for j in 1 2 3;do for k in 1 2 3;do a;done;done;done;",
    ),
    ("here-documents", "cat <<E\nE\n"),
    ("background", "a&"),
    ("tests", "[[ a == b ]];"),
    ("wrappers", "sudo env nice timeout 5 ls;"),
    ("git", "git log;"),
    ("docker", "docker ps;"),
    ("sed", "sed 's/a/b/;s/c/d/' x;"),
    ("awk", "awk '{print $1}' x;"),
    ("find", "find / -name x -exec rm {} +;"),
    ("python", "python3 -c 'print(1)';"),
    ("sql", "psql -c 'select 1; select 2';"),
    ("files made", "a>b;"),
];

/// Texts that are open, deep or grow.
const HOSTILE: &[&str] = &[
    "$(",
    "$((",
    "((",
    "{a,",
    "`",
    "a[",
    "<<E ",
    "${x:-",
    "\"",
    "( ",
    "@(",
    "`\\`\\\\\\`",
    "\"$(",
    "$(`",
    "case x in x) ",
    "~/",
    "*",
    "eval ",
    "sudo ",
    "x=$x$x;",
    "x=a$x;echo $x;",
    "x+=aaaa;",
    "for i in 1 2 3 4 5 6 7 8;do ",
    ":|",
    "f(){ f;f;};f;",
    "cat <<E\n",
    "/b*n/*?*?*?*?* ",
    "{{a,b},",
    "{1..9}",
    "${a[$(",
    "echo $x >f;x=$(cat f)$(cat f);",
    "env -S '",
    "xargs ",
    "a=(b c);a+=(${a[@]});",
    "${x//a/b}",
    "[a-z]",
    "\\\n",
    "'",
    "$'\\x41'",
    "i=$((i+1));",
    "set -- a $@;",
    "alias a=b;a;",
    "trap a EXIT;",
    "exec 3>&1;",
    "é",
    "\u{202e}",
    "cd a;",
    "cd ..;cat x;",
    "read x <<<$x$x;",
    "x=$x\"a;a\";eval \"$x;a\";",
    "echo a>>f;sh f;",
    "cat f f f f>f;",
    "echo a|tee f|sh;",
    "f(){ eval \"$1;$1\";};f \"$(cat f)\">f;",
];

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let path = argument.as_deref().map(Path::new);
    if let Some(folder) = path.filter(|path| path.is_dir()) {
        return answer(files(folder));
    }
    let corpus = path.map(corpus).unwrap_or_default();
    let mut worst = Duration::ZERO;
    if !corpus.is_empty() {
        let commands: Vec<Vec<u8>> = corpus
            .iter()
            .map(|text| text.clone().into_bytes())
            .collect();
        let times = Times::measure("corpus, one by one", &commands, 5);
        worst = worst.max(times.print());
        let count = u64::try_from(commands.len()).unwrap_or(u64::MAX);
        let total = u64::try_from(times.total().as_nanos()).unwrap_or(u64::MAX);
        println!(
            "{:<32} {:>6} commands a second",
            "",
            1_000_000_000 * count / total.max(1)
        );
    }
    println!("4 KiB as agents write them");
    let mut all = Times {
        name: "  all of them".to_owned(),
        each: Vec::new(),
        fastest: Vec::new(),
    };
    for (name, commands) in realistic(&corpus) {
        let times = Times::measure(&format!("  {name}"), &commands, 21);
        worst = worst.max(times.print());
        all.extend(times);
    }
    all.sort();
    all.print();
    for (size, name, rounds) in [(4096, "4 KiB", 21), (MAX_COMMAND, "as long as can be", 3)] {
        println!("{name}, dense");
        for (name, unit) in DENSE {
            let times = Times::measure(&format!("  {name}"), &[filled(unit, size)], rounds);
            worst = worst.max(times.print());
        }
    }
    println!("as long as can be, hostile");
    for unit in HOSTILE {
        let name = format!("  {}", unit.escape_debug());
        let times = Times::measure(&name, &[filled(unit, MAX_COMMAND)], 3);
        worst = worst.max(times.print());
    }
    let long = [filled("echo words ", 1024 * 1024)];
    worst = worst.max(Times::measure("1 MiB", &long, 3).print());
    answer(worst)
}

/// Reads the commands of a corpus, one JSON record per line.
fn corpus(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a readable corpus");
    text.lines()
        .filter_map(|line| {
            let record = serde_json::from_str::<serde_json::Value>(line).ok()?;
            record.get("command")?.as_str().map(str::to_owned)
        })
        .collect()
}

/// Judges each file of a folder, names the slowest ones and returns the longest time.
fn files(folder: &Path) -> Duration {
    let entries = std::fs::read_dir(folder).expect("a readable folder");
    let mut commands = Vec::new();
    let mut slowest = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Ok(command) = std::fs::read(&path) else {
            continue;
        };
        let time = Times::measure("", std::slice::from_ref(&command), 3).percentile(1000);
        slowest.push((time, path));
        commands.push(command);
    }
    Times::measure("files", &commands, 1).print();
    slowest.sort_unstable_by(|one, other| other.cmp(one));
    for (time, path) in slowest.iter().take(9) {
        println!("{time:>9.1?}  {}", path.display());
    }
    slowest.first().map_or(Duration::ZERO, |(time, _)| *time)
}

/// Prints the slowest check; more than the limit is a failure.
fn answer(worst: Duration) -> ExitCode {
    println!("slowest {worst:.1?}, limit {LIMIT:?}");
    if worst > LIMIT {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
