use super::*;

fn docker(program: Option<&str>, container: Option<&str>) -> PlaceSpec {
    PlaceSpec::Docker(Box::new(DockerSettings {
        program: program.map(PathBuf::from),
        container: container.map(str::to_owned),
        ..DockerSettings::default()
    }))
}

#[test]
fn no_two_places_have_one_label_whatever_tasks_and_programs_are_called() {
    let names = [
        "x",
        "x:y",
        "y",
        "container:x",
        "@x:y",
        "podman:x",
        "%3ax",
        "-",
    ];
    let mut labels = Vec::new();
    for task in names {
        labels.push((docker(None, None).label(task), format!("task {task}")));
        for program in ["podman", "x", "x:y", "x%3ay", "podman:x", "-container"] {
            let label = docker(Some(program), None).label(task);
            labels.push((label, format!("program {program}, task {task}")));
        }
    }
    for container in names {
        // Whoever adopts a container shares it.
        let spec = docker(None, Some(container));
        assert_eq!(spec.label("a"), spec.label("b"));
        labels.push((spec.label("a"), format!("container {container}")));
    }
    labels.sort();
    for pair in labels.windows(2) {
        let [(one, first), (two, second)] = pair else {
            unreachable!()
        };
        assert_ne!(one, two, "{first} and {second}");
    }
}
