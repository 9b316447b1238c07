//! The docker backend on real engines.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

mod identity;
mod support;

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use exoshell_place::{Place as _, PlaceError, Progress, Trouble};
use exoshell_place_docker::{DockerSettings, HostUser, ReadOnlyMount};
use exoshell_wire::Start;
use support::{BUSYBOX, DEBIAN, ENTRYPOINT, USER, World, exec, link, listener, open, run, until};

async fn a_container_is_made_used_found_again_and_removed(world: World) {
    let place = world.place(world.settings(DEBIAN), "task one");
    assert!(place.open_existing().await.unwrap().is_none());
    let first = open(&place).await;
    assert_eq!(run(&first, "echo hi; pwd").await, "hi\n/root");
    run(&first, "echo kept > /root/file").await;
    let facts = place.inspect().await.unwrap();
    assert_eq!(facts.state.as_deref(), Some("running"));
    assert!(facts.image.unwrap().contains(DEBIAN));
    assert_eq!(world.containers().len(), 1);
    let id = facts.id.unwrap();

    let same = world.place(world.settings(DEBIAN), "task one");
    let second = link(same.open_existing().await.unwrap().unwrap()).await;
    assert_eq!(run(&second, "cat /root/file").await, "kept");
    assert_eq!(second.hello().incarnation, first.hello().incarnation);
    let other = world.place(world.settings(DEBIAN), "task_one");
    assert!(
        other.open_existing().await.unwrap().is_none(),
        "another task"
    );

    world.client(&["stop", "--time", "5", &id]);
    assert!(place.open_existing().await.unwrap().is_none());
    let third = open(&place).await;
    assert_eq!(
        place.inspect().await.unwrap().id,
        Some(id.clone()),
        "started again"
    );
    run(&third, "true").await;

    world.client(&["rm", "--force", &id]);
    third.closed().await;
    assert!(place.open_existing().await.unwrap().is_none());
    let fourth = open(&place).await;
    run(&fourth, "true").await;
    assert_ne!(place.inspect().await.unwrap().id, Some(id), "made anew");

    place.destroy().await.unwrap();
    assert_eq!(world.containers(), Vec::<String>::new());
    place.destroy().await.unwrap();
}

#[tokio::test]
async fn docker_makes_uses_finds_and_removes_a_container() {
    a_container_is_made_used_found_again_and_removed(World::docker()).await;
}

#[tokio::test]
async fn podman_makes_uses_finds_and_removes_a_container() {
    a_container_is_made_used_found_again_and_removed(World::podman()).await;
}

