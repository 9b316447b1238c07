use std::time::Duration;

use super::*;
use crate::names::check_container;
use crate::settings::ReadOnlyMount;

fn abilities(missing: &[Limit]) -> Abilities {
    Abilities {
        missing: missing.iter().copied().collect(),
        processors: Some(4),
        rootless: false,
        storage: "overlay2 on xfs".to_owned(),
    }
}

fn image(workdir: &str, user: &str) -> Image {
    Image {
        os: "linux".to_owned(),
        arch: "amd64".to_owned(),
        workdir: workdir.to_owned(),
        user: user.to_owned(),
    }
}

fn settings() -> DockerSettings {
    DockerSettings {
        image: "img:1".to_owned(),
        ..DockerSettings::default()
    }
}

struct Case<'a> {
    settings: DockerSettings,
    image: Image,
    abilities: Abilities,
    flavour: Flavour,
    main: Main,
    refused: &'a [Limit],
}

impl Case<'_> {
    fn of(settings: DockerSettings) -> Self {
        Case {
            settings,
            image: image("", ""),
            abilities: abilities(&[]),
            flavour: Flavour::Docker,
            main: Main::Mounted("/h/guest/1/exoshell-guest".into()),
            refused: &[],
        }
    }

    fn try_words(&self) -> Result<Written, PlaceError> {
        Plan {
            settings: &self.settings,
            name: "exoshell-t-1",
            labels: &[("exoshell".to_owned(), "1".to_owned())],
            image: &self.image,
            abilities: &self.abilities,
            flavour: self.flavour,
            main: &self.main,
            refused: &self.refused.iter().copied().collect(),
            user_home: None,
            directory: Some(Path::new("/")),
        }
        .words()
    }

    fn words(&self) -> Written {
        self.try_words().unwrap()
    }
}

/// Returns the values behind a flag.
fn values<'a>(words: &'a Written, flag: &str) -> Vec<&'a str> {
    words
        .arguments
        .windows(2)
        .filter(|pair| pair[0] == flag)
        .map(|pair| pair[1].as_str())
        .collect()
}

fn has(words: &Written, word: &str) -> bool {
    words.arguments.iter().any(|known| known == word)
}

/// Returns the mounts in memory, without their options.
fn memory(words: &Written) -> Vec<&str> {
    let targets = values(words, "--tmpfs");
    targets
        .iter()
        .map(|mount| mount.split(':').next().unwrap())
        .collect()
}

#[test]
fn the_default_container_is_hardened_limited_and_labelled() {
    let words = Case::of(settings()).words();
    let expected = "--pull never --no-healthcheck --stop-signal SIGTERM --name exoshell-t-1 \
        --cap-drop ALL --cap-add DAC_OVERRIDE --cap-add CHOWN --cap-add FOWNER --cap-add SETUID \
        --cap-add SETGID --security-opt no-new-privileges \
        --cpus 1 --memory 5120m --storage-opt size=51200M --pids-limit 256 \
        --label exoshell=1 --label exoshell.unenforced= \
        --tmpfs /tmp:rw,exec,nosuid,nodev,size=512m,mode=1777 \
        --tmpfs /var/tmp:rw,noexec,nosuid,nodev,size=256m,mode=1777 \
        --tmpfs /run:rw,noexec,nosuid,nodev,size=64m,mode=1777 \
        --tmpfs /workspace:rw,exec,nosuid,nodev,size=10g,mode=1777 \
        --tmpfs /home:rw,exec,nosuid,nodev,size=1g,mode=1777 \
        --tmpfs /root:rw,exec,nosuid,nodev,size=1g,mode=1777 \
        --mount type=bind,source=/h/guest/1/exoshell-guest,target=/.exoshell/guest,readonly \
        --workdir /root --entrypoint /.exoshell/guest img:1 \
        init --dir /.exoshell/run --dir /.exoshell/user/guest --dir /tmp/.exoshell --home /root \
        --idle-ms 300000";
    let expected: Vec<&str> = expected.split_whitespace().collect();
    assert_eq!(words.arguments, expected);
    assert_eq!(words.unenforced, Vec::<&str>::new());
    assert_eq!(words.notes, Vec::<String>::new());
}

