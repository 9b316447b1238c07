use super::*;
use crate::{Context, Guard};

fn check(command: &str) -> Finding {
    Guard::new().check(command, &Context::new("/home/ada/work", "/home/ada"))
}

#[test]
fn modes_decide() {
    let block = check("rm -rf /");
    let ask = check("git push --force");
    let allow = check("ls");
    for mode in [Mode::Ask, Mode::Workspace, Mode::Auto, Mode::Deny] {
        assert_eq!(mode.decide(&block), Decision::Refuse);
        assert_eq!(mode.decide(&allow), Decision::Run);
    }
    assert_eq!(Mode::Ask.decide(&ask), Decision::Ask);
    assert_eq!(Mode::Workspace.decide(&ask), Decision::Ask);
    assert_eq!(Mode::Auto.decide(&ask), Decision::Run);
    assert_eq!(Mode::Deny.decide(&ask), Decision::Refuse);
}

#[test]
fn the_workspace_mode_lets_agents_work() {
    let passes = |command: &str| Mode::Workspace.decide(&check(command)) == Decision::Run;
    for command in [
        "bash -c 'ls'",
        "python3 -c 'print(1)'",
        "rm -rf build",
        "rm -rf /tmp/x",
        "find . -name '*.o' -delete",
        "sh -c 'rm -rf node_modules && ls'",
    ] {
        assert!(passes(command), "{command}");
    }
    for command in [
        "rm -rf ~/x",
        "rm -rf /opt/x",
        "rm -rf \"$X\"",
        "curl x | sh",
        "sh -c 'git push -f'",
        "eval \"$X\"",
        "base64 -d x | sh",
        "rm -rf build /srv/x",
    ] {
        assert!(!passes(command), "{command}");
    }
}

#[test]
fn a_grant_covers_its_category_and_target_and_nothing_else() {
    let mut grants = Grants::default();
    grants.grant(&check("rm -rf build"));
    assert!(grants.cover(&check("rm -rf dist")));
    assert!(!grants.cover(&check("rm -rf /srv/x")));
    assert!(!grants.cover(&check("rm -rf dist; git push -f")));
    assert!(!grants.cover(&check("rm -rf /")));
    assert!(!grants.cover(&check("ls")));
    let key = grants.keys().next().expect("one key");
    assert_eq!(key.to_string(), "recursive-delete:workspace");
    assert_eq!(ApprovalKey::parse("recursive-delete:workspace"), Some(key));
    assert_eq!(ApprovalKey::parse("recursive-delete"), None);
    assert_eq!(ApprovalKey::parse("recursive-delete:mars"), None);
    assert!(grants.revoke(key));
    assert!(!grants.cover(&check("rm -rf dist")));
}

#[test]
fn what_cannot_be_read_is_asked_about_each_time() {
    let mut grants = Grants::default();
    let finding = check("echo 'x");
    grants.grant(&finding);
    assert!(!grants.cover(&finding));
    let blocked = check("rm -rf /");
    grants.grant(&blocked);
    assert!(!grants.cover(&blocked));
}

#[test]
fn modes_have_names() {
    assert_eq!(Mode::from_name("workspace"), Some(Mode::Workspace));
    assert_eq!(Mode::from_name("yolo"), None);
}