/// Asserts what a container looks like from inside, or that a limit is reported by name.
async fn hardening_holds_from_inside(world: World) {
    let settings = DockerSettings {
        cpu: 0.5,
        memory_mb: 512,
        disk_mb: 1024,
        ..world.settings(DEBIAN)
    };
    let place = world.place(settings, "hard");
    let inside = open(&place).await;
    let status = run(
        &inside,
        "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status",
    )
    .await;
    // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, SETGID 6, SETUID 7.
    for line in [
        "CapEff:\t00000000000000cb",
        "CapBnd:\t00000000000000cb",
        "NoNewPrivs:\t1",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let mounts = run(&inside, "cat /proc/mounts").await;
    for (target, size, noexec) in [
        ("/tmp", "524288k", false),
        ("/var/tmp", "262144k", true),
        ("/run", "65536k", true),
        ("/workspace", "10485760k", false),
        ("/home", "1048576k", false),
        ("/root", "1048576k", false),
    ] {
        let line = mounts
            .lines()
            .find(|line| line.split(' ').nth(1) == Some(target))
            .unwrap();
        assert!(line.contains("tmpfs") && line.contains("nosuid"), "{line}");
        assert!(line.contains(&format!("size={size}")), "{line}");
        assert_eq!(line.contains("noexec"), noexec, "{line}");
    }
    let unenforced = place.inspect().await.unwrap().unenforced;
    let record = world.client(&["inspect", &world.containers()[0]]);
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let limits = &record[0]["HostConfig"];
    for (name, field, expected) in [
        ("pids", "PidsLimit", 256),
        ("memory", "Memory", 512 << 20),
        ("cpu", "NanoCpus", 500_000_000),
    ] {
        let set = limits[field].as_i64() == Some(expected);
        assert_ne!(
            set,
            unenforced.iter().any(|limit| limit == name),
            "{name}: {unenforced:?}"
        );
    }
    assert_eq!(run(&inside, "cat /proc/1/comm").await, "exoshell-init");
    place.destroy().await.unwrap();
}

#[tokio::test]
async fn dockers_hardening_holds_from_inside() {
    hardening_holds_from_inside(World::docker()).await;
}

#[tokio::test]
async fn podmans_hardening_holds_from_inside() {
    hardening_holds_from_inside(World::podman()).await;
}

#[tokio::test]
async fn any_image_works_as_it_is() {
    let world = World::docker();
    for (image, command, expected) in [
        (BUSYBOX, "echo $((1+1)); pwd", "2\n/root"),
        (ENTRYPOINT, "pwd", "/root"),
        (
            USER,
            "[ $(id -u) != 0 ] && pwd | grep -c ^/home/ && touch $HOME/x && echo fine",
            "1\nfine",
        ),
    ] {
        let place = world.place(world.settings(image), image);
        let inside = open(&place).await;
        assert_eq!(run(&inside, command).await, expected, "{image}");
        place.destroy().await.unwrap();
    }
}

#[tokio::test]
async fn mounted_folders_belong_to_the_host_user_and_read_only_ones_stay() {
    let world = World::docker();
    let folder = world.home.path().join("a,b 'c'");
    std::fs::create_dir(&folder).unwrap();
    let user = HostUser {
        uid: 12_345,
        gid: 23_456,
    };
    std::os::unix::fs::chown(&folder, Some(user.uid), Some(user.gid)).unwrap();
    let secret = world.home.path().join("secret");
    std::fs::write(&secret, "s").unwrap();
    let settings = DockerSettings {
        mount_cwd: Some(folder.clone()),
        run_as: Some(user),
        read_only_mounts: vec![ReadOnlyMount {
            source: secret.clone(),
            target: "/secret".to_owned(),
        }],
        volumes: vec!["no colon".to_owned()],
        network: false,
        ..world.settings(DEBIAN)
    };
    let place = world.place(settings, "user");
    let inside = open(&place).await;
    let script = "pwd; echo x > file; touch $HOME/y; (echo z > /secret) 2>/dev/null || echo refused; ls /sys/class/net";
    assert_eq!(run(&inside, script).await, "/workspace\nrefused\nlo");
    let file = folder.join("file").metadata().unwrap();
    assert_eq!((file.uid(), file.gid()), (user.uid, user.gid));
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "s");
    let notes = place.inspect().await.unwrap().notes;
    assert!(
        notes.iter().any(|note| note.contains("no colon")),
        "{notes:?}"
    );
    place.destroy().await.unwrap();
}

/// A process that outlives its host.
fn background() -> Start {
    Start {
        exec: exoshell_wire::Exec {
            timeout_ms: None,
            ..exec()
        },
        bound: false,
        notify: false,
        watch: Vec::new(),
        check_interval_ms: None,
        disk_bytes: 0,
    }
}

#[tokio::test]
async fn changed_settings_replace_an_idle_container_and_never_a_busy_one() {
    let world = World::docker();
    let old = world.place(world.settings(DEBIAN), "t");
    let link = open(&old).await;
    let process = link.start(background(), "sleep 1000".into()).await.unwrap();
    let changed = DockerSettings {
        network: false,
        ..world.settings(DEBIAN)
    };
    let new = world.place(changed, "t");
    let error = new.open(&Progress::default()).await.unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::OtherSettings));
    assert!(error.to_string().contains("network"), "{error}");
    run(
        &link,
        &format!("pkill -KILL sleep; kill -KILL {}; true", process.pid),
    )
    .await;
    let replaced = loop {
        match new.open(&Progress::default()).await {
            Ok(pipe) => break support::link(pipe).await,
            Err(error) => assert_eq!(error.trouble(), Some(Trouble::OtherSettings)),
        }
    };
    assert_eq!(run(&replaced, "ls /sys/class/net").await, "lo");
    assert_eq!(world.containers().len(), 1);
    let notes = new.inspect().await.unwrap().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("replaced") && note.contains("network"))
    );
    new.destroy().await.unwrap();
}

