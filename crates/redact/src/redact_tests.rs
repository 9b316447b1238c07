use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Text with random parts: `{A36}` stands for 36 letters and digits, so that no value in this file
/// looks like a real one. `A` letters and digits, `h` hexadecimal, `U` capitals and digits, `d`
/// digits, `w` word letters with `_` and `-`, `b` base64, `u` a UUID.
pub(super) fn filled(template: &str, seed: u64) -> String {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x1234_5678_9abc_def1);
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut out = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let word = &rest[start + 1..start + length];
        let (kind, count) = word.split_at(usize::from(!word.is_empty()));
        let letters: &[u8] = match kind {
            "A" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "h" | "u" => b"0123456789abcdef",
            "U" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            "d" => b"0123456789",
            "l" => b"abcdefghijklmnopqrstuvwxyz0123456789",
            "w" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
            "b" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            _ => b"",
        };
        let count: usize = if kind == "u" {
            36
        } else {
            count.parse().unwrap_or(0)
        };
        if letters.is_empty() || count == 0 {
            out.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        }
        out.push_str(&rest[..start]);
        for at in 0..count {
            let dash = kind == "u" && [8, 13, 18, 23].contains(&at);
            out.push(if dash {
                '-'
            } else {
                char::from(letters[next(letters.len())])
            });
        }
        rest = &rest[start + length + 1..];
    }
    out + rest
}

/// Divides `before«secret»after`.
fn parts(text: &str) -> (String, String, String) {
    let (before, rest) = text.split_once('«').expect("a secret");
    let (secret, after) = rest.split_once('»').expect("an end");
    (before.to_owned(), secret.to_owned(), after.to_owned())
}

fn streamed(redactor: &Redactor, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    let mut from = 0;
    for &cut in cuts {
        let cut = cut.clamp(from, text.len());
        stream.push_into(&text[from..cut], &mut out);
        assert!(
            stream.held() < 4096,
            "{} bytes are held back",
            stream.held()
        );
        from = cut;
    }
    stream.push_into(&text[from..], &mut out);
    stream.finish_into(&mut out);
    out
}

