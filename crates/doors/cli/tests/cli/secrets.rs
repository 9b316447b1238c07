//! Secrets: two hundred of them are planted, and none comes out anywhere.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{World, wait_until};

/// One planted line and the secrets in it.
struct Planted {
    line: String,
    secrets: Vec<String>,
}

/// Makes numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn letters(&mut self, kind: &str, count: usize) -> String {
        let set: &[u8] = match kind {
            "A" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "h" => b"0123456789abcdef",
            "U" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            "d" => b"0123456789",
            "l" => b"abcdefghijklmnopqrstuvwxyz0123456789",
            "w" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
            "b" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            _ => panic!("no letters `{kind}`"),
        };
        (0..count)
            .map(|_| char::from(set[self.below(set.len())]))
            .collect()
    }

    /// Fills the random parts of a template.
    fn fill(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(start) = rest.find('{') {
            out.push_str(&rest[..start]);
            let length = rest[start..].find('}').unwrap_or(0);
            let word = rest.get(start + 1..start + length).unwrap_or_default();
            let count = word.get(1..).and_then(|count| count.parse().ok());
            if word == "u" {
                let parts = [8, 4, 4, 4, 12].map(|count| self.letters("h", count));
                out.push_str(&parts.join("-"));
            } else if let Some(count) = count {
                out.push_str(&self.letters(&word[..1], count));
            } else {
                // A brace of the text itself.
                out.push('{');
                rest = &rest[start + 1..];
                continue;
            }
            rest = &rest[start + length + 1..];
        }
        out + rest
    }
}

/// Makes the secrets of the list.
fn planted(seed: u64) -> Vec<Planted> {
    let mut dice = Dice(seed);
    let list = include_str!("secrets.txt");
    list.lines()
        .filter(|line| line.contains('«') && !line.starts_with('#'))
        .map(|template| {
            let filled = dice
                .fill(template)
                .replace("\\\\n", "\u{1}")
                .replace("\\n", "\n");
            let filled = filled.replace('\u{1}', "\\n");
            let parts = filled.split('«').skip(1);
            let secrets = parts.map(|part| part.split('»').next().unwrap().to_owned());
            Planted {
                secrets: secrets.collect(),
                line: filled.replace(['«', '»'], ""),
            }
        })
        .collect()
}

/// Returns what must not be seen of a secret: any dozen letters from its middle and its end.
fn telling(secret: &str) -> [&str; 2] {
    let end = secret.trim_end_matches('=').len();
    let middle = end - (end / 2).max(12);
    [&secret[middle..middle + 12], &secret[end - 12..end]]
}

#[track_caller]
fn assert_hidden<'a>(outlet: &str, text: &str, secrets: impl IntoIterator<Item = &'a String>) {
    let seen: Vec<&String> = secrets
        .into_iter()
        .filter(|secret| telling(secret).iter().any(|part| text.contains(part)))
        .collect();
    assert!(
        seen.is_empty(),
        "{outlet} shows {} secrets: {seen:#?}\n{}",
        seen.len(),
        text.chars().take(4000).collect::<String>()
    );
}

/// Looks into every file of a folder.
#[track_caller]
fn assert_folder_hides(folder: &Path, secrets: &[String]) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            if entry.file_name() != "guest" {
                assert_folder_hides(&path, secrets);
            }
        } else if kind.is_file() && entry.file_name() != "config.toml" {
            let text = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert_hidden(&path.display().to_string(), &text, secrets);
        }
    }
}

/// Prints a file in pieces of seven bytes, each written on its own.
const IN_PIECES: &str = r#"pieces() { LC_ALL=C; while IFS= read -r line; do
  while [ -n "$line" ]; do printf %s "${line:0:7}"; line=${line:7}; done; echo
done < planted.txt; }; pieces"#;

/// A world with all secrets of the list in a file.
fn world_with_a_file(seed: u64) -> (World, Vec<String>) {
    let planted = planted(seed);
    assert!(planted.len() >= 200, "only {}", planted.len());
    let world = World::new();
    let lines: Vec<&str> = planted
        .iter()
        .map(|planted| planted.line.as_str())
        .collect();
    fs::write(world.work.join("planted.txt"), lines.join("\n") + "\n").unwrap();
    let secrets = planted.into_iter().flat_map(|planted| planted.secrets);
    (world, secrets.collect())
}

