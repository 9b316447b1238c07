use super::*;

const MARK: &str = "[redacted: secret value]";

fn keeper(pass: &[&str], variables: &[(&str, &str)]) -> Keeper {
    let mut config = Resolved::new("/nonexistent-home");
    config.secrets.pass = pass.iter().map(|name| (*name).to_owned()).collect();
    let environment = Environment::from_pairs(variables.iter().copied());
    Keeper::new(Arc::new(config), Arc::new(environment))
}

fn told(values: impl IntoIterator<Item = String>) -> SecretValues {
    let values = values.into_iter().map(|value| RawBytes(value.into_bytes()));
    SecretValues(values.collect())
}

#[test]
fn what_is_added_later_is_hidden_from_then_on() {
    let keeper = keeper(&[], &[("DEPLOY_TOKEN", "from-the-caller")]);
    let text = "from-the-caller typed-by-a-person told-by-a-guest";
    let shown = |keeper: &Keeper| keeper.redactor().redact(text).into_owned();
    let expected = format!("{MARK} typed-by-a-person told-by-a-guest");
    assert_eq!(shown(&keeper), expected);
    keeper.add("sudo", b"typed-by-a-person");
    keeper.add_told(&told(["told-by-a-guest".to_owned()]));
    assert_eq!(shown(&keeper), format!("{MARK} {MARK} {MARK}"));
}

#[test]
fn a_guest_cannot_push_out_what_the_host_knows() {
    let keeper = keeper(&[], &[]);
    keeper.add("sudo", b"typed-by-a-person");
    keeper.add_told(&told((0..2000).map(|at| format!("value number {at}"))));
    keeper.add_told(&told(["x".repeat(LONGEST_TOLD + 1)]));
    assert_eq!(keeper.redactor().redact("typed-by-a-person"), MARK);
    assert_eq!(keeper.lock().told.len(), MAX_TOLD);
}

#[test]
fn only_a_guest_on_this_machine_is_told_what_commands_do_not_have() {
    let variables = [
        ("OPENAI_API_KEY", "stripped-from-commands"),
        ("DEPLOY_TOKEN", "which-commands-have"),
        ("ANTHROPIC_API_KEY", "which-is-passed"),
    ];
    let keeper = keeper(&["ANTHROPIC_API_KEY"], &variables);
    keeper.add("sudo", b"typed-by-a-person");
    let values = |local| keeper.for_guest(local).unwrap().values;
    assert_eq!(values(false), SecretValues::default());
    let expected = ["stripped-from-commands", "typed-by-a-person"];
    assert_eq!(values(true), told(expected.map(str::to_owned)));
}

#[test]
fn a_debug_form_shows_no_value() {
    let keeper = keeper(&[], &[("DEPLOY_TOKEN", "from-the-caller")]);
    keeper.add("sudo", b"typed-by-a-person");
    let text = format!("{keeper:?} {:?}", keeper.for_guest(true));
    assert!(
        !text.contains("from-the") && !text.contains("typed"),
        "{text}"
    );
}
