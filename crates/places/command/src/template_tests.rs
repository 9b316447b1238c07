use super::*;

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn settings(launch: &[&str]) -> CommandSettings {
    CommandSettings {
        launch: words(launch),
        ..CommandSettings::default()
    }
}

fn fault(settings: &CommandSettings) -> String {
    let error = Template::new(settings, "task").expect_err("a refusal");
    assert_eq!(error.trouble(), Some(Trouble::BadSetting));
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    error.to_string()
}

#[test]
fn a_prefix_takes_any_words_behind_it() {
    let template = Template::new(&settings(&["lxc", "exec", "box", "--"]), "t").unwrap();
    assert!(!template.names_guest());
    assert_eq!(
        template.filled_with(&words(&["ls", "-l"])),
        ["lxc", "exec", "box", "--", "ls", "-l"]
    );
}

#[test]
fn the_guest_stands_where_it_is_named() {
    let template = Template::new(&settings(&["bwrap", "{guest}", "--end"]), "t").unwrap();
    assert!(template.names_guest());
    assert_eq!(
        template.filled_with(&words(&["/g", "attach"])),
        ["bwrap", "/g", "attach", "--end"]
    );
}

#[test]
fn a_task_in_the_template_makes_a_place_per_task() {
    assert!(!settings(&["chroot", "/srv"]).is_per_task());
    let mut per_task = settings(&["chroot", "/srv/{task}"]);
    per_task.destroy = Some(words(&["rm", "-r", "/srv/{task}"]));
    assert!(per_task.is_per_task());
    let template = Template::new(&per_task, "one").unwrap();
    assert_eq!(template.launch, ["chroot", "/srv/one"]);
    assert_eq!(template.destroy, Some(words(&["rm", "-r", "/srv/one"])));
    assert!(Template::new(&per_task, "-rf").is_err());
    assert!(Template::new(&per_task, "").is_err());
}

#[test]
fn putting_fills_in_both_paths_once() {
    let put = words(&["cp", "{file}", "pod:{target}"]);
    assert_eq!(
        put_words(&put, "/a {target}", "/b {file}"),
        ["cp", "/a {target}", "pod:/b {file}"]
    );
}

#[test]
fn templates_of_other_tools_are_left_alone() {
    let other = settings(&["x", "{{.ID}}", "{{name}}", "${name}", "{}", "{a,b}", "{A}"]);
    assert!(Template::new(&other, "t").is_ok());
}

#[test]
fn every_bad_template_has_its_own_words() {
    assert_eq!(fault(&settings(&[])), "`launch` is empty");
    assert_eq!(
        fault(&settings(&["", "x"])),
        "the first word of `launch` is empty"
    );
    assert_eq!(fault(&settings(&["a\0b"])), "`launch` contains a NUL");
    assert_eq!(
        fault(&settings(&["nsenter", "{gest}"])),
        "`{gest}` means nothing in `launch`"
    );
    assert_eq!(
        fault(&settings(&["cp", "{file}"])),
        "`{file}` means nothing in `launch`"
    );
    assert_eq!(
        fault(&settings(&["sh", "-c", "{guest} x"])),
        "`{guest}` must be a word of its own in `launch`"
    );
    assert_eq!(
        fault(&settings(&["{guest}", "{guest}"])),
        "`{guest}` stands in `launch` more than once"
    );
    let with = |change: fn(&mut CommandSettings)| {
        let mut settings = settings(&["x", "{guest}"]);
        change(&mut settings);
        fault(&settings)
    };
    assert_eq!(
        with(|s| s.put = Some(words(&["cp", "{target}"]))),
        "`put` does not say what to put: it has no `{file}`"
    );
    assert_eq!(
        with(|s| s.put = Some(words(&["cp", "{file}", "/x"]))),
        "`put` is given, but no `guest_path`"
    );
    assert_eq!(with(|s| s.put = Some(Vec::new())), "`put` is empty");
    assert_eq!(with(|s| s.destroy = Some(Vec::new())), "`destroy` is empty");
    assert_eq!(
        with(|s| s.guest_path = Some("relative".to_owned())),
        "`guest_path` must be absolute, not `relative`"
    );
    assert_eq!(
        with(|s| s.folder = Some("relative".to_owned())),
        "`folder` must be absolute, not `relative`"
    );
    let mut prefix = settings(&["chroot", "/srv"]);
    prefix.guest_path = Some("/guest".to_owned());
    assert_eq!(
        fault(&prefix),
        "`guest_path` is given, but `launch` has no word `{guest}`"
    );
}
