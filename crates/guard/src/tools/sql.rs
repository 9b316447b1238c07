//! Clients of databases, and the statements they send.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, READ, Run, Stream};
use crate::text::{first, from, upto};

pub(super) const TABLE: Table = &[
    (
        &["psql", "pgcli", "cockroach", "yugabyte", "ysqlsh", "usql"],
        client as Handler,
    ),
    (&["mysql", "mariadb", "mycli", "mysqlsh", "tidb"], client),
    (
        &["sqlite3", "sqlite", "litecli", "duckdb", "libsql"],
        client,
    ),
    (
        &[
            "clickhouse-client",
            "clickhouse-local",
            "clickhouse",
            "cqlsh",
            "sqlcmd",
            "snowsql",
            "trino",
            "presto",
            "hive",
            "beeline",
            "impala-shell",
            "sqlplus",
            "isql",
            "bq",
            "spark-sql",
            "db2",
            "athenacli",
            "turso",
            "mssql-cli",
            "vsql",
            "osql",
            "tsql",
            "fbsql",
        ],
        client,
    ),
    (&["mongosh", "mongo", "mongodb"], mongo),
    (
        &["redis-cli", "valkey-cli", "keydb-cli", "dragonfly-cli"],
        redis,
    ),
];

/// What a statement would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Nothing,
    Destroys,
    RunsCommand,
}

fn grammar(name: &str) -> Grammar<'static> {
    match name {
        "psql" | "pgcli" | "ysqlsh" | "usql" => Grammar::new(
            "cdfhLoFPpRTUvX_",
            &[
                "command", "dbname", "file", "host", "port", "username", "set", "variable",
                "output", "log-file", "pset",
            ],
        ),
        "mysql" | "mariadb" | "mycli" | "mysqlsh" => Grammar::new(
            "eDhPuS",
            &[
                "execute",
                "database",
                "host",
                "port",
                "user",
                "socket",
                "init-command",
                "defaults-file",
                "defaults-extra-file",
            ],
        ),
        "sqlite3" | "sqlite" | "duckdb" | "litecli" => {
            Grammar::new("cs", &["cmd", "separator", "init", "newline", "nullvalue"]).dashed()
        }
        "cockroach" => Grammar::new("ed", &["execute", "url", "host", "database"]),
        "bq" => Grammar::new("", &["project_id", "location"]),
        _ => Grammar::new(
            "qeQkuhpdUPSfE",
            &[
                "query",
                "execute",
                "host",
                "port",
                "user",
                "password",
                "database",
                "multiquery_",
            ],
        ),
    }
}

fn client(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, grammar(call.name));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    for flag in &options.flags {
        let sends = matches!(
            flag.name,
            "c" | "e" | "q" | "Q" | "command" | "execute" | "query" | "cmd" | "init-command" | "s"
        ) || (flag.long
            && flag.name.len() > 3
            && ["command", "execute", "query"]
                .iter()
                .any(|full| full.starts_with(flag.name)));
        if let Some(sql) = flag.value.filter(|_| sends) {
            statements(run, call, sql, flag.at);
        }
    }
    let told = options.operands.len() > 1
        || options.flags.iter().any(|flag| {
            matches!(
                flag.name,
                "c" | "e" | "l" | "command" | "execute" | "query" | "list"
            )
        });
    // `sqlite3 file statement …` and `bq query statement`.
    for operand in options.operands.iter().skip(1) {
        if operand.text.contains([' ', '.', ';', '(']) {
            statements(run, call, operand.text, operand.at);
        }
    }
    let input = run.stdin.as_ref().and_then(|stream| stream.text.clone());
    if let Some(sql) = input {
        statements(run, call, &sql, usize::MAX);
    } else if run.fed_unknown() && !told {
        run.report("typed-command", call.span, Target::None, call.name);
    }
    Stream::unknown()
}

fn statements(run: &mut Run<'_>, call: &Call<'_>, sql: &str, at: usize) {
    let span = call.span_of(at);
    if !run.handle(sql.len() * READ) {
        return;
    }
    for statement in split(sql) {
        match deed(&statement) {
            Deed::Nothing => {}
            Deed::Destroys => {
                run.report("sql-destroys", span, Target::Remote, &statement.join(" "));
            }
            Deed::RunsCommand => run.report(
                "tool-runs-command",
                span,
                Target::None,
                &statement.join(" "),
            ),
        }
    }
    for line in sql.lines().map(str::trim_start) {
        let command = line
            .strip_prefix("\\!")
            .or_else(|| line.strip_prefix(".shell "))
            .or_else(|| line.strip_prefix(".system "))
            .or_else(|| line.strip_prefix("system "));
        let piped = line.starts_with("\\copy") && line.to_ascii_lowercase().contains("program")
            || line.starts_with(".import") && line.contains('|')
            || line.starts_with("\\o |")
            || line.starts_with(".output |")
            || line.starts_with(".once |")
            || line.starts_with("\\g |")
            || line.contains("load_extension")
            || line.starts_with(".load ");
        if let Some(command) = command {
            run.report("tool-runs-command", span, Target::None, command);
            run.subshell(|run| run.script(command, span));
        } else if piped {
            run.report("tool-runs-command", span, Target::None, line);
        }
    }
}