#[tokio::test]
async fn what_starts_while_the_new_image_is_pulled_is_not_ended() {
    let world = World::docker();
    // An image that is in the registry alone.
    let image = format!("{}/exoshell-test/gap", wanted_registry());
    world.client(&["tag", BUSYBOX, &image]);
    world.client(&["push", "--quiet", &image]);
    world.client(&["rmi", &image]);
    let old = world.place(world.settings(BUSYBOX), "t");
    drop(open(&old).await);
    let begin = move || {
        let old = old.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let link = link(old.open_existing().await.unwrap().unwrap()).await;
                link.start(background(), "sleep 1000".into()).await.unwrap();
            });
        })
        .join()
        .unwrap();
    };
    let once = std::sync::Once::new();
    let progress = Progress::new(move |step| {
        if step.starts_with("pulling") {
            once.call_once(&begin);
        }
    });
    let new = world.place(world.settings(&image), "t");
    let error = new.open(&progress).await.unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::OtherSettings), "{error}");
    world.client(&["rmi", &image]);
    new.destroy().await.unwrap();
}

async fn a_container_of_the_users_is_adopted_and_left_alone(world: World, image: &str) {
    let id = world.client(&[
        "run",
        "--detach",
        "--label",
        "exoshell.test=1",
        image,
        "/bin/sh",
        "-c",
        "sleep 1000",
    ]);
    let settings = DockerSettings {
        container: Some(id.clone()),
        ..world.settings(image)
    };
    let place = world.place(settings, "adopt");
    assert!(place.open_existing().await.unwrap().is_none());
    let first = open(&place).await;
    assert_eq!(run(&first, "echo hi; echo x > /file").await, "hi");
    let again = link(place.open_existing().await.unwrap().unwrap()).await;
    assert_eq!(again.hello().incarnation, first.hello().incarnation);
    first.shut_down().await.unwrap();
    place.destroy().await.unwrap();
    assert_eq!(
        world.client(&["exec", &id, "cat", "/file"]),
        "x",
        "it still runs"
    );
    let left = world.client(&["exec", &id, "/bin/sh", "-c", "ls -d /.exoshell || true"]);
    assert_eq!(left, "");
    world.client(&["rm", "--force", &id]);
    let error = place.open(&Progress::default()).await.unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::NoContainer));
}

#[tokio::test]
async fn docker_containers_are_adopted() {
    a_container_of_the_users_is_adopted_and_left_alone(World::docker(), DEBIAN).await;
    a_container_of_the_users_is_adopted_and_left_alone(World::docker(), BUSYBOX).await;
}

#[tokio::test]
async fn podman_containers_are_adopted() {
    a_container_of_the_users_is_adopted_and_left_alone(World::podman(), DEBIAN).await;
}

#[tokio::test]
async fn an_idle_container_ends_by_itself_and_without_persistence_it_is_gone() {
    let world = World::docker();
    let settings = DockerSettings {
        lifetime: Duration::from_secs(1),
        persist_across_processes: false,
        ..world.settings(BUSYBOX)
    };
    let place = world.place(settings, "idle");
    let inside = open(&place).await;
    run(&inside, "true").await;
    inside.closed().await;
    until("the removal", || world.containers().is_empty()).await;
    assert!(place.open_existing().await.unwrap().is_none());
}

