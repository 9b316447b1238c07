//! The words that say where something runs.

use exoshell_runtime::RuntimeError;
use exoshell_runtime::config::{Backend, Config};

use crate::args::PlaceArgs;

/// Turns the flags into settings. An image or a container means docker, or podman where tasks are
/// configured to use that; a host means ssh.
pub(crate) fn overrides(
    place: &PlaceArgs,
    configured: impl FnOnce() -> Result<Backend, RuntimeError>,
) -> Result<Config, RuntimeError> {
    for (flag, value) in [("--image", &place.image), ("--container", &place.container)] {
        if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
            return Err(RuntimeError::Usage(format!(
                "`{flag}` needs a name, not an empty word"
            )));
        }
    }
    let mut config = Config::default();
    let named = place.backend.as_deref().map(parse).transpose()?;
    let implied = if place.host.is_some() {
        Some(Backend::Ssh)
    } else if place.image.is_some() || place.container.is_some() {
        Some(Backend::Docker)
    } else {
        None
    };
    config.terminal.backend = match (named, implied) {
        (Some(Backend::Podman), Some(Backend::Docker)) => Some(Backend::Podman),
        (Some(named), Some(implied)) if named != implied => {
            return Err(RuntimeError::Usage(format!(
                "`--backend {}` takes no such place: --image and --container are for docker and \
                 podman, --host is for ssh",
                named.as_str()
            )));
        }
        (None, Some(Backend::Docker)) if configured()? == Backend::Podman => Some(Backend::Podman),
        (named, implied) => named.or(implied),
    };
    config.docker.image.clone_from(&place.image);
    config.docker.container.clone_from(&place.container);
    if let Some(host) = &place.host {
        let host = parse_host(host)?;
        config.ssh.host = Some(host.name);
        config.ssh.user = host.user;
        config.ssh.port = host.port;
    }
    Ok(config)
}

/// Finds a backend by its name.
pub(super) fn parse(name: &str) -> Result<Backend, RuntimeError> {
    Backend::parse(name).ok_or_else(|| {
        let all: Vec<&str> = Backend::all()
            .iter()
            .map(|backend| backend.as_str())
            .collect();
        RuntimeError::Usage(format!(
            "there is no backend `{name}`; this build has: {}",
            all.join(", ")
        ))
    })
}

struct Host {
    user: Option<String>,
    name: String,
    port: Option<usize>,
}

/// Reads `[USER@]HOST[:PORT]`; an IPv6 address with a port stands in brackets.
fn parse_host(text: &str) -> Result<Host, RuntimeError> {
    let bad = || {
        RuntimeError::Usage(format!(
            "`--host {text}` must look like [USER@]HOST[:PORT]; an IPv6 address with a port \
             stands in brackets"
        ))
    };
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (Some(user.to_owned()), rest),
        None => (None, text),
    };
    let (name, port) = if let Some(inner) = rest.strip_prefix('[') {
        let (name, tail) = inner.split_once(']').ok_or_else(bad)?;
        (name, tail.strip_prefix(':'))
    } else if rest.matches(':').count() == 1 {
        let (name, port) = rest.split_once(':').ok_or_else(bad)?;
        (name, Some(port))
    } else {
        (rest, None)
    };
    let port = port
        .map(|port| port.parse().ok().filter(|port| (1..=65_535).contains(port)))
        .map(|port| port.ok_or_else(bad))
        .transpose()?;
    if name.is_empty() || name.starts_with('-') || user.as_ref().is_some_and(String::is_empty) {
        return Err(bad());
    }
    Ok(Host {
        user,
        name: name.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> (Option<String>, String, Option<usize>) {
        let host = parse_host(text).unwrap();
        (host.user, host.name, host.port)
    }

    #[test]
    fn a_host_may_have_a_user_and_a_port() {
        assert_eq!(host("box"), (None, "box".to_owned(), None));
        assert_eq!(
            host("me@box:2222"),
            (Some("me".to_owned()), "box".to_owned(), Some(2222))
        );
        assert_eq!(host("::1"), (None, "::1".to_owned(), None));
        assert_eq!(host("[::1]:22"), (None, "::1".to_owned(), Some(22)));
        assert_eq!(
            host("a@b@c"),
            (Some("a@b".to_owned()), "c".to_owned(), None)
        );
    }

    #[test]
    fn nonsense_is_no_host() {
        for text in [
            "",
            "@box",
            "box:",
            "box:0",
            "box:70000",
            "-oProxyCommand=x",
            "[::1",
        ] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_image_means_docker_and_a_host_means_ssh() {
        let args = |backend: Option<&str>, image: Option<&str>, host: Option<&str>| {
            let args = PlaceArgs {
                backend: backend.map(str::to_owned),
                image: image.map(str::to_owned),
                container: None,
                host: host.map(str::to_owned),
            };
            overrides(&args, || Ok(Backend::Local))
        };
        let backend = |config: Config| config.terminal.backend;
        assert_eq!(
            args(None, Some("x"), None).map(backend).unwrap(),
            Some(Backend::Docker)
        );
        assert_eq!(
            args(Some("podman"), Some("x"), None).map(backend).unwrap(),
            Some(Backend::Podman)
        );
        assert_eq!(
            args(None, None, Some("h")).map(backend).unwrap(),
            Some(Backend::Ssh)
        );
        assert!(args(Some("ssh"), Some("x"), None).is_err());
        assert!(args(Some("dokcer"), None, None).is_err());
    }

    #[test]
    fn an_image_is_podmans_where_podman_is_configured() {
        let args = PlaceArgs {
            image: Some("x".to_owned()),
            ..PlaceArgs::default()
        };
        let backend = |configured| {
            let config = overrides(&args, || Ok(configured)).unwrap();
            config.terminal.backend
        };
        assert_eq!(backend(Backend::Podman), Some(Backend::Podman));
        assert_eq!(backend(Backend::Ssh), Some(Backend::Docker));
    }
}
