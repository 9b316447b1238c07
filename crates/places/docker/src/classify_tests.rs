use super::*;

#[test]
fn every_answer_of_an_engine_has_its_own_trouble() {
    let cases = [
        (
            "Cannot connect to the Docker daemon at unix:///nope.sock. Is the docker daemon running?",
            Trouble::NoDaemon,
        ),
        (
            "error during connect: Get \"http://10.0.0.1:2375/v1.41/info\": dial tcp 10.0.0.1:2375: connect: connection refused",
            Trouble::NoDaemon,
        ),
        (
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.24/version\": dial unix /var/run/docker.sock: connect: permission denied",
            Trouble::NotAllowed,
        ),
        (
            "Error response from daemon: No such container: nope\nError: failed to start containers: nope",
            Trouble::NoContainer,
        ),
        (
            "Error: no container with name or ID \"nope\" found: no such container",
            Trouble::NoContainer,
        ),
        (
            "docker: Error response from daemon: No such image: nonexist:1\n\nRun 'docker run --help' for more information",
            Trouble::NoImage,
        ),
        (
            "Error response from daemon: Get \"http://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
            Trouble::NoImage,
        ),
        (
            "Error response from daemon: manifest for 127.0.0.1:5000/x:2 not found: manifest unknown: manifest unknown",
            Trouble::NoImage,
        ),
        (
            "Error: initializing source docker://127.0.0.1:1/foo:1: pinging container registry 127.0.0.1:1: Get \"https://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused",
            Trouble::NoImage,
        ),
        (
            "Error response from daemon: pull access denied for secret/x, repository does not exist or may require 'docker login'",
            Trouble::NoImage,
        ),
        (
            "docker: Error response from daemon: create a b: \"a b\" includes invalid characters for a local volume name",
            Trouble::BadSetting,
        ),
        (
            "invalid argument \"\" for \"-l, --label\" flag: invalid label '': empty name\n\nUsage:  docker run",
            Trouble::BadSetting,
        ),
        (
            "docker: Error response from daemon: Minimum memory limit allowed is 6MB",
            Trouble::BadSetting,
        ),
        ("unknown flag: --bogus", Trouble::BadSetting),
        (
            "docker: Error response from daemon: failed to mkdir: write /x: no space left on device",
            Trouble::DiskFull,
        ),
        (
            "Error response from daemon: Container 12 is paused, unpause the container before exec",
            Trouble::DoesNotStart,
        ),
        (
            "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process",
            Trouble::DoesNotStart,
        ),
        (
            "runc create failed: error setting rlimit type 7: invalid argument: OCI runtime error",
            Trouble::DoesNotStart,
        ),
        ("unexpected EOF", Trouble::Interrupted),
    ];
    for (text, expected) in cases {
        let error = failure("docker", "do it", text);
        assert_eq!(error.trouble(), Some(expected), "{text}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    }
}

#[test]
fn a_limit_that_cannot_be_enforced_is_named() {
    let cases = [
        (
            "--storage-opt is supported only for overlay over xfs with 'pquota' mount option",
            Some(Limit::Disk),
        ),
        (
            "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available",
            Some(Limit::Cpu),
        ),
        (
            "NanoCPUs can not be set, as your kernel does not support CPU CFS scheduler or the cgroup is not mounted",
            Some(Limit::Cpu),
        ),
        (
            "runc create failed: unable to apply cgroup configuration: openat2 /sys/fs/cgroup/pids/x/pids.max: no such file or directory",
            Some(Limit::Pids),
        ),
        (
            "WARNING: Your kernel does not support pids limit capabilities or the cgroup is not mounted. PIDs limit discarded.",
            Some(Limit::Pids),
        ),
        (
            "WARNING: Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.",
            Some(Limit::Memory),
        ),
        (
            "WARNING: Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.",
            None,
        ),
        ("Minimum memory limit allowed is 6MB", None),
        ("No such image: x", None),
    ];
    for (text, expected) in cases {
        assert_eq!(refused_limit(text), expected, "{text}");
    }
}

#[test]
fn an_answer_is_quoted_without_the_noise_around_it() {
    let text = "docker: Error response from daemon: No such image: x\n\nRun 'docker run --help' for more information";
    assert_eq!(quote(text), "No such image: x");
    assert_eq!(quote(" \n"), "it said nothing");
    assert_eq!(quote("bad\x1b[31m\nUsage:  docker run"), "bad[31m");
}

#[test]
fn gone_and_stopped_are_told_apart() {
    assert!(is_gone("Error response from daemon: No such container: x"));
    assert!(!is_gone("Container x is not running"));
    for text in [
        "removal of container 40ae is already in progress",
        "unable to remove filesystem for 40ae: unlinkat /x/40ae: directory not empty",
    ] {
        assert!(is_being_removed(text) && !is_gone(text), "{text}");
    }
    assert!(!is_being_removed(
        "container 40ae is running: stop it first"
    ));
    assert!(is_stopped(
        "Error response from daemon: Container x is not running"
    ));
    assert!(is_stopped(
        "Error: can only create exec sessions on running containers: container state improper"
    ));
    assert!(!is_stopped("No such container: x"));
}

#[test]
fn a_guest_that_cannot_run_is_not_a_broken_container() {
    let text = "runc create failed: unable to start container process: exec: \"/.exoshell/guest\": permission denied: unknown";
    assert!(guest_cannot_run(text, "/.exoshell/guest"));
    assert!(!guest_cannot_run(
        "exec: \"/bin/x\": permission denied",
        "/.exoshell/guest"
    ));
    assert!(source_is_missing(
        "invalid mount config for type \"bind\": bind source path does not exist: /home/a/guest",
        "/home/a/guest"
    ));
}

#[test]
fn an_image_that_can_have_no_such_name_is_a_wrong_setting() {
    let text =
        "no such image: UPPER/CASE: invalid reference format: repository name must be lowercase";
    let error = failure("docker", "look at the image", text);
    assert_eq!(error.trouble(), Some(Trouble::BadSetting));
}
