use super::*;

/// Returns the plain texts of all simple commands in the order of the text, nested ones too.
fn commands(text: &str) -> Vec<String> {
    let (list, failure) = Parser::new(text, 0).script();
    assert_eq!(failure, None, "{text:?}");
    let mut found = Vec::new();
    collect(&list, &mut found);
    found
}

fn collect(list: &List, found: &mut Vec<String>) {
    for item in &list.items {
        for pipeline in std::iter::once(&item.first).chain(&item.rest) {
            for command in std::iter::once(&pipeline.first).chain(&pipeline.rest) {
                collect_command(command, found);
            }
        }
    }
}

fn collect_command(command: &Command, found: &mut Vec<String>) {
    match &command.body {
        Body::Simple { words, .. } => {
            let words: Vec<String> = words
                .iter()
                .map(|word| word.parts.iter().map(|part| shown(part, found)).collect())
                .collect();
            found.push(words.join(" "));
        }
        Body::Group(list) | Body::Subshell(list) => collect(list, found),
        Body::Branches(lists) => lists.iter().for_each(|list| collect(list, found)),
        Body::Loop { condition, body } => {
            collect(condition, found);
            collect(body, found);
        }
        Body::For { body, .. } | Body::ForArithmetic { body, .. } => collect(body, found),
        Body::Case { arms, .. } => arms.iter().for_each(|arm| collect(&arm.body, found)),
        Body::Function { body, .. } => collect_command(body, found),
        Body::Coprocess(command) => collect_command(command, found),
        Body::Test(_) | Body::Arithmetic(_) => {}
    }
}

fn shown(part: &Part, found: &mut Vec<String>) -> String {
    match part {
        Part::Text { text, .. } => text.clone(),
        Part::Parameter { parameter, .. } => format!("${}", parameter.name),
        Part::Substitution { list, .. } | Part::Process { list, .. } => {
            collect(list, found);
            "$()".to_owned()
        }
        Part::Arithmetic { .. } => "$(())".to_owned(),
    }
}

#[test]
fn commands_are_found_wherever_they_stand() {
    assert_eq!(
        commands("a b; c && d | e & (f; { g; })"),
        ["a b", "c", "d", "e", "f", "g"]
    );
    assert_eq!(
        commands("if a; then b; elif c; then d; else e; fi"),
        ["a", "b", "c", "d", "e"]
    );
    assert_eq!(
        commands("while a; do b; done; for x in 1 2; do c; done"),
        ["a", "b", "c"]
    );
    assert_eq!(
        commands("case x in a|b) c;; (d) e; esac; f() { g; }; function h { i; }"),
        ["c", "e", "g", "i"]
    );
    assert_eq!(
        commands("echo $(a `b`) <(c) \"$(d)\""),
        ["b", "a $()", "c", "d", "echo $() $() $()"]
    );
}

#[test]
fn quotes_and_escapes_are_undone() {
    assert_eq!(
        commands("'a b'\"c d\"e\\ f $'\\x41' \\\n g"),
        ["a bc de f A g"]
    );
    assert_eq!(commands("a\\\nb # c\n#d\ne#f"), ["ab", "e#f"]);
}

#[test]
fn here_documents_are_no_commands() {
    assert_eq!(
        commands("cat <<A <<'B'; x\na\nA\nb\nB\ny"),
        ["cat", "x", "y"]
    );
    assert_eq!(commands("cat <<-E\n\ta\n\tE\nx"), ["cat", "x"]);
}

#[test]
fn what_is_no_shell_code_is_refused() {
    for text in [
        "'",
        "\"",
        "`",
        "$(",
        "${",
        "(",
        "{ a",
        "if a",
        "a |",
        "a &&",
        "case x",
        "for",
        "a )",
        "a }; }",
        "f() a",
        "done",
        "<",
        "a (b)",
        "[[ a",
        "x=(",
        "echo ${!}x}(",
    ] {
        let (_, failure) = Parser::new(text, 0).script();
        assert!(failure.is_some(), "{text:?}");
    }
}

#[test]
fn lines_before_an_error_are_kept() {
    let (list, failure) = Parser::new("a\nb\n'", 0).script();
    assert_eq!(list.items.len(), 2);
    assert_eq!(failure.map(|failure| failure.at), Some(4));
}

#[test]
fn spans_are_those_of_the_text() {
    let text = "ls  'a b' x";
    let (list, _) = Parser::new(text, 0).script();
    let Body::Simple { words, .. } = &list.items[0].first.first.body else {
        panic!("a simple command")
    };
    let shown: Vec<&str> = words.iter().map(|word| word.span.of(text)).collect();
    assert_eq!(shown, ["ls", "'a b'", "x"]);
}
