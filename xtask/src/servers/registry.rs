//! A registry on loopback, to pull from.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::layout::Layout;
use super::program::{end, naming, start_server, wait_for_server};
use crate::Result;

/// The registry of one workspace.
#[derive(Debug)]
pub(super) struct Registry<'a> {
    layout: &'a Layout,
}

impl<'a> Registry<'a> {
    pub(super) fn new(layout: &'a Layout) -> Self {
        Self { layout }
    }

    fn folder(&self) -> PathBuf {
        self.layout.root.join("registry")
    }

    fn settings(&self) -> PathBuf {
        self.folder().join("config.yml")
    }

    fn port(&self) -> Option<u16> {
        fs::read_to_string(self.folder().join("port"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Returns host and port, once it runs.
    pub(super) fn address(&self) -> Result<String> {
        let port = self.port().ok_or("the registry was never started")?;
        Ok(format!("{}:{port}", Ipv4Addr::LOCALHOST))
    }

    /// Tells whether a path of the registry's API is there.
    pub(super) fn has(&self, path: &str) -> bool {
        let ask = || -> Option<String> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port()?)).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
            let request = format!(
                "GET /v2/{path} HTTP/1.0\r\nHost: localhost\r\nAccept: */*\r\n\
                 Accept: application/vnd.docker.distribution.manifest.v2+json\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).ok()?;
            let mut answer = String::new();
            // The registry closes the connection after its answer.
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        };
        ask().is_some_and(|answer| {
            answer
                .lines()
                .next()
                .is_some_and(|line| line.contains(" 200 "))
        })
    }

    /// Starts the registry, unless it answers already.
    pub(super) fn start(&self) -> Result<()> {
        if !naming(&self.settings()).is_empty() && self.has("") {
            return Ok(());
        }
        self.stop()?;
        fs::create_dir_all(self.folder().join("data"))?;
        let port = free_port(self.port())?;
        fs::write(self.folder().join("port"), port.to_string())?;
        fs::write(
            self.settings(),
            format!(
                "version: 0.1\nlog:\n  level: warn\nstorage:\n  filesystem:\n    rootdirectory: {}\n\
                 http:\n  addr: {}:{port}\n",
                self.folder().join("data").display(),
                Ipv4Addr::LOCALHOST
            ),
        )?;
        let log = self.layout.root.join("registry.log");
        start_server(
            Command::new("docker-registry")
                .arg("serve")
                .arg(self.settings()),
            &log,
        )?;
        wait_for_server("docker-registry", &log, Duration::from_secs(30), || {
            self.has("")
        })
    }

    /// Ends the registry; its images stay.
    pub(super) fn stop(&self) -> Result<()> {
        let pids = naming(&self.settings());
        end(&pids, &self.settings(), Duration::from_secs(5))
    }
}

/// Returns a port nobody listens on, the last one if possible.
fn free_port(last: Option<u16>) -> Result<u16> {
    if let Some(port) = last
        && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    {
        return Ok(port);
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}
