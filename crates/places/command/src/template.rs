//! The words of a template and what stands for what.

use exoshell_place::{PlaceError, Trouble};

use crate::CommandSettings;

/// Stands for the guest and its arguments, as a word of its own.
pub(crate) const GUEST: &str = "{guest}";
/// Stands for the task's name.
pub(crate) const TASK: &str = "{task}";
/// Stands for the build of the guest.
pub(crate) const HASH: &str = "{hash}";
const FILE: &str = "{file}";
const TARGET: &str = "{target}";

/// A checked template, with the task's name filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) launch: Vec<String>,
    pub(crate) put: Option<Vec<String>>,
    pub(crate) destroy: Option<Vec<String>>,
    pub(crate) guest_path: Option<String>,
}

impl Template {
    /// Checks the settings.
    pub(crate) fn new(settings: &CommandSettings, task: &str) -> Result<Self, PlaceError> {
        check_words("launch", &settings.launch, &[GUEST, TASK])?;
        check_guest(settings)?;
        if let Some(put) = &settings.put {
            check_put(settings, put)?;
        }
        if let Some(destroy) = &settings.destroy {
            check_words("destroy", destroy, &[TASK])?;
        }
        check_path("guest_path", settings.guest_path.as_deref(), &[TASK, HASH])?;
        check_path("folder", settings.folder.as_deref(), &[])?;
        if settings.is_per_task() && (task.is_empty() || task.starts_with('-')) {
            return Err(bad(
                format!("the task's name `{task}` cannot stand in a command"),
                "give the task a name that does not start with `-`",
            ));
        }
        let fill =
            |words: &Vec<String>| words.iter().map(|word| word.replace(TASK, task)).collect();
        Ok(Self {
            launch: fill(&settings.launch),
            put: settings.put.as_ref().map(fill),
            destroy: settings.destroy.as_ref().map(fill),
            guest_path: settings
                .guest_path
                .as_ref()
                .map(|path| path.replace(TASK, task)),
        })
    }

    /// Tells whether the template starts the guest itself.
    pub(crate) fn names_guest(&self) -> bool {
        self.launch.iter().any(|word| word == GUEST)
    }

    /// Returns the words that start these words in the place.
    pub(crate) fn filled_with(&self, words: &[String]) -> Vec<String> {
        if !self.names_guest() {
            return [&self.launch, words].concat();
        }
        let mut filled = Vec::new();
        for word in &self.launch {
            if word == GUEST {
                filled.extend_from_slice(words);
            } else {
                filled.push(word.clone());
            }
        }
        filled
    }
}

/// Fills in the words that bring the guest into the place.
pub(crate) fn put_words(put: &[String], file: &str, target: &str) -> Vec<String> {
    // In one pass: a path may well look like the other placeholder.
    put.iter()
        .map(|word| {
            word.split(FILE)
                .map(|part| part.replace(TARGET, target))
                .collect::<Vec<_>>()
                .join(file)
        })
        .collect()
}

fn bad(message: String, hint: &str) -> PlaceError {
    PlaceError::backend(Trouble::BadSetting, message, hint)
}

/// Checks that there is a program to run, and that every placeholder means something.
fn check_words(name: &str, words: &[String], known: &[&str]) -> Result<(), PlaceError> {
    match words.first() {
        None => {
            return Err(bad(
                format!("`{name}` is empty"),
                "write a command as a list of words, such as [\"chroot\", \"/srv/root\"]",
            ));
        }
        Some(first) if first.trim().is_empty() => {
            return Err(bad(
                format!("the first word of `{name}` is empty"),
                "the first word is the program to run",
            ));
        }
        Some(_) => {}
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(bad(
            format!("`{name}` contains a NUL"),
            "a command cannot contain that",
        ));
    }
    for word in words {
        check_placeholders(name, word, known)?;
    }
    Ok(())
}

fn check_placeholders(name: &str, word: &str, known: &[&str]) -> Result<(), PlaceError> {
    match placeholders(word).find(|found| !known.contains(found)) {
        Some(found) => Err(bad(
            format!("`{found}` means nothing in `{name}`"),
            &format!("what may stand there: {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}

/// Finds `{letters}`; doubled braces belong to somebody else's templates.
fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices('{').filter_map(|(start, _)| {
        let rest = word.get(start..)?;
        let end = rest.find('}')?;
        let inner = rest.get(1..end)?;
        let letters = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_lowercase());
        let doubled = word.get(..start)?.ends_with('{') || rest.get(end + 1..)?.starts_with('}');
        let shell = word.get(..start)?.ends_with('$');
        (letters && !doubled && !shell).then(|| rest.get(..=end))?
    })
}

fn check_guest(settings: &CommandSettings) -> Result<(), PlaceError> {
    let words = settings.launch.iter();
    match words.filter(|word| word.contains(GUEST)).count() {
        0 => {
            let unused = [
                ("put", settings.put.is_some()),
                ("guest_path", settings.guest_path.is_some()),
                ("arch", settings.arch.is_some()),
            ];
            match unused.iter().find(|(_, given)| *given) {
                Some((name, _)) => Err(bad(
                    format!("`{name}` is given, but `launch` has no word `{GUEST}`"),
                    "add that word to `launch`; without it the guest is brought there through \
                     `launch` itself",
                )),
                None => Ok(()),
            }
        }
        1 if settings.launch.iter().any(|word| word == GUEST) => Ok(()),
        1 => Err(bad(
            format!("`{GUEST}` must be a word of its own in `launch`"),
            "it stands for several words: the guest's path and its arguments",
        )),
        _ => Err(bad(
            format!("`{GUEST}` stands in `launch` more than once"),
            "name it once",
        )),
    }
}

fn check_put(settings: &CommandSettings, put: &[String]) -> Result<(), PlaceError> {
    check_words("put", put, &[FILE, TARGET, TASK])?;
    if !put.iter().any(|word| word.contains(FILE)) {
        return Err(bad(
            format!("`put` does not say what to put: it has no `{FILE}`"),
            "write it where the file's path belongs, as in [\"cp\", \"{file}\", \"{target}\"]",
        ));
    }
    if settings.guest_path.is_none() {
        return Err(bad(
            "`put` is given, but no `guest_path`".to_owned(),
            "set `guest_path` to the path the guest shall have in the place",
        ));
    }
    Ok(())
}

fn check_path(name: &str, path: Option<&str>, known: &[&str]) -> Result<(), PlaceError> {
    let Some(path) = path else {
        return Ok(());
    };
    check_placeholders(name, path, known)?;
    if !path.starts_with('/') || path.contains('\0') {
        return Err(bad(
            format!("`{name}` must be absolute, not `{}`", path.escape_debug()),
            "write the path in the place from `/` on",
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
