//! Files that go with a task to a remote host, and back.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use exoshell_testkit::Sshd;
use serde_json::json;

use crate::site::{Kind, Site};
use crate::support::{Answer, Ran};

/// A world with files here and entries for them there.
struct Files {
    site: Site,
    /// What goes in only.
    secret: PathBuf,
    /// What comes back.
    cache: PathBuf,
    /// Where they are on the host.
    there: PathBuf,
}

fn files() -> Files {
    let here = tempfile::Builder::new()
        .prefix("exo-sync-")
        .tempdir()
        .unwrap()
        .keep();
    let secret = here.join("secret");
    let cache = here.join("cache dir");
    fs::create_dir_all(cache.join("deep")).unwrap();
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("token"), "s3cret\n").unwrap();
    fs::write(cache.join("a"), "a1\n").unwrap();
    fs::write(cache.join("deep/b c"), "b1\n").unwrap();
    fs::write(here.join("outside"), "mine\n").unwrap();
    let paths = json!([
        format!("{}:~/in/secret", secret.display()),
        format!("{}:~/in/cache:rw", cache.display()),
    ]);
    let host = Sshd::start();
    let there = host.home().join("in");
    let site = Site::on(host, &[("sync.paths", &paths.to_string())]);
    Files {
        site,
        secret,
        cache,
        there,
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.cache.parent().unwrap());
    }
}

#[track_caller]
fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn removed(site: &Site) -> Ran {
    let ran = site.exoshell(["places", "rm", "--all", "--json"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.text(), ran.talk());
    ran
}

#[test]
fn files_are_there_before_the_first_command_and_changes_come_back() {
    let files = files();
    let command = "cd; cat in/secret/token in/cache/a 'in/cache/deep/b c'";
    files.site.terminal(command).printed("s3cret\na1\nb1\n");
    assert_eq!(
        fs::metadata(files.there.join("secret/token"))
            .unwrap()
            .mode()
            & 0o222,
        0
    );
    // Nobody but the user sees any of it.
    assert_eq!(fs::metadata(&files.there).unwrap().mode() & 0o077, 0);
    files
        .site
        .terminal(
            "cd ~/in; echo a2 >cache/a; echo new >cache/deep/new; echo no >secret/extra; \
                   chmod u+w secret/token; echo changed >secret/token; echo out >~/elsewhere",
        )
        .printed("");
    let report = Answer::parse(&removed(&files.site).out);
    assert_eq!(report.0["brought_back"], 2, "{}", report.0);
    assert_eq!(read(files.cache.join("a")), "a2\n");
    assert_eq!(read(files.cache.join("deep/new")), "new\n");
    assert_eq!(read(files.cache.join("deep/b c")), "b1\n");
    assert_eq!(read(files.secret.join("token")), "s3cret\n");
    assert!(!files.secret.join("extra").exists());
    let mut names: Vec<_> = fs::read_dir(files.cache.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["cache dir", "outside", "secret"]);
}

#[test]
fn one_shot_commands_and_processes_find_them_too() {
    let files = files();
    let ran = files.site.exoshell(["run", "cat ~/in/secret/token"]);
    assert_eq!(
        (ran.code(), ran.text().as_str()),
        (0, "s3cret\n"),
        "{}",
        ran.talk()
    );
    let files = self::files();
    let id = files.site.begin("cat ~/in/secret/token", &json!({}));
    files.site.wait_for_end(&id);
    assert_eq!(files.site.logs(&id), "s3cret\n");
}

#[test]
fn only_what_differs_is_sent_again() {
    let files = files();
    files.site.task("one", "true").printed("");
    let stamp = |name: &str| {
        let found = fs::metadata(files.there.join(name)).unwrap();
        (found.ino(), found.mtime_nsec())
    };
    let before = [
        stamp("secret/token"),
        stamp("cache/a"),
        stamp("cache/deep/b c"),
    ];
    fs::write(files.cache.join("a"), "from here\n").unwrap();
    files
        .site
        .task("two", "cat ~/in/cache/a")
        .printed("from here\n");
    let after = [
        stamp("secret/token"),
        stamp("cache/a"),
        stamp("cache/deep/b c"),
    ];
    assert_eq!((before[0], before[2]), (after[0], after[2]), "sent twice");
    assert_ne!(before[1], after[1]);
}

#[test]
fn what_changed_on_both_sides_is_kept_twice() {
    let files = files();
    files
        .site
        .terminal("echo there >~/in/cache/a; rm '/'\"$HOME/in/cache/deep/b c\"")
        .printed("");
    fs::write(files.cache.join("a"), "here\n").unwrap();
    let ran = removed(&files.site);
    assert_eq!(read(files.cache.join("a")), "here\n");
    assert_eq!(read(files.cache.join("a.exoshell-remote")), "there\n");
    assert_eq!(read(files.cache.join("deep/b c")), "b1\n");
    for word in [
        "changed on both sides",
        "a.exoshell-remote",
        "was deleted in the place",
    ] {
        assert!(ran.text().contains(word), "no `{word}`: {}", ran.text());
    }
}

#[test]
fn links_of_the_place_lead_nowhere() {
    let files = files();
    let outside = files.cache.parent().unwrap().join("outside");
    let plain = files.site.host().home().join("plain");
    fs::write(&plain, "theirs\n").unwrap();
    files
        .site
        .terminal(&format!(
            "cd ~/in/cache; ln -s '{0}' link; ln -s ../../.. up; rm -r deep; ln -s '{1}' deep; \
             ln -sf ~/plain a; ln ~/plain hard",
            outside.display(),
            outside.parent().unwrap().display(),
        ))
        .printed("");
    let ran = removed(&files.site);
    assert_eq!(read(&outside), "mine\n");
    assert!(!files.cache.join("link").exists() && !files.cache.join("up").exists());
    assert!(
        fs::symlink_metadata(files.cache.join("deep"))
            .unwrap()
            .is_dir()
    );
    assert_eq!(read(files.cache.join("a")), "a1\n");
    assert!(ran.text().contains("link"), "{}", ran.text());
    // Nor do they on the way in: what is behind one is not written to.
    fs::remove_file(files.there.join("secret/token")).unwrap();
    symlink(&plain, files.there.join("secret/token")).unwrap();
    let answer = files.site.terminal("cat ~/plain");
    assert_eq!(answer.output(), "theirs\n", "{}", answer.0);
    assert!(answer.hint().contains("token"), "{}", answer.0);
    assert_eq!(
        fs::metadata(&plain).unwrap().permissions().mode() & 0o777,
        0o644
    );
}

#[test]
fn an_entry_that_makes_no_sense_is_refused_before_anything_runs() {
    for entry in ["/etc", "/etc:relative", "/a:/b:xx", "/:/x", "/a:/b/../c"] {
        let paths = json!([entry]).to_string();
        let site = Kind::Ssh.site_with(&[("sync.paths", &paths)]);
        let answer = site.terminal("echo it runs");
        assert_eq!(
            (answer.code(), answer.kind()),
            (-1, "config"),
            "{entry}: {}",
            answer.0
        );
        assert!(answer.hint().contains("LOCAL:REMOTE"), "{}", answer.0);
    }
}
