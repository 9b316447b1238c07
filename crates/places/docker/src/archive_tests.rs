use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::*;

#[test]
fn tar_unpacks_what_was_packed() {
    for size in [0, 1, 511, 512, 513, 5000] {
        let folder = tempfile::tempdir().unwrap();
        let program = vec![b'x'; size];
        let mut tar = Command::new("tar")
            .args(["-x", "-p", "--no-same-owner", "-C"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin
            .take()
            .unwrap()
            .write_all(&pack_with(Some(("guest", &program)), &["/open"]))
            .unwrap();
        assert!(tar.wait().unwrap().success());
        let file = folder.path().join(".exoshell/guest");
        assert_eq!(std::fs::read(&file).unwrap(), program);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        let open = folder.path().join("open").metadata().unwrap();
        assert!(open.is_dir());
        assert_eq!(open.permissions().mode() & 0o7777, 0o1777);
    }
}
