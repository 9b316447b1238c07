//! Configuration, and the only place that reads the environment.
//!
//! Every setting has a built-in default, and three layers may speak over it, each one over those before: the file
//! `config.toml`, the environment, and overrides from flags. [`Config`] is one such layer (every key optional), [`Resolved`] is
//! what comes out: concrete types, and for each key where its value came from. Each key is declared once, in `keys/`; parsing, the
//! list of known keys, the template and [`Resolved::show`] all follow that declaration.
//!
//! A program that embeds the runtime need not touch the environment: [`Resolved::new`] gives the defaults for a home folder and
//! [`Resolved::from_config`] puts one layer on them.

mod apply;
mod approval;
mod choices;
mod credentials;
pub(crate) mod dotenv;
mod entry;
pub mod env;
mod env_layer;
mod error;
mod file;
mod keys;
mod locate;
mod nearest;
mod places;
mod resolved;
mod schema;
mod script;
mod secret;
mod slot;
mod template;
#[cfg(test)]
mod testing;

pub(crate) use apply::is_variable_name;
pub use approval::{Approval, GuardRules};
pub use choices::{ApprovalMode, Backend, LogLevel, Persist};
pub use credentials::{child_environment, is_stripped};
pub(crate) use credentials::{quiet_variables, stripped_names};
pub use env::Environment;
pub use error::{ConfigError, Site};
pub use exoshell_redact::looks_secret;
pub use locate::Locations;
pub use places::{Command, Container, DEFAULT_IMAGE, Docker, Ssh, Sync};
pub use resolved::{Log, Places, Resolved, Secrecy, Setting, Source, Terminal};
pub use schema::{
    ApprovalConfig, CommandConfig, Config, ContainerConfig, DockerConfig, GuardConfig, LogConfig,
    PlacesConfig, SecretsConfig, SshConfig, SyncConfig, TerminalConfig,
};
pub use script::script_environment;
