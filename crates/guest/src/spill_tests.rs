use exoshell_wire::Spill as Limits;

use super::{LazyRedactor, Spill};

fn spill(dir: &std::path::Path, after: u64, max: u64) -> Spill {
    let limits = Limits {
        after_bytes: after,
        max_bytes: max,
    };
    Spill::new(dir, "x", limits, LazyRedactor::shapes())
}

#[test]
fn small_output_touches_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let spill = spill(dir.path(), 10, 100);
    spill.push(1, b"0123456789");
    assert_eq!(spill.finish(), None);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn h2_large_output_is_kept_whole_from_its_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let spill = spill(dir.path(), 10, 1000);
    spill.push(1, b"01234567");
    spill.push(1, b"89abcdef");
    spill.push(1, b"ghi");
    let file = spill.finish().unwrap();
    assert_eq!(file.incomplete, None);
    assert_eq!(file.bytes, 19);
    let content = std::fs::read(file.path.display()).unwrap();
    assert_eq!(content, b"0123456789abcdefghi");
}

#[test]
fn o2_the_file_never_grows_over_its_limit_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let spill = spill(dir.path(), 4, 10);
    spill.push(1, b"0123456789abc");
    spill.push(1, b"more");
    let file = spill.finish().unwrap();
    assert_eq!(file.bytes, 10);
    assert!(file.incomplete.unwrap().contains("first 10 of 17 bytes"));
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_and_stops_nothing() {
    let spill = spill(std::path::Path::new("/proc/nowhere"), 4, 10);
    spill.push(1, b"0123456789abc");
    spill.push(1, b"more");
    assert!(
        spill
            .finish()
            .unwrap()
            .incomplete
            .unwrap()
            .contains("/proc/nowhere")
    );
}

#[test]
fn x3_secrets_are_hidden_in_the_file_however_they_were_split() {
    let dir = tempfile::tempdir().unwrap();
    let spill = spill(dir.path(), 10, 1000);
    let token = format!("ghp_{}", "aB3dE5".repeat(6));
    // The two streams come in turns, and the file is opened in the middle of the secret.
    for byte in token.as_bytes() {
        spill.push(1, &[*byte]);
        spill.push(2, b".");
    }
    spill.push(1, b" end\n");
    let file = spill.finish().unwrap();
    let content = std::fs::read_to_string(file.path.display()).unwrap();
    let content = content.replace('.', "");
    assert_eq!(content, "[redacted: github token] end\n");
    assert_eq!(file.incomplete, None);
}
