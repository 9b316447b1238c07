//! Lists that grow with the protocol.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// Reads a list and leaves out what this build does not know, so that a newer peer's addition
/// does not make its whole message unreadable.
pub(crate) fn known<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entry<T> {
        Known(T),
        Unknown(IgnoredAny),
    }
    let entries = Vec::<Entry<T>>::deserialize(deserializer)?;
    Ok(entries
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Known(value) => Some(value),
            Entry::Unknown(_) => None,
        })
        .collect())
}
