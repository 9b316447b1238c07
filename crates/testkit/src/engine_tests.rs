use super::*;

fn has_all_images(engine: &Engine) {
    for name in [
        image::DEBIAN,
        image::BUSYBOX,
        image::USER,
        image::ENTRYPOINT,
        image::SLIM,
    ] {
        engine.run(&["image", "inspect", name]);
    }
    let said = engine.run(&["run", "--rm", "--network", "none", image::ENTRYPOINT, "x"]);
    assert_eq!(said, "the entrypoint ran with x");
    let user = engine.run(&["run", "--rm", "--network", "none", image::USER, "id", "-un"]);
    assert_eq!(user, "worker");
    let none = "command -v bash ps timeout || echo none";
    let slim = engine.run(&[
        "run",
        "--rm",
        "--network",
        "none",
        image::SLIM,
        "sh",
        "-c",
        none,
    ]);
    assert_eq!(slim, "/usr/bin/bash");
    let found = "command -v bash || echo none";
    let busybox = engine.run(&[
        "run",
        "--rm",
        "--network",
        "none",
        image::BUSYBOX,
        "sh",
        "-c",
        found,
    ]);
    assert_eq!(busybox, "none");
}

fn a_container_can_be_looked_at_and_is_gone_with_its_test(engine: &Engine) {
    let label = format!("exoshell.kit={}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("{}:/mnt", folder.path().display());
    let container = engine.start(&[
        "--label",
        &label,
        "--network",
        "none",
        "--volume",
        &mount,
        image::BUSYBOX,
        "sleep",
        "600",
    ]);
    let id = container.id().to_owned();
    assert_eq!(engine.top(&id), ["sleep 600"]);
    assert_eq!(engine.inspect(&id)["State"]["Running"], true);
    assert_eq!(engine.with_label(&label), [id.as_str()]);
    assert_eq!(engine.mounting(folder.path()), [id.as_str()]);
    drop(container);
    assert_eq!(engine.with_label(&label), [""; 0]);
    assert_eq!(engine.mounting(folder.path()), [""; 0]);
}

#[test]
fn docker_has_the_images_and_shows_its_containers() {
    let engine = Engine::docker();
    has_all_images(&engine);
    a_container_can_be_looked_at_and_is_gone_with_its_test(&engine);
}

#[test]
fn podman_has_the_images_and_shows_its_containers() {
    let engine = Engine::podman();
    has_all_images(&engine);
    a_container_can_be_looked_at_and_is_gone_with_its_test(&engine);
}

#[test]
fn podman_without_root_has_the_images_or_a_reason() {
    match Engine::rootless() {
        Ok(engine) => has_all_images(&engine),
        Err(why) => assert!(!why.is_empty()),
    }
}

#[test]
fn the_registry_has_an_image_of_several_layers() {
    let engine = Engine::podman();
    let name = format!("{}/{}", wanted("REGISTRY"), image::LAYERS);
    let said = engine.command().args(["pull", &name]).output().unwrap();
    let progress = String::from_utf8_lossy(&said.stderr);
    assert_eq!(progress.matches("Copying blob").count(), 6, "{progress}");
    engine.run(&["image", "rm", &name]);
}
