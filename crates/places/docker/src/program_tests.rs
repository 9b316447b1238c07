use std::fs::File;

use super::*;

fn program(folder: &Path, name: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    let file = File::create(&path).unwrap();
    file.set_permissions(fs::Permissions::from_mode(mode))
        .unwrap();
    path
}

#[test]
fn docker_is_preferred_and_podman_is_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().as_os_str());
    let podman = program(folder.path(), "podman", 0o755);
    assert_eq!(find(None, path).unwrap(), podman);
    program(folder.path(), "docker", 0o644);
    assert_eq!(
        find(None, path).unwrap(),
        podman,
        "not executable is not there"
    );
    fs::remove_file(folder.path().join("docker")).unwrap();
    let docker = program(folder.path(), "docker", 0o755);
    assert_eq!(find(None, path).unwrap(), docker);
}

#[test]
fn a_configured_program_must_be_an_executable_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().as_os_str());
    let good = program(folder.path(), "podman", 0o755);
    let bad = program(folder.path(), "plain", 0o644);
    assert_eq!(find(Some(&good), None).unwrap(), good);
    assert_eq!(find(Some(Path::new("podman")), path).unwrap(), good);
    for wrong in [
        bad.as_path(),
        folder.path(),
        Path::new("/no/such/file"),
        Path::new("nothing"),
    ] {
        let error = find(Some(wrong), path).unwrap_err();
        assert_eq!(error.trouble(), Some(Trouble::NoProgram), "{wrong:?}");
        assert!(error.hint().unwrap().contains("EXOSHELL_DOCKER_BINARY"));
    }
}

#[test]
fn the_engine_is_the_one_the_client_would_use() {
    let config = tempfile::tempdir().unwrap();
    let around = Surroundings {
        docker_config: Some(config.path().to_path_buf()),
        root: true,
        ..Surroundings::default()
    };
    let default = Endpoint::Socket("/var/run/docker.sock".into());
    assert_eq!(docker_endpoint(None, &around), default);
    let file = config.path().join("config.json");
    fs::write(&file, r#"{"currentContext":"default"}"#).unwrap();
    assert_eq!(docker_endpoint(None, &around), default);
    fs::write(&file, r#"{"currentContext":"far"}"#).unwrap();
    assert_eq!(
        docker_endpoint(None, &around),
        Endpoint::Context("far".to_owned())
    );
    let hosted = Surroundings {
        docker_host: Some("unix:///a/b.sock".to_owned()),
        ..around.clone()
    };
    assert_eq!(
        docker_endpoint(None, &hosted),
        Endpoint::Socket("/a/b.sock".into())
    );
    assert_eq!(
        docker_endpoint(Some("tcp://1.2.3.4:2375"), &hosted),
        Endpoint::Elsewhere
    );
    assert_eq!(
        docker_endpoint(Some("ssh://me@host"), &hosted),
        Endpoint::Elsewhere
    );
    let podman = Endpoint::Socket("/run/podman/podman.sock".into());
    assert_eq!(podman_endpoint(None, &around), podman);
    let private = Surroundings {
        private_store: true,
        ..around.clone()
    };
    assert_eq!(podman_endpoint(None, &private), Endpoint::Elsewhere);
    let user = Surroundings {
        root: false,
        runtime_dir: Some("/run/user/7".into()),
        ..around
    };
    let podman = Endpoint::Socket("/run/user/7/podman/podman.sock".into());
    assert_eq!(podman_endpoint(None, &user), podman);
}
