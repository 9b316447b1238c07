use super::*;

#[test]
fn an_empty_variable_counts_as_unset_but_is_listed() {
    let environment = Environment::from_pairs([("A", ""), ("B", "b")]);
    assert_eq!(environment.get("A"), None);
    assert_eq!(environment.get("B"), Some(OsStr::new("b")));
    let names: Vec<_> = environment.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["A", "B"]);
}

#[test]
fn the_debug_form_shows_names_but_no_values() {
    let environment = Environment::from_pairs([("NAME", "hunter2")]).in_directory("/work");
    let text = format!("{environment:?}");
    assert!(
        text.contains("NAME") && text.contains("/work") && !text.contains("hunter2"),
        "{text}"
    );
}

#[test]
fn the_process_environment_is_captured_with_its_directory() {
    let environment = Environment::from_process();
    assert_eq!(environment.get("PATH"), std::env::var_os("PATH").as_deref());
    assert_eq!(
        environment.directory(),
        std::env::current_dir().ok().as_deref()
    );
}
