//! `exoshell config`.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use exoshell_runtime::RuntimeError;
use exoshell_runtime::config::{Config, Environment, Locations, Resolved};
use serde_json::json;

use super::written;
use crate::args::ConfigCommand;
use crate::output;

/// Shows, locates or writes the configuration.
pub(crate) fn run(command: &ConfigCommand) -> u8 {
    let (result, as_json) = match command {
        ConfigCommand::Show { json } => (show(*json), *json),
        ConfigCommand::Path { json } => (path(*json), *json),
        ConfigCommand::Init { json } => (init(*json), *json),
    };
    result.unwrap_or_else(|error| output::error(&error, as_json))
}

fn show(as_json: bool) -> Result<u8, RuntimeError> {
    let resolved = Resolved::load(&Environment::from_process(), Config::default())?;
    let settings = resolved.show();
    if as_json {
        let value = json!({
            "home": resolved.home.display().to_string(),
            "config_file": resolved.config_file.display().to_string(),
            "settings": settings,
        });
        return Ok(written(output::json(&value)));
    }
    let key_width = settings.iter().map(|s| s.key.len()).max().unwrap_or(0);
    let mut text = format!("# home: {}\n", resolved.home.display());
    for setting in settings {
        let line = format!(
            "{:key_width$} = {}  # {}\n",
            setting.key, setting.value, setting.source
        );
        text.push_str(&line);
    }
    Ok(written(output::text(&text)))
}

fn path(as_json: bool) -> Result<u8, RuntimeError> {
    let found = Locations::find(&Environment::from_process())?;
    let path = found.config_file.display().to_string();
    let exists = found.config_file.exists();
    if as_json {
        return Ok(written(output::json(
            &json!({"path": path, "exists": exists}),
        )));
    }
    Ok(written(output::data(format!("{path}\n").as_bytes())))
}

fn init(as_json: bool) -> Result<u8, RuntimeError> {
    let found = Locations::find(&Environment::from_process())?;
    let path = found.config_file;
    let state = |action| {
        let path = path.display().to_string();
        move |source| RuntimeError::State {
            action,
            path,
            source,
        }
    };
    if let Some(parent) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(state("cannot create the folder of"))?;
    }
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(RuntimeError::Usage(format!(
                "`{}` exists already and is left as it is",
                path.display()
            )));
        }
        Err(error) => return Err(state("cannot create")(error)),
    };
    file.write_all(Config::template().as_bytes())
        .map_err(state("cannot write"))?;
    let shown = path.display().to_string();
    if as_json {
        return Ok(written(output::json(
            &json!({"path": shown, "created": true}),
        )));
    }
    Ok(written(output::data(format!("{shown}\n").as_bytes())))
}
