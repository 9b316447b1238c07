//! The runtime as a library, in this process.

use exoshell_runtime::Runtime;
use exoshell_runtime::config::{Config, Environment, Resolved};

use super::{PATH, World};

/// Makes a runtime that lives in a test's world.
pub(crate) fn runtime(world: &World) -> Runtime {
    let environment = Environment::from_pairs([
        ("PATH", PATH),
        ("HOME", world.user.to_str().unwrap()),
        ("EXOSHELL_HOME", world.home.to_str().unwrap()),
        ("EXOSHELL_APPROVAL", "auto"),
    ])
    .in_directory(&world.work);
    let config = Resolved::load(&environment, Config::default()).unwrap();
    Runtime::new(config, environment)
}

/// Runs a future to its end, on two threads.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
