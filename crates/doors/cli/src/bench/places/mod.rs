//! Places beyond this machine, each beside the plain tool that people use for it.
//!
//! What this machine has no means for is left out, with a line that says why.

mod containers;
mod many;
mod remote;
mod site;
mod sshd;

use super::lab::Lab;
use super::{Filter, Measured, progress};
use containers::{Engine, Kind};
use many::Many;
use remote::Remote;

/// What the caller wants of these rows.
#[derive(Debug)]
pub(super) struct Options {
    /// The image of containers; the configured one unless told.
    pub(super) image: Option<String>,
    /// A real host for the ssh rows.
    pub(super) host: Option<String>,
    /// Whether many places at once are measured too.
    pub(super) crowd: bool,
}

/// Measures whatever places there are.
pub(super) async fn measure(lab: &Lab, filter: &Filter, options: Options, measured: &mut Measured) {
    for kind in [Kind::Docker, Kind::Podman] {
        Box::pin(containers(lab, filter, &options, kind, measured)).await;
    }
    if filter.wants_any(&remote::NAMES.all()) {
        progress("ssh");
        match Box::pin(Remote::open(lab, options.host.as_deref())).await {
            Ok(remote) => {
                let names = remote::NAMES.all();
                measured.add(filter, &names, Box::pin(remote.measure(lab, filter)).await);
            }
            Err(error) => measured.leave_out("ssh", &error),
        }
    }
}

async fn containers(
    lab: &Lab,
    filter: &Filter,
    options: &Options,
    kind: Kind,
    measured: &mut Measured,
) {
    let names = kind.names();
    let many = Many::new(lab);
    // So many take minutes: only for somebody who asks for them.
    let crowd = kind == Kind::Docker
        && filter.wants_any(many.names())
        && (options.crowd
            || filter
                .0
                .as_deref()
                .is_some_and(|word| word.contains("places")));
    if !crowd && !filter.wants_any(&names.all()) {
        return;
    }
    progress(kind.program());
    let engine = match Engine::find(kind, options.image.as_deref()).await {
        Ok(engine) => engine,
        Err(error) => return measured.leave_out(kind.program(), &error),
    };
    if filter.wants_any(&names.site.all()) {
        let part = Box::pin(engine.measure(lab, filter)).await;
        measured.add(filter, &names.site.all(), part);
    }
    if filter.wants_any(&names.lives()) {
        progress(names.new);
        let part = Box::pin(engine.lives(lab)).await;
        measured.add(filter, &names.lives(), part);
    }
    if crowd {
        progress(many.names()[0]);
        let part = Box::pin(many.measure(lab, &engine)).await;
        measured.add(filter, many.names(), part);
    }
}
