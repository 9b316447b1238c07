use super::{Function, Keep, ShellState, Variable};

fn text(value: &str) -> Variable {
    Variable::Text(value.as_bytes().to_vec())
}

fn with(pairs: &[(&str, &str)]) -> ShellState {
    let mut state = ShellState {
        cwd: b"/".to_vec(),
        umask: 0o022,
        ..ShellState::default()
    };
    for (name, value) in pairs {
        state
            .variables
            .insert(name.as_bytes().to_vec(), text(value));
    }
    state
}

const ALL: Keep<'static> = Keep {
    directory: true,
    ignored_variables: &[],
};

#[test]
fn e2_parallel_exports_of_different_names_all_survive() {
    let base = with(&[("PATH", "/bin")]);
    let mut session = base.clone();
    session.merge(&base, &with(&[("PATH", "/bin"), ("A", "1")]), ALL);
    session.merge(&base, &with(&[("PATH", "/bin"), ("B", "2")]), ALL);
    assert_eq!(session, with(&[("PATH", "/bin"), ("A", "1"), ("B", "2")]));
}

#[test]
fn an_unset_is_a_change_like_any_other() {
    let base = with(&[("A", "1"), ("B", "2")]);
    let mut session = base.clone();
    session.merge(&base, &with(&[("B", "2")]), ALL);
    assert_eq!(session, with(&[("B", "2")]));
}

#[test]
fn variables_and_directory_of_one_command_are_not_kept() {
    let base = with(&[]);
    let mut after = with(&[("ONLY", "here"), ("KEPT", "1")]);
    after.cwd = b"/tmp".to_vec();
    let mut session = base.clone();
    session.merge(
        &base,
        &after,
        Keep {
            directory: false,
            ignored_variables: &[b"ONLY"],
        },
    );
    assert_eq!(session, with(&[("KEPT", "1")]));
}

#[test]
fn equal_states_need_no_script() {
    let state = with(&[("A", "1")]);
    assert_eq!(state.script_to(&state), b"");
}

#[test]
fn the_script_sets_what_differs_and_nothing_else() {
    let from = with(&[("A", "1"), ("B", "2")]);
    let mut to = with(&[("A", "it's"), ("C", "3")]);
    to.cwd = b"/tmp".to_vec();
    to.umask = 0o077;
    to.functions.insert(
        b"f".to_vec(),
        Function {
            text: b"f () \n{ \n    echo f\n}".to_vec(),
            exported: true,
        },
    );
    let script = String::from_utf8(from.script_to(&to)).unwrap();
    assert_eq!(
        script,
        "\\builtin umask 0077\n\
         \\builtin cd -- '/tmp' || \\builtin exit 126\n\
         \\builtin export A='it'\\''s'\n\
         \\builtin export C='3'\n\
         \\builtin unset -v B\n\
         f () \n{ \n    echo f\n}\n\
         \\builtin export -f f\n"
    );
}

#[test]
fn variables_that_steer_a_starting_shell_are_set_after_its_start() {
    let state = with(&[("BASH_ENV", "/evil"), ("A", "1")]);
    let environment = state.environment();
    assert!(environment.contains(&b"A=1".to_vec()));
    assert!(!environment.iter().any(|e| e.starts_with(b"BASH_ENV")));
    let started = state.started_from(&with(&[]));
    assert_eq!(
        started.script_to(&state),
        b"\\builtin export BASH_ENV='/evil'\n"
    );
}
