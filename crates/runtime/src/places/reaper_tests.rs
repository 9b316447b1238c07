use super::*;

const PERIOD: Duration = Duration::from_secs(300);

#[test]
fn one_program_sweeps_at_a_time_and_not_again_within_the_period() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep.lock");
    let first = Stamp::take(&path, PERIOD).unwrap().unwrap();
    assert!(Stamp::take(&path, PERIOD).unwrap().is_none(), "it is held");
    drop(first);
    let second = Stamp::take(&path, PERIOD).unwrap().unwrap();
    second.renew().unwrap();
    assert!(Stamp::take(&path, PERIOD).unwrap().is_none(), "just now");
    for text in ["5\n", "99999999999\n", "nonsense", ""] {
        std::fs::write(&path, text).unwrap();
        assert!(Stamp::take(&path, PERIOD).unwrap().is_some(), "{text:?}");
    }
}

#[test]
fn only_containers_of_ours_have_an_engine_to_sweep() {
    let home = Path::new("/home");
    let docker = |change: fn(&mut exoshell_place_docker::DockerSettings)| {
        let mut settings = exoshell_place_docker::DockerSettings::default();
        change(&mut settings);
        stamp_path(&PlaceSpec::Docker(Box::new(settings)), home)
    };
    assert_eq!(stamp_path(&PlaceSpec::Local, home), None);
    assert_eq!(docker(|s| s.container = Some("x".to_owned())), None);
    assert_eq!(
        docker(|_| {}),
        Some(PathBuf::from("/home/docker/sweep-engine.lock"))
    );
    assert_eq!(
        docker(|s| s.program = Some(PathBuf::from("/usr/bin/podman"))),
        Some(PathBuf::from("/home/docker/sweep-podman.lock"))
    );
}
