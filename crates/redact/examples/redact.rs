//! Measures redaction: how fast it is, and which lines of given files it touches.
//!
//! ```sh
//! cargo run --release -p exoshell-redact --example redact               # speed
//! cargo run --release -p exoshell-redact --example redact -- FILE …     # touched lines
//! ```
#![expect(clippy::print_stdout, reason = "a report for people")]

use exoshell_redact::{Redactor, Secrets};
use std::fmt::Write as _;

const SIZE: usize = 64 * 1024 * 1024;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        speed();
    } else {
        touched(&files);
    }
}

fn speed() {
    let secrets = (0..40_u32).fold(Secrets::new(), |secrets, at| {
        secrets.value(
            format!("V{at}"),
            format!("{:x}value{at}-of-a-secret", at * 7919),
        )
    });
    let redactor = Redactor::new(&secrets);
    let log = "2024-05-01T10:22:33.123Z INFO  server::http request id=550e8400-e29b-41d4-a716-446655440000 method=GET path=/api/v1/items?page=3 status=200 took=12ms\n";
    let code = "    let token = parser.next_token()?; // the key of the map\n    if password.is_empty() { return Err(AuthError::Empty); }\n    self.cache.insert(key.clone(), value);\n";
    let words = "password secret token key https://example.com:8080/path author passage second\n";
    let mut base64 = String::new();
    for at in 0..SIZE / 256 {
        let _ = writeln!(base64, "{:064x}{:064X}", at * 0x9E37_79B9, at * 31);
    }
    let real = include_str!("../src/names.rs");
    for (name, text) in [
        ("real code", real),
        ("log lines", log),
        ("dense code", code),
        ("hot words", words),
        ("hex", base64.as_str()),
        ("one letter", "aaaaaaaa"),
        ("colons", "://://"),
        ("dashes", "-----BEGIN -----BEGIN "),
    ] {
        let input = text.repeat(SIZE / text.len() + 1);
        let mut out = Vec::new();
        let mut shown = 0;
        let start = cpu_seconds();
        let mut stream = redactor.stream();
        for chunk in input.as_bytes().chunks(32 * 1024) {
            stream.push_into(chunk, &mut out);
            shown += out.len();
            out.clear();
        }
        stream.finish_into(&mut out);
        shown += out.len();
        let seconds = cpu_seconds() - start;
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = input.len() as f64 / 1e6 / seconds;
        println!(
            "{name:12} {rate:7.0} MB/s, {} bytes in, {} out",
            input.len(),
            shown
        );
    }
}

/// Tells the time on the processor: the machine may be busy with other things.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn touched(files: &[String]) {
    let redactor = Redactor::default();
    let (mut lines, mut hits) = (0_u64, 0_u64);
    for file in files {
        let Ok(text) = std::fs::read(file) else {
            continue;
        };
        for line in text.split(|byte| *byte == b'\n') {
            lines += 1;
            let out = redactor.redact_bytes(line);
            if let std::borrow::Cow::Owned(out) = out {
                hits += 1;
                let out = String::from_utf8_lossy(&out);
                let line = String::from_utf8_lossy(line);
                let cut: String = line.chars().take(200).collect();
                let shown: String = out.chars().take(200).collect();
                println!("{file}\n  - {cut}\n  + {shown}");
            }
        }
    }
    println!("{hits} of {lines} lines touched");
}