#[test]
fn a_limit_of_zero_is_none_and_one_that_cannot_be_is_reported() {
    let mut case = Case::of(DockerSettings {
        cpu: 0.0,
        memory_mb: 0,
        disk_mb: 0,
        ..settings()
    });
    let words = case.words();
    for flag in ["--cpus", "--memory", "--storage-opt"] {
        assert!(!has(&words, flag), "{flag}");
    }
    assert_eq!(words.unenforced, Vec::<&str>::new());
    case.settings = settings();
    case.abilities = abilities(&[Limit::Disk]);
    case.refused = &[Limit::Pids];
    let words = case.words();
    assert_eq!(words.unenforced, ["disk", "pids"]);
    assert!(has(&words, "exoshell.unenforced=disk.pids"));
    assert!(!has(&words, "--storage-opt") && !has(&words, "--pids-limit"));
    case.settings.cpu = 64.0;
    let words = case.words();
    assert!(!has(&words, "--cpus"), "more than there is needs no limit");
    assert!(!words.unenforced.contains(&"cpu"));
}

#[test]
fn the_working_directory_follows_what_is_mounted_and_the_image() {
    let cases: [(&str, DockerSettings, &str); 6] = [
        ("", settings(), "/root"),
        ("/", settings(), "/root"),
        ("/src", settings(), "/src"),
        (
            "/src",
            DockerSettings {
                mount_cwd: Some("/p".into()),
                ..settings()
            },
            "/workspace",
        ),
        (
            "/src",
            DockerSettings {
                persistent: Some("/s".into()),
                ..settings()
            },
            "/workspace",
        ),
        (
            "/src",
            DockerSettings {
                volumes: vec!["/v:/workspace/".to_owned()],
                ..settings()
            },
            "/workspace",
        ),
    ];
    for (workdir, settings, expected) in cases {
        let mut case = Case::of(settings);
        case.image.workdir = workdir.to_owned();
        let words = case.words();
        assert_eq!(values(&words, "--workdir"), [expected]);
        assert_eq!(values(&words, "--home"), [expected]);
    }
}

#[test]
fn a_user_volume_wins_over_our_mounts() {
    let case = Case::of(DockerSettings {
        volumes: vec!["/mine:/workspace:ro".to_owned(), "/t:/tmp".to_owned()],
        mount_cwd: Some("/cwd".into()),
        persistent: Some("/s".into()),
        extra_args: vec!["-v".to_owned(), "/r:/root".to_owned()],
        ..settings()
    });
    let words = case.words();
    let mounts = values(&words, "--mount");
    assert_eq!(mounts.len(), 3, "only these and the guest: {mounts:?}");
    assert_eq!(
        mounts[..2],
        [
            "type=bind,source=/mine,target=/workspace,readonly",
            "type=bind,source=/t,target=/tmp"
        ]
    );
    assert_eq!(memory(&words), ["/var/tmp", "/run"]);
    let extra = words
        .arguments
        .iter()
        .position(|word| word == "/r:/root")
        .unwrap();
    assert_eq!(
        words.arguments[extra + 1],
        "img:1",
        "extra arguments come last"
    );
}

#[test]
fn bad_entries_are_skipped_with_a_note() {
    let case = Case::of(DockerSettings {
        volumes: vec![
            "nonsense".to_owned(),
            "/a:/b".to_owned(),
            "/c:/b/".to_owned(),
        ],
        extra_args: vec![String::new()],
        read_only_mounts: vec![
            ReadOnlyMount {
                source: "/".into(),
                target: "/host".to_owned(),
            },
            ReadOnlyMount {
                source: "/no/such/file".into(),
                target: "/x".to_owned(),
            },
            ReadOnlyMount {
                source: "/".into(),
                target: "/b".to_owned(),
            },
        ],
        ..settings()
    });
    let words = case.words();
    assert!(has(&words, "type=bind,source=/a,target=/b"));
    assert!(has(&words, "type=bind,source=/,target=/host,readonly"));
    assert_eq!(words.notes.len(), 5, "{:?}", words.notes);
    assert!(words.notes.iter().all(|note| note.contains("skipped")));
}

