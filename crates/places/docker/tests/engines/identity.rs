//! Which containers are ours.

use std::time::Duration;

use exoshell_place::{Place as _, Progress, Trouble};
use exoshell_place_docker::DockerSettings;

use super::support::{BUSYBOX, World, link, open, run, until};

/// An image that somebody made of a container of ours, and a container of it; both go at the end.
struct Committed<'a> {
    world: &'a World,
    image: String,
    container: String,
}

impl<'a> Committed<'a> {
    fn of(world: &'a World, id: &str, command: &[&str]) -> Self {
        let image = format!("exoshell-test/committed-{id}");
        world.client(&["commit", id, &image]);
        let mut words = vec!["run", "--detach", "--network", "none", "--entrypoint"];
        words.extend(command.first());
        words.push(&image);
        words.extend(&command[1..]);
        let container = world.client(&words);
        Self {
            world,
            image,
            container,
        }
    }

    fn state(&self) -> String {
        let format = "--format={{.State.Status}}";
        self.world.client(&["inspect", format, &self.container])
    }
}

impl Drop for Committed<'_> {
    fn drop(&mut self) {
        let mut remove = self.world.command();
        let _ = remove.args(["rm", "--force", &self.container]).output();
        let mut remove = self.world.command();
        let _ = remove.args(["rmi", "--force", &self.image]).output();
    }
}

async fn a_container_of_a_committed_image_is_not_ours(world: World) {
    let place = world.place(world.settings(BUSYBOX), "t");
    let inside = open(&place).await;
    run(&inside, "echo ours > /var/mark").await;
    let id = place.inspect().await.unwrap().id.unwrap();
    let theirs = Committed::of(&world, &id, &["sleep", "600"]);
    // It is the newest and runs, so by labels it would be the first choice.
    let again = world.place(world.settings(BUSYBOX), "t");
    assert_eq!(again.inspect().await.unwrap().id.as_deref(), Some(&*id));
    let same = link(again.open(&Progress::default()).await.unwrap()).await;
    assert_eq!(same.hello().incarnation, inside.hello().incarnation);
    place.destroy().await.unwrap();
    assert_eq!(theirs.state(), "running");
    assert!(place.open_existing().await.unwrap().is_none());
    let fresh = open(&place).await;
    run(&fresh, "test ! -e /var/mark").await;
    place.destroy().await.unwrap();
    assert_eq!(theirs.state(), "running");
}

#[tokio::test]
async fn on_docker_a_container_of_a_committed_image_is_not_ours() {
    a_container_of_a_committed_image_is_not_ours(World::docker()).await;
}

#[tokio::test]
async fn on_podman_a_container_of_a_committed_image_is_not_ours() {
    a_container_of_a_committed_image_is_not_ours(World::podman()).await;
}

#[tokio::test]
async fn the_sweep_leaves_an_ended_container_of_a_committed_image() {
    let world = World::docker();
    let settings = DockerSettings {
        lifetime: Duration::from_secs(1),
        ..world.settings(BUSYBOX)
    };
    let place = world.place(settings.clone(), "t");
    let inside = open(&place).await;
    let id = place.inspect().await.unwrap().id.unwrap();
    let theirs = Committed::of(&world, &id, &["true"]);
    until("theirs ends", || theirs.state() == "exited").await;
    inside.closed().await;
    // Ours ends later, so when it is swept, theirs was old enough, too.
    let patience = std::time::Instant::now() + Duration::from_secs(20);
    while !world.containers().is_empty() && std::time::Instant::now() < patience {
        place.sweep().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(world.containers(), Vec::<String>::new());
    place.sweep().await.unwrap();
    assert_eq!(theirs.state(), "exited");
}

#[tokio::test]
async fn extra_arguments_cannot_take_a_container_from_us() {
    let world = World::docker();
    let file = world.home.path().join("labels");
    std::fs::write(&file, "exoshell.task-id=file\n").unwrap();
    let with = |words: &[&str]| DockerSettings {
        extra_args: words.iter().map(|word| (*word).to_owned()).collect(),
        ..world.settings(BUSYBOX)
    };
    for words in [
        &["--label", "exoshell=0"][..],
        &["--name", "exoshell-mine"],
        // Written so that only the result shows it.
        &["-lexoshell.name=mine"],
    ] {
        let place = world.place(with(words), "t");
        let error = place.open(&Progress::default()).await.unwrap_err();
        assert_eq!(error.trouble(), Some(Trouble::BadSetting), "{error}");
        assert!(error.to_string().contains("name"), "{error}");
        assert_eq!(world.containers(), Vec::<String>::new(), "{words:?}");
    }
    // Labels in a file are weaker than ours.
    let place = world.place(with(&["--label-file", file.to_str().unwrap()]), "t");
    let inside = open(&place).await;
    run(&inside, "true").await;
    assert!(place.open_existing().await.unwrap().is_some());
    place.destroy().await.unwrap();
    assert_eq!(world.containers(), Vec::<String>::new());
}
