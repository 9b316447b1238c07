//! What people and programs are told about containers.

use exoshell_testkit::image;
use serde_json::{Value, json};

use crate::site::Kind;
use crate::support::{PATIENCE, wait_until};

pub(super) fn listings_and_doctor_name_container_image_age_and_idle_time(kind: Kind) {
    let site = kind.site();
    site.task("t", "cd /usr").printed("");
    let container = site.container();
    let look = || site.json(["places", "info", "t", "--json"]);
    wait_until(PATIENCE, "it is idle for a second", || {
        look()["idle_seconds"].as_u64() >= Some(1)
    });
    let info = look();
    let id = info["id"].as_str().unwrap();
    assert!(id.len() >= 12 && container.starts_with(id), "{info}");
    let image = info["image"].as_str().unwrap();
    assert!(image.contains(image::DEBIAN), "{info}");
    assert_eq!(
        (&info["state"], &info["backend"], &info["cwd"]),
        (&json!("running"), &json!("docker"), &json!("/usr")),
        "{info}"
    );
    assert!(
        info["age_seconds"].as_u64() >= info["idle_seconds"].as_u64(),
        "{info}"
    );
    let list = site.json(["places", "ls", "--json"]);
    assert_eq!(list["places"][0]["id"], info["id"], "{list}");
    let table = site.exoshell(["places", "ls"]).text();
    assert!(
        table.contains(id) && table.contains("AGE") && table.contains("IDLE"),
        "{table}"
    );
    let described = site.exoshell(["places", "info", "t"]).text();
    // People read the engine's name, programs the backend's.
    let name = site.engine().program();
    assert_eq!(info["engine"], name, "{info}");
    let row = table.lines().find(|line| line.contains(id)).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some(name), "{table}");
    for word in [id, image::DEBIAN, "idle", "/usr", name] {
        assert!(described.contains(word), "{word}: {described}");
    }

    let doctor = site.json(["doctor", "--backend", name, "--json"]);
    let backend = &doctor["backends"][0];
    assert_eq!(
        (&backend["backend"], &backend["works"], &backend["wanted"]),
        (&json!(name), &json!(true), &json!(true)),
        "{doctor}"
    );
    assert_eq!(backend["engine"], name, "{doctor}");
    let found = |check: &str| -> &Value {
        let checks = backend["checks"].as_array().unwrap();
        let found = checks.iter().find(|found| found["name"] == check);
        found.unwrap_or_else(|| panic!("no {check}: {doctor}"))
    };
    for check in ["program", "engine", "privileges"] {
        assert_eq!(found(check)["outcome"], "fine", "{doctor}");
    }
    assert!(
        found("image")["found"]
            .as_str()
            .unwrap()
            .contains("is here"),
        "{doctor}"
    );
    // What is limited says what to do.
    for check in backend["checks"].as_array().unwrap() {
        assert_eq!(
            check["outcome"] == "fine",
            check["remedy"].is_null(),
            "{check}"
        );
    }
    // Doctor and the place agree on what cannot be enforced.
    let disk = found("storage limit")["outcome"] == "limited";
    let unenforced = info["unenforced"].as_array().cloned().unwrap_or_default();
    assert_eq!(disk, unenforced.contains(&json!("disk")), "{info} {doctor}");
}