#[test]
fn x3_two_hundred_secrets_stay_hidden_in_what_a_command_prints() {
    let (world, secrets) = world_with_a_file(7);
    let answer = world.terminal("cat planted.txt");
    assert_hidden("terminal", &answer.0.to_string(), &secrets);
    assert!(answer.output().contains("[redacted: github token]"));
    let answer = world.terminal(IN_PIECES);
    assert_hidden("terminal, in pieces", &answer.0.to_string(), &secrets);
    for command in ["cat planted.txt", IN_PIECES, "cat planted.txt >&2"] {
        let ran = world.exoshell(["run", command]);
        assert_eq!(ran.code(), 0);
        assert_hidden("run", &String::from_utf8_lossy(&ran.out), &secrets);
        assert_hidden("run, stderr", &ran.talk(), &secrets);
        assert!(ran.out.len() + ran.talk().len() > 5_000);
    }
    let ran = world.exoshell(["run", "--pty", IN_PIECES]);
    assert_hidden("run --pty", &String::from_utf8_lossy(&ran.out), &secrets);
    let answer = world.terminal("for i in 1 2 3 4 5 6 7 8; do cat planted.txt; done");
    let file = answer.0["output_file"].as_str().unwrap();
    let kept = fs::read_to_string(file).unwrap();
    assert!(kept.len() > 50_000);
    assert_hidden("the file with all output", &kept, &secrets);
    assert_folder_hides(&world.home, &secrets);
}

#[test]
fn x3_two_hundred_secrets_stay_hidden_in_what_a_process_prints() {
    let (world, secrets) = world_with_a_file(11);
    let started = world.call(&json!({
        "command": format!("{IN_PIECES}; read -rt 600 <> <(:)"),
        "background": true, "notify_on_complete": true, "watch_patterns": ["."],
    }));
    let id = started.0["session_id"].as_str().unwrap().to_owned();
    let ask = |action: Value| {
        let ran = world.exoshell(["call", "process", &action.to_string()]);
        String::from_utf8(ran.out).unwrap()
    };
    let mut polled = String::new();
    wait_until(Duration::from_secs(30), "all lines are printed", || {
        let answer = ask(json!({"action": "poll", "session_id": id}));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        polled.push_str(answer["output"].as_str().unwrap());
        // The last of the list.
        polled.contains("git.example.com/a/b.git")
    });
    assert_hidden("poll", &polled, &secrets);
    for offset in (0..230).step_by(3) {
        let page = json!({"action": "log", "session_id": id, "offset": offset, "limit": 3});
        if offset % 30 == 0 {
            assert_hidden("a page of the log", &ask(page), &secrets);
        }
    }
    let all = json!({"action": "log", "session_id": id, "offset": 0, "limit": 1000});
    assert_hidden("the log", &ask(all), &secrets);
    let wait = json!({"action": "wait", "session_id": id, "until": "ghp|redacted", "timeout": 5});
    assert_hidden("wait", &ask(wait), &secrets);
    let logs = world.exoshell(["logs", &id]);
    assert!(logs.out.len() > 5_000);
    assert_hidden("logs", &String::from_utf8_lossy(&logs.out), &secrets);
    let logs = world.exoshell(["logs", "--json", &id]);
    assert_hidden("logs --json", &String::from_utf8_lossy(&logs.out), &secrets);
    world.exoshell(["kill", &id]);
    let events = world.exoshell(["events", "--json"]);
    assert!(!events.out.is_empty());
    assert_hidden("events", &String::from_utf8_lossy(&events.out), &secrets);
    assert_folder_hides(&world.home, &secrets);
}

#[test]
fn x3_secrets_in_commands_and_errors_stay_hidden() {
    let planted = planted(13);
    let world = World::new();
    let some: Vec<&Planted> = planted
        .iter()
        .filter(|planted| planted.line.starts_with("ghp_") || planted.line.starts_with("sk_live_"))
        .collect();
    assert!(some.len() >= 2);
    let secrets: Vec<String> = some.iter().flat_map(|p| p.secrets.clone()).collect();
    let words: Vec<&str> = some.iter().map(|p| p.line.as_str()).collect();
    let words = words.join(" ");
    let command = format!("read -rt 600 <> <(:); : {words}");
    let ran = world.exoshell(["run", "--background", "--json", &command]);
    assert_hidden("the start", &String::from_utf8_lossy(&ran.out), &secrets);
    for arguments in [&["ps"][..], &["ps", "--json"], &["places", "ls", "--json"]] {
        let ran = world.exoshell(arguments);
        let shown = String::from_utf8_lossy(&ran.out).into_owned();
        assert_hidden(&arguments.join(" "), &shown, &secrets);
        assert!(
            arguments[0] != "ps" || shown.contains("[redacted"),
            "{shown}"
        );
    }
    let answer = world.terminal(&format!("sh -c 'sleep 600; : {words}' & cd /"));
    assert_hidden("left_running", &answer.0.to_string(), &secrets);
    let token = &some[0].line;
    let answer = world.call(&json!({"command": "true", "workdir": format!("/no/{token}")}));
    assert!(answer.error().contains("/no/[redacted"), "{}", answer.0);
    let answer = world.call(&json!({"command": "true", "timeout": token}));
    assert_hidden("a wrong argument", &answer.0.to_string(), &secrets);
    let ran = world.exoshell(["run", "--workdir", &format!("/no/{token}"), "true"]);
    assert_hidden("an error", &ran.talk(), &secrets);
    let ran = world.exoshell(["logs", token]);
    assert_hidden("an unknown process", &ran.talk(), &secrets);
    assert_folder_hides(&world.home, &secrets);
}

