use std::path::PathBuf;

use super::{expand, home_of};

const USERS: &[u8] = b"root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada,,:/home/ada:/bin/sh\nx";

#[test]
fn a_tilde_is_the_home_of_the_user() {
    let locate = |root: &str| expand(root.as_bytes(), || "/home/ada".into()).unwrap();
    assert_eq!(locate("~"), PathBuf::from("/home/ada"));
    assert_eq!(locate("~/.config"), PathBuf::from("/home/ada/.config"));
    assert_eq!(locate("~//.config"), PathBuf::from("/home/ada/.config"));
    assert_eq!(locate("/etc/~"), PathBuf::from("/etc/~"));
}

#[test]
fn a_root_that_could_be_anywhere_is_refused() {
    for bad in ["", "relative", "~ada/x", "~/../x", "/a/../b", "/a\0b"] {
        let refused = expand(bad.as_bytes(), || "/home/ada".into());
        assert!(refused.is_err(), "{bad:?}");
    }
}

#[test]
fn without_a_variable_the_user_list_says_where_home_is() {
    assert_eq!(home_of(Some("/h".into()), USERS, 0), PathBuf::from("/h"));
    assert_eq!(home_of(None, USERS, 1000), PathBuf::from("/home/ada"));
    assert_eq!(home_of(Some("".into()), USERS, 0), PathBuf::from("/root"));
    assert_eq!(home_of(None, USERS, 7), PathBuf::from("/"));
    assert_eq!(home_of(None, b"", 0), PathBuf::from("/"));
}
