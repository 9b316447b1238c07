//! How much of a large body of clean text is touched.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use exoshell_redact::Redactor;

/// Collects the sources and documents of this workspace, without the files that hold secrets for
/// tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                sources(&path, found);
            }
            continue;
        }
        let ours = ["rs", "md", "toml", "lock", "txt"]
            .iter()
            .any(|kind| path.extension().is_some_and(|found| found == *kind));
        let planted = name.ends_with("_tests.rs")
            || path.components().any(|part| part.as_os_str() == "tests")
            || (name == "table.rs" && dir.ends_with("redact/src"));
        if ours && !planted {
            found.push(path);
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Makes lines of hashes, ids, base64 and identifiers.
fn generated() -> Vec<String> {
    let mut state = 0x1234_5678_9abc_def1;
    let mut hex = |length: usize| -> String {
        let digits = (0..length.div_ceil(16)).map(|_| format!("{:016x}", random(&mut state)));
        digits.collect::<String>()[..length].to_owned()
    };
    let mut lines = Vec::new();
    for at in 0..4000 {
        let id = hex(32);
        let uuid = format!(
            "{}-{}-{}-{}-{}",
            &id[..8],
            &id[8..12],
            &id[12..16],
            &id[16..20],
            &id[20..]
        );
        let base64: String = hex(128)
            .as_bytes()
            .chunks(2)
            .map(|pair| {
                let value = usize::from(pair[0]) * 7 + usize::from(pair[1]) * 13 + at;
                let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                char::from(letters[value % 64])
            })
            .collect();
        lines.extend([
            format!("commit {}", hex(40)),
            format!("{}  release-{at}.tar.gz", hex(64)),
            format!("request {uuid} took {at} ms"),
            base64.clone(),
            format!("integrity sha512-{base64}=="),
            format!("sk_stream_wait_memory_{at}"),
            format!("ghp_handler_{at}(key, token)"),
            format!("let token_{at} = next_token(&mut parser)?;"),
        ]);
    }
    lines
}

#[test]
fn at_most_one_clean_line_in_a_thousand_is_touched() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut lines = generated();
    for file in files {
        let text = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&text);
        lines.extend(text.lines().map(str::to_owned));
    }
    assert!(lines.len() > 80_000, "only {} lines", lines.len());
    let redactor = Redactor::default();
    let touched: Vec<Cow<'_, str>> = lines
        .iter()
        .map(|line| redactor.redact(line))
        .filter(|line| matches!(line, Cow::Owned(_)))
        .collect();
    assert!(
        touched.len() * 1000 <= lines.len(),
        "{} of {} lines: {touched:#?}",
        touched.len(),
        lines.len(),
    );
}