#[test]
fn a_volume_never_makes_its_source_and_a_name_is_no_folder() {
    let with = |volume: &str| {
        Case::of(DockerSettings {
            volumes: vec![volume.to_owned()],
            ..settings()
        })
    };
    // Only this form knows the option, and with it Docker would make the folder.
    let error = with("/no/such/folder:/b:z").try_words().unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::BadSetting));
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
    assert_eq!(
        values(&with("/etc:/b:z").words(), "--volume"),
        ["/etc:/b:z"]
    );
    let mut podman = with("/no/such/folder:/b:z");
    podman.flavour = Flavour::Podman;
    assert_eq!(
        values(&podman.words(), "--volume"),
        ["/no/such/folder:/b:z"]
    );
    // There is a folder of this name where the caller is.
    let named = with("etc:/b").words();
    assert_eq!(values(&named, "--volume"), ["etc:/b"]);
    assert!(
        named.notes[0].contains("absolute path"),
        "{:?}",
        named.notes
    );
    assert_eq!(with("cache:/b").words().notes, Vec::<String>::new());
}

#[test]
fn the_host_user_gets_no_way_to_change_users() {
    let user = DockerSettings {
        run_as: Some(HostUser {
            uid: 1234,
            gid: 5678,
        }),
        ..settings()
    };
    let mut case = Case::of(user);
    let words = case.words();
    assert_eq!(values(&words, "--user"), ["1234:5678"]);
    assert_eq!(
        values(&words, "--cap-add"),
        ["DAC_OVERRIDE", "CHOWN", "FOWNER"]
    );
    assert!(memory(&words).contains(&"/.exoshell/user"));
    case.abilities.rootless = true;
    assert_eq!(values(&case.words(), "--user"), ["0:0"]);
    case.flavour = Flavour::Podman;
    let words = case.words();
    assert_eq!(values(&words, "--user"), ["1234:5678"]);
    assert_eq!(values(&words, "--userns"), ["keep-id"]);
}

#[test]
fn what_an_image_is_for_is_not_hidden() {
    let mut case = Case::of(settings());
    case.image = image("/workspace/repo", "dev");
    let words = case.words();
    let expected = ["/tmp", "/var/tmp", "/run", "/root", "/.exoshell/user"];
    assert_eq!(memory(&words), expected);
    assert_eq!(values(&words, "--workdir"), ["/workspace/repo"]);
}

#[test]
fn switches_become_flags() {
    let case = Case::of(DockerSettings {
        network: false,
        persist_across_processes: false,
        lifetime: Duration::ZERO,
        ..settings()
    });
    let words = case.words();
    assert_eq!(values(&words, "--network"), ["none"]);
    assert!(has(&words, "--rm") && !has(&words, "--idle-ms"));
    let words = Case::of(settings()).words();
    assert!(!has(&words, "--rm") && !has(&words, "--network"));
}

#[test]
fn a_copied_guest_is_not_mounted_and_a_keeper_needs_none() {
    let mut case = Case::of(settings());
    case.main = Main::Copied;
    let words = case.words();
    assert!(!has(&words, "--mount") && !has(&words, "--init"));
    case.main = Main::Keeper;
    let words = case.words();
    assert_eq!(values(&words, "--entrypoint"), ["/bin/sh"]);
    assert!(has(&words, "--init") && !has(&words, "--mount"));
}

#[test]
fn a_name_that_is_none_is_refused() {
    for name in ["", "-v", "a b", "a\nb"] {
        let case = Case::of(DockerSettings {
            image: name.to_owned(),
            ..settings()
        });
        let error = case.try_words().unwrap_err();
        assert_eq!(error.trouble(), Some(Trouble::BadSetting), "{name:?}");
        assert!(check_container(name).is_err());
    }
    assert!(check_container("my-box_1.2").is_ok());
    let case = Case::of(DockerSettings {
        cpu: f64::NAN,
        ..settings()
    });
    assert!(case.try_words().is_err());
}

#[test]
fn podman_gives_no_capability_to_a_user_that_is_not_root() {
    let none: [&str; 0] = [];
    for (user, run_as, expected) in [
        ("worker", None, &none[..]),
        (
            "",
            Some(HostUser {
                uid: 1000,
                gid: 1000,
            }),
            &none[..],
        ),
        (
            "root",
            None,
            &["DAC_OVERRIDE", "CHOWN", "FOWNER", "SETUID", "SETGID"],
        ),
    ] {
        let mut case = Case::of(settings());
        case.flavour = Flavour::Podman;
        case.image = image("", user);
        case.settings.run_as = run_as;
        let words = case.words();
        assert_eq!(values(&words, "--cap-drop"), ["ALL"]);
        assert_eq!(values(&words, "--cap-add"), expected, "{user} {run_as:?}");
    }
}
