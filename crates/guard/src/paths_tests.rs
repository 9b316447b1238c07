use super::*;

fn context() -> Context {
    Context::new("/home/ada/work", "/home/ada")
}

fn with<T>(look: impl Fn(&Paths<'_>) -> T) -> T {
    let context = context();
    look(&Paths {
        context: &context,
        home: "/home/ada",
        cwd: Some("/home/ada/work"),
    })
}

#[test]
fn paths_are_resolved() {
    with(|paths| {
        assert_eq!(paths.absolute("../x//./y/"), "/home/ada/x/y");
        assert_eq!(paths.absolute("/../.."), "/");
        assert_eq!(paths.absolute("/proc/self/root/etc"), "/etc");
        assert_eq!(paths.resolve(&format!("{UNKNOWN}/x")), None);
        assert_eq!(
            paths.resolve(&format!("/x/{STAR}")),
            Some(Resolved {
                path: "/x".to_owned(),
                contents: true
            })
        );
    });
}

#[test]
fn losses_are_told_apart() {
    with(|paths| {
        assert_eq!(paths.loss("/"), Loss::Root);
        assert_eq!(paths.loss(&format!("/{STAR}/{STAR}")), Loss::Root);
        assert_eq!(paths.loss(".."), Loss::Home);
        assert_eq!(paths.loss("/home/bob"), Loss::Home);
        assert_eq!(paths.loss("/root/"), Loss::Home);
        assert_eq!(paths.loss(&format!("/u{STAR}")), Loss::System);
        assert_eq!(paths.loss("/etc"), Loss::System);
        assert_eq!(paths.loss("/etc/x"), Loss::Some(Target::System));
        assert_eq!(paths.loss("/tmp/x"), Loss::Some(Target::Temp));
        assert_eq!(paths.loss("x"), Loss::Some(Target::Workspace));
        assert_eq!(paths.loss("../y"), Loss::Some(Target::Home));
        assert_eq!(paths.loss("/srv/x"), Loss::Some(Target::Elsewhere));
    });
}

#[test]
fn settings_and_secrets_are_known() {
    with(|paths| {
        assert!(
            paths.user_setting("/home/ada/.bashrc") && paths.user_setting("/home/bob/.ssh/config")
        );
        assert!(!paths.user_setting("/home/ada/work/.bashrc"));
        assert!(paths.secret("/home/ada/.ssh/id_rsa") && paths.secret("/etc/shadow"));
        assert!(!paths.secret("/home/ada/.ssh/id_rsa.pub") && !paths.secret("/etc/passwd"));
        assert!(paths.secret(&format!("/home/ada/.ssh/{STAR}")));
        assert!(
            paths.control("/home/ada/.config/exoshell/x") && !paths.control("/home/ada/.config/x")
        );
    });
}

#[test]
fn disks_are_told_from_other_devices() {
    for path in [
        "/dev/sda",
        "/dev/sdb12",
        "/dev/nvme0n1p2",
        "/dev/mmcblk0",
        "/dev/disk2s1",
        "/dev/mapper/x",
        "/dev/md0",
        "/dev/vdb",
        "/dev/disk/by-uuid/x",
    ] {
        assert!(disk(path), "{path}");
    }
    for path in [
        "/dev/null",
        "/dev/stdout",
        "/dev/tty1",
        "/dev/shm/x",
        "/dev/fd/3",
        "/dev/random",
        "/dev/loop0",
        "/dev/video0",
        "/dev/mapper/",
        "x",
    ] {
        assert!(!disk(path), "{path}");
    }
}