#[tokio::test]
async fn a_removal_is_over_only_when_the_engines_own_is_over() {
    let world = World::docker();
    let settings = DockerSettings {
        persist_across_processes: false,
        ..world.settings(DEBIAN)
    };
    let place = world.place(settings, "leaving");
    let link = open(&place).await;
    assert_eq!(run(&link, "echo here").await, "here");
    // The container ends, so the engine begins to remove it while we ask for the same.
    let _ = link.shut_down().await;
    place.destroy().await.unwrap();
    assert_eq!(world.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn the_sweep_removes_only_old_ended_containers() {
    let world = World::docker();
    let settings = DockerSettings {
        lifetime: Duration::from_secs(1),
        ..world.settings(BUSYBOX)
    };
    let old = world.place(settings.clone(), "old");
    let inside = open(&old).await;
    inside.closed().await;
    let running = world.place(
        DockerSettings {
            lifetime: Duration::from_secs(300),
            ..settings.clone()
        },
        "running",
    );
    let alive = open(&running).await;
    let stranger = world.place(
        DockerSettings {
            profile: Some("stranger".to_owned()),
            ..settings
        },
        "stranger",
    );
    open(&stranger).await.closed().await;
    until("both ends", || {
        let listed = world.client(&["ps", "--quiet", "--filter", "label=exoshell=1"]);
        world
            .containers()
            .iter()
            .filter(|id| listed.contains(id.as_str()))
            .count()
            == 1
    })
    .await;
    assert_eq!(world.containers().len(), 3);
    let patience = std::time::Instant::now() + Duration::from_secs(20);
    while world.containers().len() == 3 && std::time::Instant::now() < patience {
        old.sweep().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(world.containers().len(), 2);
    run(&alive, "true").await;
    assert!(stranger.inspect().await.unwrap().id.is_some());
}

#[tokio::test]
async fn a_missing_image_is_pulled_with_news_or_refused_with_a_reason() {
    let world = World::docker();
    let registry = wanted_registry();
    let name = format!("{registry}/exoshell-test/layers");
    let _ = std::process::Command::new("docker")
        .args([
            "-H",
            &support::wanted("DOCKER_HOST"),
            "rmi",
            "--force",
            &name,
        ])
        .output();
    let place = world.place(world.settings(&name), "pull");
    let (progress, steps) = listener();
    match place.open(&progress).await {
        Ok(_)
        | Err(PlaceError::Backend {
            trouble: Trouble::DoesNotStart,
            ..
        }) => {}
        Err(error) => panic!("{error}"),
    }
    let steps = steps.lock().unwrap().clone();
    assert!(
        steps
            .iter()
            .filter(|step| step.starts_with("pulling"))
            .count()
            > 3,
        "{steps:?}"
    );
    place.destroy().await.unwrap();
    for missing in [
        format!("{registry}/exoshell-test/none"),
        "127.0.0.1:1/x".to_owned(),
    ] {
        let place = world.place(world.settings(&missing), "none");
        let error = place.open(&Progress::default()).await.unwrap_err();
        assert_eq!(error.trouble(), Some(Trouble::NoImage), "{error}");
    }
}

fn wanted_registry() -> String {
    support::wanted("REGISTRY")
}

#[tokio::test]
async fn concurrent_hosts_make_one_container() {
    let world = World::docker();
    let places: Vec<_> = (0..5)
        .map(|_| world.place(world.settings(BUSYBOX), "same"))
        .collect();
    let open = places.iter().map(|place| {
        let place = place.clone();
        tokio::spawn(async move { support::open(&place).await.hello().incarnation.clone() })
    });
    let mut seen = Vec::new();
    for task in open.collect::<Vec<_>>() {
        seen.push(task.await.unwrap());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1);
    assert_eq!(world.containers().len(), 1);
}

#[tokio::test]
async fn what_does_not_work_says_why() {
    let world = World::docker();
    let cases = [
        (
            DockerSettings {
                engine: Some("unix:///no/such.sock".to_owned()),
                ..world.settings(BUSYBOX)
            },
            Trouble::NoDaemon,
        ),
        (
            DockerSettings {
                program: Some("/no/such/docker".into()),
                ..world.settings(BUSYBOX)
            },
            Trouble::NoProgram,
        ),
        (
            DockerSettings {
                extra_args: vec!["--bogus".to_owned()],
                ..world.settings(BUSYBOX)
            },
            Trouble::BadSetting,
        ),
        (
            DockerSettings {
                memory_mb: 1,
                ..world.settings(BUSYBOX)
            },
            Trouble::BadSetting,
        ),
        (
            DockerSettings {
                mount_cwd: Some("/no/such/folder".into()),
                ..world.settings(BUSYBOX)
            },
            Trouble::BadSetting,
        ),
        (
            DockerSettings {
                container: Some("no-such-container".to_owned()),
                ..world.settings(BUSYBOX)
            },
            Trouble::NoContainer,
        ),
    ];
    for (settings, expected) in cases {
        let place = world.place(settings, "wrong");
        let error = place.open(&Progress::default()).await.unwrap_err();
        assert_eq!(error.trouble(), Some(expected), "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!(
        world.containers(),
        Vec::<String>::new(),
        "nothing is left of a failure"
    );
}

#[tokio::test]
async fn doctor_sees_engine_pipe_limits_and_image() {
    for (world, pipe) in [
        (World::docker(), "over"),
        (World::podman(), "client process"),
    ] {
        let checks = world
            .place(world.settings(DEBIAN), "x")
            .check()
            .await
            .unwrap();
        let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        let expected = [
            "program",
            "engine",
            "pipe",
            "privileges",
            "limits",
            "storage limit",
            "image",
        ];
        assert_eq!(names, expected, "{checks:?}");
        assert!(checks[2].found.contains(pipe), "{checks:?}");
        assert_eq!(world.is_podman(), checks[1].found.contains("Podman"));
    }
}

#[tokio::test]
async fn a_container_without_a_shell_is_adopted_by_copying() {
    let world = World::docker();
    let script = "cp /bin/busybox /busybox; /busybox rm -rf /bin; exec /busybox sleep 1000";
    let id = world.client(&["run", "--detach", BUSYBOX, "/bin/sh", "-c", script]);
    until("the end of the shell", || {
        world
            .client(&["exec", &id, "/busybox", "ls", "/"])
            .lines()
            .all(|name| name != "bin")
    })
    .await;
    let settings = DockerSettings {
        container: Some(id.clone()),
        ..world.settings(BUSYBOX)
    };
    let place = world.place(settings, "bare");
    let inside = open(&place).await;
    assert_eq!(inside.hello().shells, Vec::new());
    let again = link(place.open_existing().await.unwrap().unwrap()).await;
    again.shut_down().await.unwrap();
    world.client(&["rm", "--force", &id]);
}

/// A filesystem that allows no programs.
struct NoPrograms(std::path::PathBuf);

impl NoPrograms {
    fn mount(path: std::path::PathBuf) -> Self {
        std::fs::create_dir(&path).unwrap();
        let mut mount = std::process::Command::new("mount");
        let options = ["-t", "tmpfs", "-o", "noexec,mode=0700", "none"];
        assert!(mount.args(options).arg(&path).status().unwrap().success());
        Self(path)
    }
}

impl Drop for NoPrograms {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(&self.0)
            .status();
    }
}

#[tokio::test]
async fn a_guest_that_cannot_run_from_its_mount_is_copied() {
    let world = World::docker();
    let _mount = NoPrograms::mount(world.home());
    let place = world.place(world.settings(BUSYBOX), "noexec");
    let inside = open(&place).await;
    assert_eq!(run(&inside, "echo hi").await, "hi");
    place.destroy().await.unwrap();
}

#[tokio::test]
async fn a_program_is_launched_with_its_streams_apart() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    for world in [World::docker(), World::podman()] {
        let place = world.place(world.settings(BUSYBOX), "launch");
        let words = ["/bin/sh", "-c", "cat; echo bad >&2"].map(str::to_owned);
        let error = place.launch(&words).await.unwrap_err();
        assert_eq!(error.trouble(), Some(Trouble::NoContainer));
        open(&place).await;
        let mut launched = place.launch(&words).await.unwrap();
        launched.stdin.write_all(b"good").await.unwrap();
        launched.stdin.shutdown().await.unwrap();
        drop(launched.stdin);
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let (one, two) = tokio::join!(
            launched.stdout.read_to_string(&mut stdout),
            launched.stderr.read_to_string(&mut stderr)
        );
        one.unwrap();
        two.unwrap();
        assert_eq!((stdout.as_str(), stderr.trim()), ("good", "bad"));
        place.destroy().await.unwrap();
    }
}

#[tokio::test]
async fn a_persistent_filesystem_outlives_its_container() {
    let world = World::docker();
    for image in [DEBIAN, USER] {
        let folder = world.home.path().join(image.replace('/', "-"));
        let settings = DockerSettings {
            persistent: Some(folder.clone()),
            ..world.settings(image)
        };
        let place = world.place(settings, image);
        let inside = open(&place).await;
        assert_eq!(run(&inside, "pwd; echo kept > note").await, "/workspace");
        place.destroy().await.unwrap();
        let inside = open(&place).await;
        assert_eq!(run(&inside, "cat /workspace/note").await, "kept");
        place.destroy().await.unwrap();
        assert!(folder.join("workspace/note").exists());
    }
}

async fn a_volume_whose_source_is_missing_is_refused_and_not_made(world: World) {
    let missing = world.home.path().join("missing");
    for options in ["", ":ro", ":z"] {
        let settings = DockerSettings {
            volumes: vec![format!("{}:/data{options}", missing.display())],
            ..world.settings(BUSYBOX)
        };
        let place = world.place(settings, "t");
        let error = place.open(&Progress::default()).await.unwrap_err();
        assert_eq!(error.trouble(), Some(Trouble::BadSetting), "{error}");
        let said = format!("{error} {:?}", error.hint());
        assert!(said.contains("missing") && said.contains("first"), "{said}");
        assert!(!missing.exists(), "nobody asked for a folder");
        assert_eq!(world.containers(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn docker_makes_no_source_of_a_volume() {
    a_volume_whose_source_is_missing_is_refused_and_not_made(World::docker()).await;
}

#[tokio::test]
async fn podman_makes_no_source_of_a_volume() {
    a_volume_whose_source_is_missing_is_refused_and_not_made(World::podman()).await;
}

async fn another_user_in_the_extra_arguments_has_a_place_to_work(world: World) {
    for (number, user) in ["nobody", "4321:4321"].into_iter().enumerate() {
        for persistent in [None, Some(world.home.path().join(format!("kept{number}")))] {
            let kept = persistent.is_some();
            let settings = DockerSettings {
                extra_args: vec!["--user".to_owned(), user.to_owned()],
                persistent,
                ..world.settings(DEBIAN)
            };
            let place = world.place(settings, &format!("{user} {kept}"));
            let inside = open(&place).await;
            let said = run(&inside, "id -u; pwd; touch here && echo writes").await;
            let lines: Vec<&str> = said.lines().collect();
            assert_ne!(lines[0], "0", "{said}");
            assert_eq!(lines[1..], ["/workspace", "writes"], "{user} {kept}");
            // The next start mounts everything anew.
            let id = place.inspect().await.unwrap().id.unwrap();
            world.client(&["stop", "--time", "5", &id]);
            let again = open(&place).await;
            assert_eq!(run(&again, "touch there && echo writes").await, "writes");
            assert_eq!(place.inspect().await.unwrap().id, Some(id));
            place.destroy().await.unwrap();
        }
    }
}

#[tokio::test]
async fn on_docker_another_user_has_a_place_to_work() {
    another_user_in_the_extra_arguments_has_a_place_to_work(World::docker()).await;
}

#[tokio::test]
async fn on_podman_another_user_has_a_place_to_work() {
    another_user_in_the_extra_arguments_has_a_place_to_work(World::podman()).await;
}

async fn a_container_whose_guest_folder_is_removed_is_found_again(world: World) {
    let place = world.place(world.settings(BUSYBOX), "t");
    let inside = open(&place).await;
    run(&inside, "echo kept > /var/kept; rm -rf /.exoshell/run").await;
    let next = world.place(world.settings(BUSYBOX), "t");
    let again = open(&next).await;
    assert_eq!(again.hello().incarnation, inside.hello().incarnation);
    assert_eq!(run(&again, "cat /var/kept").await, "kept");
    place.destroy().await.unwrap();
}

#[tokio::test]
async fn docker_containers_whose_guest_folder_is_removed_are_found_again() {
    a_container_whose_guest_folder_is_removed_is_found_again(World::docker()).await;
}

#[tokio::test]
async fn podman_containers_whose_guest_folder_is_removed_are_found_again() {
    a_container_whose_guest_folder_is_removed_is_found_again(World::podman()).await;
}
