use super::*;

fn steps(lines: &[&str]) -> Vec<String> {
    let mut news = News::new("x:1");
    lines
        .iter()
        .filter_map(|line| news.hear(Some(line)))
        .collect()
}

#[test]
fn dockers_lines_become_steps() {
    let lines = [
        "1: Pulling from x",
        "aaaaaaaaaaaa: Pulling fs layer",
        "bbbbbbbbbbbb: Pulling fs layer",
        "aaaaaaaaaaaa: Download complete",
        "aaaaaaaaaaaa: Pull complete",
        "bbbbbbbbbbbb: Pull complete",
        "Digest: sha256:00",
        "Status: Downloaded newer image for x:1",
    ];
    let expected = [
        "pulling x:1",
        "pulling x:1 (0 of 1 layers)",
        "pulling x:1 (0 of 2 layers)",
        "pulling x:1 (1 of 2 layers)",
        "pulling x:1 (2 of 2 layers)",
    ];
    assert_eq!(steps(&lines), expected);
}

#[test]
fn podmans_lines_become_steps() {
    let lines = [
        "Trying to pull 127.0.0.1:5000/x:1...",
        "Getting image source signatures",
        "Copying blob sha256:aaaaaaaaaaaabbbb",
        "Copying blob aaaaaaaaaaaa done",
        "Copying config sha256:cc",
    ];
    let expected = [
        "pulling x:1",
        "pulling x:1 (0 of 1 layers)",
        "pulling x:1 (1 of 1 layers)",
    ];
    assert_eq!(steps(&lines), expected);
}

#[test]
fn silence_is_news_too() {
    let mut news = News::new("x:1");
    assert_eq!(news.hear(None), Some("pulling x:1, 0 s".to_owned()));
}
