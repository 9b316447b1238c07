//! Docker and Podman: table `[docker]`.

use super::super::env;
use super::super::slot::{Entry, Slot};
use super::Key;

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "docker.image",
        variable: Some(env::TERMINAL_DOCKER_IMAGE),
        help: "Image that containers are made from.",
        slot: Slot::Text {
            layer: |c| &mut c.docker.image,
            target: |r| &mut r.docker.image,
        },
    },
    Key {
        name: "docker.container",
        variable: None,
        help: "Name or id of a container that exists; it is used instead of making one, and never removed.",
        slot: Slot::Text {
            layer: |c| &mut c.docker.container,
            target: |r| &mut r.docker.container,
        },
    },
    Key {
        name: "docker.program",
        variable: Some(env::EXOSHELL_DOCKER_BINARY),
        help: "The client program; empty = `docker`, else `podman`.",
        slot: Slot::Folder {
            unset: &[],
            layer: |c| &mut c.docker.program,
            target: |r| &mut r.docker.program,
        },
    },
    Key {
        name: "docker.network",
        variable: Some(env::TERMINAL_DOCKER_NETWORK),
        help: "Containers have a network.",
        slot: Slot::Switch {
            layer: |c| &mut c.docker.network,
            target: |r| &mut r.docker.network,
        },
    },
    Key {
        name: "docker.volumes",
        variable: Some(env::TERMINAL_DOCKER_VOLUMES),
        help: "Mounts, each as \"SOURCE:TARGET[:OPTIONS]\".",
        slot: Slot::Words {
            each: Entry::Any,
            layer: |c| &mut c.docker.volumes,
            target: |r| &mut r.docker.volumes,
        },
    },
    Key {
        name: "docker.env",
        variable: Some(env::TERMINAL_DOCKER_ENV),
        help: "Variables that commands in containers get, as { NAME = \"value\" }.",
        slot: Slot::Variables {
            strict: false,
            layer: |c| &mut c.docker.env,
            target: |r| &mut r.docker.env,
        },
    },
    Key {
        name: "docker.forward_env",
        variable: Some(env::TERMINAL_DOCKER_FORWARD_ENV),
        help: "Names of variables of the caller, or of the file `.env` in the home folder, that commands in containers get.",
        slot: Slot::Names {
            strict: false,
            layer: |c| &mut c.docker.forward_env,
            target: |r| &mut r.docker.forward_env,
        },
    },
    Key {
        name: "docker.run_as_host_user",
        variable: Some(env::TERMINAL_DOCKER_RUN_AS_HOST_USER),
        help: "Run as the calling user, who then owns the files made in mounted folders.",
        slot: Slot::Switch {
            layer: |c| &mut c.docker.run_as_host_user,
            target: |r| &mut r.docker.run_as_host_user,
        },
    },
    Key {
        name: "docker.mount_cwd",
        variable: Some(env::TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE),
        help: "Mount the directory of the caller at /workspace, writable.",
        slot: Slot::Switch {
            layer: |c| &mut c.docker.mount_cwd,
            target: |r| &mut r.docker.mount_cwd,
        },
    },
    Key {
        name: "docker.extra_args",
        variable: Some(env::TERMINAL_DOCKER_EXTRA_ARGS),
        help: "Further arguments of `docker run`; they come last.",
        slot: Slot::Words {
            each: Entry::Any,
            layer: |c| &mut c.docker.extra_args,
            target: |r| &mut r.docker.extra_args,
        },
    },
    Key {
        name: "docker.persist",
        variable: Some(env::TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES),
        help: "Containers stay for the next caller; false = they end with the program that made them.",
        slot: Slot::Switch {
            layer: |c| &mut c.docker.persist,
            target: |r| &mut r.docker.persist,
        },
    },
    Key {
        name: "docker.reaper",
        variable: Some(env::TERMINAL_DOCKER_ORPHAN_REAPER),
        help: "Remove containers of ours that ended long ago.",
        slot: Slot::Switch {
            layer: |c| &mut c.docker.reaper,
            target: |r| &mut r.docker.reaper,
        },
    },
];
