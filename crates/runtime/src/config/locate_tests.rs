use super::*;

fn find(pairs: &[(&str, &str)]) -> Result<Locations, ConfigError> {
    Locations::find(&Environment::from_pairs(pairs.iter().copied()).in_directory("/srv/dir"))
}

#[test]
fn the_home_folder_is_in_the_users_home_by_default() {
    let expected = Locations {
        home: "/home/ada/.exoshell".into(),
        config_file: "/home/ada/.exoshell/config.toml".into(),
        config_required: false,
    };
    assert_eq!(
        find(&[
            ("HOME", "/home/ada"),
            ("EXOSHELL_HOME", ""),
            ("EXOSHELL_CONFIG", "")
        ])
        .unwrap(),
        expected
    );
}

#[test]
fn a_relative_home_folder_starts_at_the_current_directory() {
    assert_eq!(
        find(&[("EXOSHELL_HOME", "./state")]).unwrap().home,
        Path::new("/srv/dir/state")
    );
    assert_eq!(
        find(&[("EXOSHELL_HOME", "../state")]).unwrap().home,
        Path::new("/srv/dir/../state")
    );
}

#[test]
fn a_tilde_stands_for_the_users_home_but_not_inside_a_name() {
    let locations = find(&[
        ("EXOSHELL_HOME", "~/x y"),
        ("HOME", "/home/ada"),
        ("EXOSHELL_CONFIG", "~x/a.toml"),
    ])
    .unwrap();
    assert_eq!(locations.home, Path::new("/home/ada/x y"));
    assert_eq!(locations.config_file, Path::new("/srv/dir/~x/a.toml"));
}

#[test]
fn a_named_file_is_required() {
    let locations = find(&[("EXOSHELL_HOME", "/h"), ("EXOSHELL_CONFIG", "my.toml")]).unwrap();
    let expected = Locations {
        home: "/h".into(),
        config_file: "/srv/dir/my.toml".into(),
        config_required: true,
    };
    assert_eq!(locations, expected);
}

#[test]
fn without_any_home_the_error_says_what_to_set() {
    for pairs in [&[][..], &[("HOME", "")][..]] {
        let error = find(pairs).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot tell the home folder: `HOME` is not set"
        );
        assert_eq!(
            error.hint(),
            "set `EXOSHELL_HOME` to a folder that Exoshell may use"
        );
    }
}

#[test]
fn a_tilde_without_a_users_home_is_an_error() {
    let error = find(&[("EXOSHELL_HOME", "~/x")]).unwrap_err();
    assert_eq!(error.to_string(), "cannot resolve `~/x`: `HOME` is not set");
    assert_eq!(error.hint(), "set `HOME`, or give an absolute path");
}

#[test]
fn a_relative_path_without_a_directory_is_an_error() {
    let error = Locations::find(&Environment::from_pairs([("EXOSHELL_HOME", "x")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot resolve the relative path `x`: the current directory is not known"
    );
    assert_eq!(
        error.hint(),
        "give an absolute path, or start from a directory that exists"
    );
}
