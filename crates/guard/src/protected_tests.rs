use super::*;
use crate::{Action, PathRule};

fn context() -> Context {
    let mut context = Context::new("/home/ada/work/project", "/home/ada");
    context.controls = vec!["/home/ada/.exo-home".to_owned(), "/srv/exo".to_owned()];
    context
}

fn guard() -> Guard {
    Guard::with_rules(UserRules {
        commands: Vec::new(),
        paths: vec![PathRule {
            path: "/home/ada/work/project/prot".to_owned(),
            action: Action::Deny,
        }],
    })
}

#[test]
fn a_denied_path_is_neither_written_nor_moved_nor_deleted() {
    let mut wrong = Vec::new();
    for command in [
        "mv prot x",
        "mv prot/a x",
        "mv ../project x",
        "mv x prot/",
        "rm -rf prot",
        "rm -r .",
        "rm -rf ../project",
        "rm prot/a",
        "rm -r pr?t",
        "rm -rf pro*",
        "rm -rf *",
        "rm pro*",
        "find . -delete",
        "find prot -type f -delete",
        "find . -exec rm {} +",
        "find . -type f -exec rm {} \\;",
        "find . -type f | xargs rm",
        "chmod 600 prot/a",
        "chmod -R 700 .",
        "chown -R ada .",
        "split x prot/p",
        "vim -c wq prot/a",
        "vim prot/a",
        "ex prot/a",
        "ed prot/a",
        "git -C prot clean -fd",
        "git -C prot reset --hard",
        "git -C prot checkout .",
        "cd prot && git clean -fdx",
        "cd prot; git checkout -- a",
        "git rm -r prot",
        "git clean -fdx",
        "zip -m x.zip prot/a",
        "zip -rm x.zip .",
        "tar cf x.tar --remove-files prot",
        "rsync -a --delete x/ prot/",
        "rsync -a --delete x/ ./",
        "truncate -s 0 prot/a",
        "dd if=x of=prot/a",
        "ln -sf x prot/a",
        "ln -s prot x",
        "cp x prot/a",
        "cp -t prot x",
        "install -m 644 x prot/a",
        "echo x | tee prot/a",
        "echo x > prot/a",
        "echo x > pr?t/a",
        "sed -i s/a/b/ prot/a",
        "touch prot/a",
        "tar xf x.tar prot",
        "cd prot && unzip ../x.zip",
        "fd . prot -x rm",
        "fd -X rm",
        "git --git-dir=prot/.git gc",
        "unknown-tool --output=prot/a",
        "unknown-tool -oprot/a",
        "sudo rm -rf prot",
        "bash -c 'mv prot x'",
    ] {
        let finding = guard().check(command, &context());
        if finding.verdict != Verdict::Block {
            wrong.push(format!("{command} {}", finding.rule));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_denied_path_may_be_read() {
    let mut wrong = Vec::new();
    for command in [
        "ls prot",
        "cat prot/a",
        "cp prot/a x",
        "cp -r prot x",
        "grep -r x prot",
        "find . -name x",
        "find . -exec grep x {} +",
        "find prot -type f | xargs cat",
        "git -C prot status",
        "git status",
        "git add prot",
        "git clean -nfd",
        "bash -n prot/x.sh",
        "tar czf x.tar prot",
        "zip -r x.zip prot",
        "dd if=prot/a of=x",
        "sed s/a/b/ prot/a",
        "diff prot/a x",
        "wc -l prot/*",
        "cd prot && ls",
        "mv x y",
        "rm protocol.txt",
        "touch protected",
        "cat < prot/a",
        "chmod +x x.sh",
        "cp x y/",
        "mkdir -p build",
        "cargo build",
    ] {
        let finding = guard().check(command, &context());
        if finding.verdict != Verdict::Allow {
            wrong.push(format!("{command} {}", finding.rule));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn our_controls_are_for_readers_only() {
    let mut wrong = Vec::new();
    for command in [
        "cp x ~/.exo-home/x",
        "cp ~/.exo-home/grants x",
        "ln -s ~/.exo-home x",
        "ln -s ~ x",
        "ln -s /srv x",
        "mv ~/.exo-home x",
        "python3 x.py ~/.exo-home/grants",
        "sqlite3 /srv/exo/db",
        "unknown-tool --db=/srv/exo/db",
        "unknown-tool -o/srv/exo/db",
        "dd if=x of=/srv/exo/db",
        "vim /srv/exo/config.toml",
        "jq -i . /srv/exo/x.json",
        "sed -i s/a/b/ ~/.exo-home/config.toml",
        "echo x > /srv/exo/db",
        "cd /srv/exo && tee x",
        "rm -r ~/.exo*",
        "mv /sr?/exo x",
        "docker run -v /srv/exo:/x image",
        "kill $(cat ~/.exo-home/pid)",
        "kill $(pgrep exoshell)",
        "pgrep exosh | xargs kill",
        "pkill exoshelld",
        "pkill -f exosh",
        "killall exoshell-guest",
        "unshare -r exoshell approvals allow 1",
        "nsenter -t 1 exoshell approvals allow 1",
        "chroot / exoshell approvals allow 1",
        "tar xf x.tar -C ~/.exo-home",
        "find ~/.exo-home -delete",
        "find ~/.exo-home -exec chmod 600 {} +",
        "git -C ~/.exo-home checkout .",
        "curl -o /srv/exo/x https://example.org",
    ] {
        let finding = Guard::new().check(command, &context());
        let keys = &finding.keys;
        let own = keys.iter().any(|key| key.category == Category::SelfControl);
        if !own {
            wrong.push(format!("{command} {}", finding.rule));
        }
    }
    for command in [
        "ls ~/.exo-home",
        "cat ~/.exo-home/config.toml",
        "head -5 /srv/exo/log",
        "grep x -r /srv/exo",
        "find ~/.exo-home -name x",
        "find /srv/exo -type f -exec cat {} +",
        "jq . /srv/exo/x.json",
        "[ -f ~/.exo-home/x ]",
        "cd /srv/exo && ls",
        "exoshell run ls",
        "sha256sum /srv/exo/x",
        "sudo cat /srv/exo/x",
        "kill 123",
        "pgrep exoshell",
        "ln -s x y",
        "cp * /tmp/x",
        "tar czf x.tar *",
        "pkill node",
    ] {
        let finding = Guard::new().check(command, &context());
        let own = finding.category == Category::SelfControl;
        if own {
            wrong.push(format!("{command} {}", finding.rule));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