/// Splits into statements, and these into words in upper case. Strings and comments are left out;
/// the comments that only some servers read are kept.
fn split(sql: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut words = Vec::new();
    let mut rest = sql;
    while let Some((character, after)) = first(rest) {
        rest = match character {
            '\'' => {
                words.push("'".to_owned());
                past(after, "'")
            }
            '"' | '`' => {
                words.push("NAME".to_owned());
                past(after, if character == '"' { "\"" } else { "`" })
            }
            '-' if after.starts_with('-') => past(after, "\n"),
            '#' => past(after, "\n"),
            '/' if after.starts_with("*!") => {
                from(after, 2).trim_start_matches(|digit: char| digit.is_ascii_digit())
            }
            '/' if after.starts_with('*') => past(from(after, 1), "*/"),
            ';' => {
                all.push(std::mem::take(&mut words));
                after
            }
            _ if character.is_alphanumeric() || character == '_' => {
                let end = rest
                    .find(|next: char| !next.is_alphanumeric() && next != '_')
                    .unwrap_or(rest.len());
                words.push(upto(rest, end).to_ascii_uppercase());
                from(rest, end)
            }
            '\\' if after.starts_with(['g', 'G']) => {
                all.push(std::mem::take(&mut words));
                from(after, 1)
            }
            '(' | ')' | '=' | '*' => {
                words.push(character.to_string());
                after
            }
            _ => after,
        };
    }
    all.push(words);
    all.retain(|statement| !statement.is_empty());
    all
}

fn past<'t>(text: &'t str, end: &str) -> &'t str {
    text.split_once(end).map_or("", |(_, after)| after)
}

fn deed(words: &[String]) -> Deed {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let starts = |at: usize| match word(at) {
        "DROP" => !matches!(word(at + 1), "" | "PREPARE") && word(at + 1) != "TEMPORARY_",
        "TRUNCATE" => word(at + 1) != "(",
        "PURGE" | "SHUTDOWN" => true,
        "RESET" => matches!(word(at + 1), "MASTER" | "SLAVE" | "REPLICA" | "BINARY"),
        "DELETE" => !filtered(words) && matches!(word(at + 1), "FROM" | "NAME") | has("FROM"),
        "UPDATE" => has("SET") && !filtered(words),
        "ALTER" => has("DROP") && !matches!(word(at + 1), "_"),
        _ => false,
    };
    if has("PROGRAM") && (has("COPY") || has("FROM") || has("TO")) && has("COPY")
        || has("XP_CMDSHELL")
        || has("SYS_EXEC")
    {
        return Deed::RunsCommand;
    }
    let destroys = match word(0) {
        "EXPLAIN" if !has("ANALYZE") && !has("ANALYSE") => false,
        "EXPLAIN" | "WITH" => words.iter().enumerate().any(|(at, word)| {
            matches!(word.as_str(), "DELETE" | "UPDATE" | "TRUNCATE") && starts(at)
        }),
        "BEGIN" | "START" | "DO" | "SET" | "USE" => (1..words.len().min(64))
            .any(|at| matches!(word(at), "DROP" | "TRUNCATE" | "DELETE") && starts(at)),
        _ => starts(0),
    };
    if destroys {
        Deed::Destroys
    } else {
        Deed::Nothing
    }
}

/// Tells whether a condition chooses rows; one that is always true does not.
fn filtered(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|word| word == "WHERE") else {
        return words.iter().any(|word| word == "LIMIT");
    };
    let condition: Vec<&str> = words.iter().skip(at + 1).map(String::as_str).collect();
    !matches!(
        condition.as_slice(),
        [] | ["TRUE" | "1"] | ["1", "=", "1"] | ["'", "=", "'"]
    )
}

fn mongo(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "upf",
            &["eval", "host", "port", "username", "password", "file"],
        ),
    );
    let input = run.stdin.as_ref().and_then(|stream| stream.text.clone());
    let codes = options
        .values("", "eval")
        .map(|(code, _)| code.to_owned())
        .chain(input);
    for code in codes.collect::<Vec<_>>() {
        let code: String = code
            .chars()
            .filter(|character| !character.is_whitespace())
            .collect();
        let destroys = [
            "dropDatabase(",
            ".drop(",
            ".dropIndexes(",
            "deleteMany({})",
            ".remove({})",
            ".deleteMany()",
            ".remove()",
            "shutdownServer(",
            "dropUser(",
            "dropAllUsers",
        ]
        .iter()
        .any(|call| code.contains(call));
        if destroys {
            run.report("database-reset", call.span, Target::Remote, &code);
        }
    }
    Stream::unknown()
}

fn redis(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "hpnausrixdD",
            &["user", "pass", "uri", "pipe-timeout", "cluster_"],
        )
        .stopping(),
    );
    let mut lines: Vec<String> = vec![options.texts().take(4).collect::<Vec<_>>().join(" ")];
    if options.operands.is_empty() {
        lines = run
            .stdin
            .as_ref()
            .and_then(|stream| stream.text.clone())
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect();
    }
    for line in lines {
        let upper = line.trim().to_ascii_uppercase();
        let first = upper.split_whitespace().next().unwrap_or_default();
        let second = upper.split_whitespace().nth(1).unwrap_or_default();
        let destroys = matches!(first, "FLUSHALL" | "FLUSHDB" | "SHUTDOWN" | "SWAPDB")
            || (first == "CONFIG" && second == "SET")
            || (first == "SCRIPT" && second == "FLUSH")
            || (first == "DEBUG" && matches!(second, "SEGFAULT" | "RELOAD"))
            || first == "SLAVEOF"
            || first == "REPLICAOF"
            || (first == "MODULE" && second == "LOAD")
            || (call.bulk && matches!(first, "DEL" | "UNLINK"));
        if destroys {
            run.report("database-reset", call.span, Target::Remote, &line);
        }
    }
    Stream::unknown()
}
