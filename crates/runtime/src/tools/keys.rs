//! Keys by name, as a terminal sends them.

use super::ToolError;

/// Returns what a key sends: `enter`, `up`, `f5`, `ctrl-c`, `alt-x` or a single character.
pub(crate) fn key_bytes(name: &str) -> Result<Vec<u8>, ToolError> {
    let lower = name.to_ascii_lowercase();
    let fixed: &[u8] = match lower.as_str() {
        "enter" | "return" => b"\r",
        "tab" => b"\t",
        "escape" | "esc" => b"\x1b",
        "space" => b" ",
        "backspace" => b"\x7f",
        "eof" => b"\x04",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "insert" => b"\x1b[2~",
        "delete" => b"\x1b[3~",
        "pageup" => b"\x1b[5~",
        "pagedown" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "f4" => b"\x1bOS",
        "f5" => b"\x1b[15~",
        "f6" => b"\x1b[17~",
        "f7" => b"\x1b[18~",
        "f8" => b"\x1b[19~",
        "f9" => b"\x1b[20~",
        "f10" => b"\x1b[21~",
        "f11" => b"\x1b[23~",
        "f12" => b"\x1b[24~",
        _ => return combined(name, &lower),
    };
    Ok(fixed.to_vec())
}

fn combined(name: &str, lower: &str) -> Result<Vec<u8>, ToolError> {
    if let Some(key) = lower.strip_prefix("ctrl-")
        && let [letter @ (b'a'..=b'z' | b'[' | b'\\' | b']' | b'_')] = key.as_bytes()
    {
        return Ok(vec![letter & 0x1f]);
    }
    if let Some(key) = name.get(4..).filter(|_| lower.starts_with("alt-")) {
        let mut bytes = vec![0x1b];
        bytes.extend(key_bytes(key)?);
        return Ok(bytes);
    }
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(_), None) => Ok(name.as_bytes().to_vec()),
        _ => Err(ToolError::BadArgument {
            name: "keys",
            takes: "names such as `enter`, `up`, `ctrl-c`, `alt-x`, `f5`, or single characters",
            found: format!("`{name}`"),
        }),
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
