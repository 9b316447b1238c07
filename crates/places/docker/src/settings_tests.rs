use super::*;

#[test]
fn label_values_are_made_safe() {
    let long = "x".repeat(100);
    let cases = [
        ("", "unknown"),
        ("plain-1.2_3", "plain-1.2_3"),
        ("a b/c:d", "a_b_c_d"),
        ("ünï", "_n_"),
        ("line\nbreak\0", "line_break_"),
        (long.as_str(), &long[..63]),
    ];
    for (text, expected) in cases {
        assert_eq!(label_value(text), expected, "{text:?}");
    }
}

#[test]
fn the_config_hash_follows_every_setting_that_shapes_the_container() {
    let base = DockerSettings::default();
    let changed = |change: fn(&mut DockerSettings)| {
        let mut settings = DockerSettings::default();
        change(&mut settings);
        settings.config_hash()
    };
    let shaping: [fn(&mut DockerSettings); 12] = [
        |s| s.image = "other".to_owned(),
        |s| s.cpu = 2.0,
        |s| s.memory_mb = 1,
        |s| s.disk_mb = 1,
        |s| s.network = false,
        |s| s.volumes.push("a:/b".to_owned()),
        |s| s.run_as = Some(HostUser { uid: 1, gid: 2 }),
        |s| s.mount_cwd = Some("/x".into()),
        |s| s.persistent = Some("/x".into()),
        |s| {
            s.read_only_mounts.push(ReadOnlyMount {
                source: "/a".into(),
                target: "/b".to_owned(),
            });
        },
        |s| s.extra_args.push("--privileged".to_owned()),
        |s| s.persist_across_processes = false,
    ];
    let mut seen = vec![base.config_hash()];
    for change in shaping {
        let hash = changed(change);
        assert!(!seen.contains(&hash));
        seen.push(hash);
    }
    assert_eq!(base.shape().len(), shaping.len());
    let others: [fn(&mut DockerSettings); 6] = [
        |s| s.lifetime = Duration::from_secs(1),
        |s| s.program = Some("podman".into()),
        |s| s.engine = Some("unix:///x".to_owned()),
        |s| s.container = Some("mine".to_owned()),
        |s| s.guest_dir = Some("/g".into()),
        |s| s.profile = Some("p".to_owned()),
    ];
    for change in others {
        assert_eq!(changed(change), base.config_hash());
    }
}

#[test]
fn the_profile_is_the_configured_one_or_a_hash_of_the_home_folder() {
    let mut settings = DockerSettings::default();
    let one = settings.profile_label(Path::new("/one"));
    let two = settings.profile_label(Path::new("/two"));
    assert_ne!(one, two);
    settings.profile = Some("team a".to_owned());
    assert_eq!(settings.profile_label(Path::new("/one")), "team_a");
}

#[test]
fn a_container_is_sealed_unless_something_of_the_host_can_be_reached() {
    let sealed = |change: fn(&mut DockerSettings)| {
        let mut settings = DockerSettings::default();
        change(&mut settings);
        settings.is_sealed()
    };
    assert!(sealed(|_| {}));
    assert!(sealed(|s| s.volumes = vec!["/data:/data:ro".to_owned()]));
    assert!(sealed(|s| s.extra_args = vec!["--shm-size=1g".to_owned()]));
    assert!(!sealed(|s| s.volumes = vec!["/data:/data".to_owned()]));
    assert!(!sealed(|s| s.volumes = vec!["/data:/data:rw".to_owned()]));
    assert!(!sealed(|s| s.mount_cwd = Some("/w".into())));
    assert!(!sealed(|s| s.persistent = Some("/p".into())));
    assert!(!sealed(|s| s.container = Some("mine".to_owned())));
    for words in [
        ["-v", "/:/host"],
        ["--mount=type=bind,src=/,dst=/h", ""],
        ["--privileged", ""],
        ["-v/:/h", ""],
    ] {
        let settings = DockerSettings {
            extra_args: words.iter().map(|word| (*word).to_owned()).collect(),
            ..DockerSettings::default()
        };
        assert!(!settings.is_sealed(), "{words:?}");
    }
}
