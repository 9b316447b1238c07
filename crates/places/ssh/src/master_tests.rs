use super::*;

#[test]
fn sockets_live_in_the_home_while_its_path_is_short() {
    assert_eq!(
        folder_for(Path::new("/home/me/.exoshell")),
        Path::new("/home/me/.exoshell/run/ssh")
    );
}

#[test]
fn long_and_odd_homes_get_a_short_folder_of_their_own() {
    let long = "/x".repeat(40);
    for home in [long.as_str(), "/home/a b", "/home/%h", "relative"] {
        let folder = folder_for(Path::new(home));
        assert!(folder.starts_with("/tmp"), "{home}");
        assert!(folder.as_os_str().len() <= MAX_FOLDER, "{home}");
        assert_ne!(folder, folder_for(Path::new(&format!("{long}/other"))));
    }
}

#[test]
fn a_folder_of_somebody_else_is_not_used() {
    let home = tempfile::tempdir().unwrap();
    let masters = Masters::new(home.path(), "key");
    drop(masters.lock().unwrap());
    std::os::unix::fs::chown(&masters.folder, Some(65534), None).unwrap();
    let error = masters.lock().expect_err("a refusal");
    assert!(error.to_string().contains("0700"), "{error}");
}

#[test]
fn a_damaged_note_is_no_note() {
    let home = tempfile::tempdir().unwrap();
    let masters = Masters::new(home.path(), "key");
    drop(masters.lock().unwrap());
    fs::write(masters.folder.join("key.json"), "{").unwrap();
    assert_eq!(masters.current(), None);
}