#[test]
fn every_secret_of_the_table_is_hidden_and_nothing_else() {
    let redactor = Redactor::default();
    let mut wrong = Vec::new();
    for template in super::table::SECRETS {
        for seed in 1..8 {
            let (before, secret, after) = parts(&filled(template, seed));
            let text = format!("{before}{secret}{after}");
            let shown = redactor.redact(&text);
            let fits = shown
                .strip_prefix(before.as_str())
                .and_then(|rest| rest.strip_suffix(after.as_str()));
            let marked = fits.is_some_and(|mark| {
                mark.starts_with("[redacted: ") && mark.ends_with(']') && mark.len() < 60
            });
            if !marked {
                wrong.push(format!("{template}\n    {text}\n    {shown}"));
            }
        }
    }
    let total = super::table::SECRETS.len() * 7;
    assert!(
        wrong.is_empty(),
        "{} of {total}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn no_harmless_line_of_the_table_is_touched() {
    let redactor = Redactor::default();
    let mut wrong = Vec::new();
    for template in super::table::HARMLESS {
        for seed in 1..8 {
            let text = filled(template, seed);
            let shown = redactor.redact(&text);
            if shown != text {
                wrong.push(format!("{text}\n    {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_tables_are_long_enough_to_mean_something() {
    assert!(super::table::SECRETS.len() + super::table::HARMLESS.len() >= 300);
}

#[test]
fn a_secret_split_anywhere_is_hidden_all_the_same() {
    let redactor = Redactor::default();
    for template in super::table::SECRETS {
        let text = filled(template, 3).replace(['«', '»'], "");
        let whole = redactor.redact_bytes(text.as_bytes());
        for cut in 0..=text.len() {
            assert_eq!(
                String::from_utf8_lossy(&streamed(&redactor, text.as_bytes(), &[cut])),
                String::from_utf8_lossy(&whole),
                "{text} cut at {cut}"
            );
        }
        let every: Vec<usize> = (1..text.len()).collect();
        assert_eq!(
            streamed(&redactor, text.as_bytes(), &every),
            whole.as_ref(),
            "{text}"
        );
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let literal = prop::sample::select(vec![
        "password=",
        "token: ",
        "\"api_key\": \"",
        "https://user:",
        "@host/",
        "ghp_",
        "sk-",
        "eyJhbGciOiJIUzI1NiJ9.",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "-----END RSA PRIVATE KEY-----\n",
        "Authorization: Bearer ",
        "AKIA",
        "\n",
        " ",
        "\"",
        "é",
        "DB_PASSWORD=",
        "=",
        ":",
        "hunter22hunter22",
        "aZ9",
        ".",
        "-----",
        "gh",
        "\\n",
        "'",
        "m0zQ~",
    ]);
    prop_oneof![
        literal.prop_map(str::to_owned),
        "[a-zA-Z0-9_.+/=-]{1,40}",
        "[ -~]{1,12}",
        "[0-9a-f]{20,70}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_division_of_a_text_changes_the_result(
        pieces in prop::collection::vec(pieces(), 1..14),
        mut cuts in prop::collection::vec(0_usize..400, 0..12),
        known in prop::option::of("[a-zA-Z0-9=:&. ]{8,30}"),
    ) {
        cuts.sort_unstable();
        let mut secrets = Secrets::new().value("A", "hunter22hunter").value("B", "22huntEXTRA&more=8");
        let mut text = pieces.concat();
        if let Some(known) = known {
            text.insert_str(0, &known);
            secrets = secrets.value("C", known);
        }
        let redactor = Redactor::new(&secrets);
        let whole = redactor.redact_bytes(text.as_bytes());
        let parts = streamed(&redactor, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8_lossy(&parts), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn any_bytes_pass_and_the_same_in_any_division(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        mut cuts in prop::collection::vec(0_usize..600, 0..6),
    ) {
        cuts.sort_unstable();
        let redactor = Redactor::default();
        let whole = redactor.redact_bytes(&bytes);
        prop_assert_eq!(streamed(&redactor, &bytes, &cuts), whole.as_ref());
    }

    #[test]
    fn what_was_redacted_once_stays_as_it_is(pieces in prop::collection::vec(pieces(), 1..8)) {
        let redactor = Redactor::default();
        let once = redactor.redact(&pieces.concat()).into_owned();
        prop_assert!(!once.contains("[redacted: [redacted"), "{}", once);
    }
}

#[test]
fn known_values_are_hidden_wherever_they_stand() {
    let value = "correct-horse/battery staple";
    let redactor = Redactor::new(&Secrets::new().value("X", value));
    for text in [
        format!("it is {value}!"),
        format!("xx{value}yy"),
        "q=correct-horse%2Fbattery%20staple".to_owned(),
    ] {
        let shown = redactor.redact(&text);
        assert!(
            shown.contains("[redacted: secret value]") && !shown.contains("horse"),
            "{shown}"
        );
    }
}

#[test]
fn base64_of_a_known_value_is_hidden_at_every_offset() {
    use base64::Engine as _;
    let value = filled("{A30}", 5);
    let redactor = Redactor::new(&Secrets::new().value("X", value.as_str()));
    for before in ["", "a", "ab", "abc", "user:"] {
        let text = base64::engine::general_purpose::STANDARD.encode(format!("{before}{value}\n"));
        let shown = redactor.redact(&text);
        assert!(
            shown.contains("[redacted: secret value]"),
            "{before}: {text} {shown}"
        );
        assert!(shown.len() < 40, "{shown}");
    }
}

#[test]
fn the_longest_known_value_wins_and_neighbours_share_a_mark() {
    let secrets = Secrets::new()
        .value("A", "abcdefgh")
        .value("B", "abcdefghijkl");
    let redactor = Redactor::new(&secrets);
    assert_eq!(
        redactor.redact("abcdefghijkl."),
        "[redacted: secret value]."
    );
    assert_eq!(
        redactor.redact("abcdefghabcdefgh."),
        "[redacted: secret value]."
    );
    assert_eq!(
        redactor.redact("abcdefghijk."),
        "[redacted: secret value]ijk."
    );
}

#[test]
fn a_known_value_of_many_lines_is_hidden_line_by_line() {
    let value = format!("first-line-of-it\n{}\nshort\n", "x1Y2z3W4".repeat(300));
    let redactor = Redactor::new(&Secrets::new().value("A", value.as_str()));
    let shown = redactor.redact(&value).into_owned();
    assert_eq!(
        shown,
        "[redacted: secret value]\n[redacted: secret value]\nshort\n"
    );
}

#[test]
fn variables_that_hold_secrets_are_told_from_those_that_do_not() {
    let random = filled("{A24}", 1);
    for (name, value) in [
        ("DB_PASSWORD", "correcthorse"),
        ("MY_TOKEN", "abcdefgh"),
        ("SOME_SECRET", "alphabetical"),
        ("SERVICE_KEY", "abcdefghij"),
        ("SUDO_PASSWORD", "open sesame"),
        ("AUTHX", random.as_str()),
        ("BASIC_AUTH", "user:p4ssw0rd!"),
        ("MYTOKENS", random.as_str()),
    ] {
        assert!(holds_secret(name, value.as_bytes()), "{name}={value}");
    }
    for (name, value) in [
        ("DB_PASSWORD", "short"),
        ("POSTGRES_PASSWORD", "postgres"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-agent.123/sock"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google/key.json"),
        ("GIT_AUTHOR_NAME", "Somebody Else"),
        ("XAUTHORITY", "/home/me/.Xauthority"),
        ("KEYBOARD_LAYOUT", "de-latin1-nodeadkeys"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("TOKENIZERS_PARALLELISM", "disabled"),
    ] {
        assert!(!holds_secret(name, value.as_bytes()), "{name}={value}");
    }
}

#[test]
fn variables_on_the_pass_list_are_shown_whatever_they_look_like() {
    let token = filled("ghp_{A36}", 2);
    let other = filled("ghp_{A36}", 3);
    let secrets = Secrets::new()
        .variables([
            ("GITHUB_TOKEN", token.as_str()),
            ("OTHER_TOKEN", other.as_str()),
        ])
        .pass(["GITHUB_TOKEN"]);
    let redactor = Redactor::new(&secrets);
    let text = format!("GITHUB_TOKEN={token}\nplain {token}\nOTHER_TOKEN={other}\n");
    let shown = redactor.redact(&text);
    assert_eq!(shown.matches(&token).count(), 2, "{shown}");
    assert!(!shown.contains(&other), "{shown}");
}

#[test]
fn text_that_cannot_be_a_secret_is_handed_on_at_once() {
    let redactor = Redactor::default();
    for text in [
        "Password: ",
        "[sudo] password for me: ",
        "hello\n",
        "make: done",
        "$ ",
        ">>> ",
        "50%",
        "token = ",
    ] {
        let mut stream = redactor.stream();
        assert_eq!(stream.push(text.as_bytes()), text.as_bytes(), "{text}");
    }
}

#[test]
fn a_short_start_of_a_secret_can_be_let_go_and_the_rest_is_hidden_still() {
    let token = filled("ghp_{A36}", 2);
    let mut stream = Redactor::default().stream();
    assert_eq!(stream.push(b"$ gh"), b"$ ");
    assert_eq!(stream.relax(), b"gh");
    let mut out = stream.push(&token.as_bytes()[2..]);
    out.extend(stream.finish());
    assert_eq!(out, b"[redacted: github token]");
}

#[test]
fn a_private_key_is_hidden_as_a_whole_and_what_follows_is_not() {
    let body: String = (0..20).map(|line| filled("{b64}\n", line)).collect();
    let redactor = Redactor::default();
    let text = format!(
        "a\n-----BEGIN OPENSSH PRIVATE KEY-----\n{body}{}==\n-----END OPENSSH PRIVATE KEY-----\nafter it\n",
        filled("{b22}", 9)
    );
    assert_eq!(
        redactor.redact(&text),
        "a\n-----BEGIN OPENSSH PRIVATE KEY-----[redacted: private key]\nafter it\n"
    );
    let mut numbered = String::new();
    for (at, line) in text.lines().enumerate() {
        let _ = writeln!(numbered, "{at:6}\t{line}");
    }
    let shown = redactor.redact(&numbered).into_owned();
    assert!(
        body.lines().all(|line| !shown.contains(line)) && shown.contains("after it"),
        "{shown}"
    );
    let escaped = text.replace('\n', "\\n");
    let shown = redactor.redact(&escaped).into_owned();
    assert!(
        body.lines().all(|line| !shown.contains(line)) && shown.contains("after it"),
        "{shown}"
    );
    let torn = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{}\n\n{body}and then prose\n",
        filled("{h32}", 1)
    );
    let shown = redactor.redact(&torn).into_owned();
    assert!(
        body.lines().all(|line| !shown.contains(line)) && shown.contains("prose"),
        "{shown}"
    );
}

#[test]
fn a_token_of_any_length_is_hidden_to_its_end() {
    let redactor = Redactor::default();
    for length in [1000, 70_000] {
        let text = format!(
            "x eyJhbGciOiJIUzI1NiIsInR5cCI6.{} y",
            "aB3d".repeat(length / 4)
        );
        assert_eq!(redactor.redact(&text), "x [redacted: json web token] y");
        let cuts: Vec<usize> = (1..text.len()).step_by(997).collect();
        assert_eq!(
            streamed(&redactor, text.as_bytes(), &cuts),
            b"x [redacted: json web token] y"
        );
    }
}

#[test]
fn clean_text_is_not_copied() {
    assert!(matches!(
        Redactor::default().redact("nothing here"),
        Cow::Borrowed(_)
    ));
}

#[test]
fn names_with_a_telling_word_look_secret_in_any_case() {
    for name in [
        "OPENAI_API_KEY",
        "my_token",
        "DB_PASSWORD",
        "AUTHORIZATION",
        "x_secret_y",
        "CREDENTIALS",
        "PGPASSWD",
    ] {
        assert!(looks_secret(name), "{name}");
    }
    for name in ["PATH", "HOME", "LANG", "TERMINAL_TIMEOUT"] {
        assert!(!looks_secret(name), "{name}");
    }
}

#[test]
fn a_redactor_that_is_off_changes_nothing() {
    let token = filled("ghp_{A36}", 4);
    let redactor = Redactor::off();
    assert_eq!(redactor.redact(&token), token);
    let mut stream = redactor.stream();
    assert_eq!(stream.push(token.as_bytes()), token.as_bytes());
    assert_eq!((stream.held(), stream.finish()), (0, Vec::new()));
}

#[test]
fn nothing_that_is_debugged_shows_a_value() {
    let secrets = Secrets::new().value("NAME", "the-value-itself");
    let redactor = Redactor::new(&secrets);
    let text = format!("{secrets:?} {redactor:?} {:?}", redactor.stream());
    assert!(
        text.contains("NAME") && !text.contains("the-value"),
        "{text}"
    );
}

#[test]
fn a_token_that_happens_to_have_no_digit_is_hidden() {
    let redactor = Redactor::default();
    for value in ["hzKBbXhACWWniRxFvGOJ", "YBSDwYgwXlpmXCCpadibinlzxRZVbnHP"] {
        for name in [
            "api_key: ",
            "TOKEN=",
            "--password ",
            "X-Api-Key: ",
            "MY_SECRET='",
        ] {
            let text = format!("{name}{value}'");
            assert!(!redactor.redact(&text).contains(value), "{text}");
        }
    }
    for value in [
        "getHTTPURLForKey",
        "parseTheNextTokenFromStream",
        "XMLHttpRequestUpload",
    ] {
        let text = format!("token = {value}");
        assert_eq!(redactor.redact(&text), text);
    }
}

#[test]
fn a_secret_that_comes_letter_by_letter_shows_its_first_letters_only() {
    let token = filled("ghp_{A36}", 77);
    let known = "s3cretvalue-of-the-day";
    let redactor = Redactor::new(&Secrets::new().value("V", known));
    for secret in [token.as_str(), known] {
        for size in 1..=4 {
            let mut stream = redactor.stream();
            let mut shown = stream.push(b"it is ");
            for piece in secret.as_bytes().chunks(size) {
                shown.extend(stream.push(piece));
                shown.extend(stream.relax());
            }
            shown.extend(stream.push(b" .\n"));
            shown.extend(stream.finish());
            let shown = String::from_utf8(shown).unwrap();
            assert!(!shown.contains(&secret[..6]), "{size}: {shown}");
            assert!(shown.ends_with(" .\n"), "{shown}");
        }
    }
}
