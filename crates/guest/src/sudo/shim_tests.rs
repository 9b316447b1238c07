use std::ffi::OsString;

use super::{decides_itself, without};

fn decided(arguments: &[&str]) -> bool {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    decides_itself(&arguments)
}

#[test]
fn options_of_sudo_itself_decide_and_those_of_its_command_do_not() {
    assert!(decided(&["-n", "true"]));
    assert!(decided(&["-EnH", "true"]));
    assert!(decided(&["--stdin", "ls"]));
    assert!(decided(&["-u", "bob", "-A", "ls"]));
    assert!(decided(&["--user", "bob", "-S", "ls"]));
    assert!(!decided(&["ls", "-n"]));
    assert!(!decided(&["-u", "-n", "ls"]));
    assert!(!decided(&["-unS", "ls"]));
    assert!(!decided(&["--", "-n"]));
    assert!(!decided(&["-E", "A=1", "ls", "-S"]));
    assert!(!decided(&[]));
}

#[test]
fn our_folder_leaves_no_trace_in_a_path() {
    assert_eq!(
        without(b"/x/path:/bin:/usr/bin", b"/x/path"),
        b"/bin:/usr/bin"
    );
    assert_eq!(without(b"/bin:/x/path", b"/x/path"), b"/bin");
    assert_eq!(without(b"/bin", b"/x/path"), b"/bin");
}