#[test]
fn x3_values_of_variables_stay_hidden_whatever_they_look_like() {
    let mut dice = Dice(17);
    let mut word = || dice.letters("l", 20);
    let [stripped, kept, configured, called, sourced] = std::array::from_fn(|_| word());
    let secrets = [&stripped, &kept, &configured, &called, &sourced].map(Clone::clone);
    let world = World::new()
        .with_variable("OPENAI_API_KEY", &stripped)
        .with_variable("DEPLOY_TOKEN", &kept)
        .with_config(&format!("[terminal.env]\nAPP_SECRET = \"{configured}\"\n"));
    // The stripped one reaches the command by a file.
    fs::write(world.work.join("key"), &stripped).unwrap();
    fs::write(
        world.work.join("settings"),
        format!("export DB_PASSWORD={sourced}\n"),
    )
    .unwrap();
    let all = "echo \"x$(cat key)y $DEPLOY_TOKEN:$APP_SECRET/$CALL_KEY\"; ";
    let base64 = "printf %s $DEPLOY_TOKEN | base64; printf %s $DB_PASSWORD | base64; ";
    world.terminal(". ./settings").printed("");
    let command = format!("{all}{base64} echo \"$DB_PASSWORD\"");
    let env = json!({"CALL_KEY": called});
    let answer = world.call(&json!({"command": command, "env": env}));
    assert_hidden("terminal", &answer.0.to_string(), &secrets);
    assert_eq!(
        answer.output().matches("[redacted: secret value]").count(),
        7
    );
    let answer = world.call(&json!({"command": command, "env": env, "background": true}));
    let id = answer.0["session_id"].as_str().unwrap().to_owned();
    world.exoshell(["wait", &id]);
    let logs = world.exoshell(["logs", &id]);
    let logs = String::from_utf8_lossy(&logs.out).into_owned();
    assert_hidden("logs", &logs, &secrets);
    assert_eq!(
        logs.matches("[redacted: secret value]").count(),
        7,
        "{logs}"
    );
    let ran = world.exoshell(["run", "cat key; echo; echo $DEPLOY_TOKEN"]);
    let hidden = "[redacted: secret value]\n[redacted: secret value]\n";
    assert_eq!(String::from_utf8_lossy(&ran.out), hidden);
    let fill = "for i in {1..9000}; do echo line $i; done";
    let large = world.terminal(&format!("{all} echo $DB_PASSWORD; {fill}"));
    let kept = fs::read_to_string(large.0["output_file"].as_str().unwrap()).unwrap();
    assert_hidden("the file with all output", &kept, &secrets);
    assert_folder_hides(&world.home, &secrets);
}

#[test]
fn the_pass_list_and_the_switch_show_what_they_name() {
    let mut dice = Dice(19);
    let value = dice.letters("l", 20);
    let show = "echo $DEPLOY_TOKEN";
    let world = World::new()
        .with_variable("DEPLOY_TOKEN", &value)
        .with_config("[secrets]\npass = [\"DEPLOY_TOKEN\"]\n");
    world.terminal(show).printed(&format!("{value}\n"));
    let token = dice.fill("ghp_{A36}");
    let world = World::new()
        .with_variable("DEPLOY_TOKEN", &value)
        .with_config("[secrets]\nredact = false\n");
    let both = format!("{show}; echo {token}");
    world
        .terminal(&both)
        .printed(&format!("{value}\n{token}\n"));
}

#[test]
fn a_prompt_is_shown_to_its_last_letter_and_a_slow_secret_is_hidden() {
    let token = Dice(23).fill("ghp_{A36}");
    let world = World::new();
    let (first, rest) = token.split_at(9);
    let command = format!(
        "stty -echo; printf 'go? g'; read x; echo; printf {first}; read y; echo {rest} end"
    );
    let started = world.call(&json!({"command": command, "background": true, "pty": true}));
    let id = started.0["session_id"].as_str().unwrap().to_owned();
    let process = |arguments: Value| world.json(["call", "process", &arguments.to_string()]);
    let poll = || process(json!({"action": "poll", "session_id": id}));
    let wait = json!({"action": "wait", "session_id": id, "until": "go\\? g$", "timeout": 20});
    assert_eq!(process(wait)["output"], "go? g");
    process(json!({"action": "submit", "session_id": id, "data": "1"}));
    process(json!({"action": "submit", "session_id": id, "data": "2"}));
    let mut seen = String::new();
    wait_until(Duration::from_secs(20), "the end", || {
        let answer = poll();
        seen.push_str(answer["output"].as_str().unwrap());
        answer["status"] == "exited"
    });
    let screen = process(json!({"action": "screen", "session_id": id}));
    for text in [seen, screen["screen"].to_string()] {
        assert_hidden("a terminal", &text, [&token]);
        assert!(text.contains("end"), "{text}");
    }
}
