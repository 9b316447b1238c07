use serde_json::json;

use super::*;

#[test]
fn times_of_both_engines_are_read() {
    let cases = [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2000-02-29T12:00:00Z", Some(951_825_600)),
        ("2026-11-15T23:41:50.234286805Z", Some(1_794_786_110)),
        ("2026-11-16T01:41:50.234286805+02:00", Some(1_794_786_110)),
        ("2026-11-15T18:11:50-05:30", Some(1_794_786_110)),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        ("yesterday", None),
        ("2026-13-15T23:41:50Z", None),
        ("2026-11-15T23:41:50", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_time(text), expected, "{text}");
    }
}

#[test]
fn a_docker_record_is_read() {
    let record = json!({
        "Id": "358e3513c8fe318a", "Created": "2026-11-15T23:41:51.912973551Z", "Name": "/t1",
        "State": {"Status": "exited", "Running": false, "ExitCode": 3,
                  "StartedAt": "2026-11-15T23:41:52.3Z", "FinishedAt": "2026-11-15T23:41:53.3Z"},
        "Image": "sha256:9464", "Config": {"Image": "debian:12", "Labels": {"exoshell": "1", "odd": 7}},
    });
    let expected = Container {
        id: "358e3513c8fe318a".to_owned(),
        name: "t1".to_owned(),
        image: "debian:12".to_owned(),
        image_id: "sha256:9464".to_owned(),
        state: "exited".to_owned(),
        exit_code: 3,
        created: Some(1_794_786_111),
        finished: Some(1_794_786_113),
        labels: [("exoshell".to_owned(), "1".to_owned())].into(),
    };
    let read = Container::read(&record).unwrap();
    assert_eq!(read, expected);
    assert_eq!(read.short_id(), "358e3513c8fe");
    assert!(!read.is_running());
}

#[test]
fn a_podman_record_is_read() {
    let record = json!({
        "Id": "ccf76adb3918", "Created": "2026-11-15T23:41:48.894363148Z", "Name": "t1",
        "State": {"OciVersion": "1.0.2-dev", "Status": "running", "Running": true, "ExitCode": 0,
                  "StartedAt": "2026-11-15T23:41:49Z", "FinishedAt": "0001-01-01T00:00:00Z"},
        "Image": "d3c0", "ImageName": "localhost/exo:1",
        "Config": {"Labels": {"exoshell.unenforced": "cpu.disk"}},
    });
    let read = Container::read(&record).unwrap();
    assert_eq!(read.image, "localhost/exo:1");
    assert_eq!(read.finished, None);
    assert!(read.is_running());
    assert_eq!(read.name, "t1");
    assert_eq!(read.unenforced(), ["cpu", "disk"]);
}

#[test]
fn a_record_without_labels_has_none_and_nonsense_is_no_record() {
    let record = json!({"Id": "1", "State": {"Status": "created"}, "Config": {"Labels": null}});
    let read = Container::read(&record).unwrap();
    assert_eq!(read.labels, BTreeMap::new());
    assert_eq!(read.unenforced(), Vec::<String>::new());
    for nonsense in [
        json!(null),
        json!([]),
        json!({"Id": "1"}),
        json!({"Id": 1, "State": {"Status": "x"}}),
    ] {
        assert_eq!(Container::read(&nonsense), None, "{nonsense}");
    }
}

#[test]
fn an_image_tells_platform_directory_and_user() {
    let record = json!({"Id": "x", "Os": "linux", "Architecture": "amd64",
                        "Config": {"WorkingDir": "/src", "User": "1000:1000"}});
    let image = Image::read(&record).unwrap();
    assert_eq!(image.workdir, "/src");
    assert!(!image.runs_as_root());
    let bare = Image::read(&json!({"Id": "x", "Architecture": "arm64"})).unwrap();
    assert!(bare.runs_as_root());
    for user in ["", "0", "root", "0:0", "root:wheel"] {
        let image = Image {
            user: user.to_owned(),
            ..Image::default()
        };
        assert!(image.runs_as_root(), "{user}");
    }
}
