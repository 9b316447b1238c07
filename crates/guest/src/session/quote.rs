//! Shell quoting, both ways.

/// Quotes bytes so that a shell reads back exactly them. They must not contain NUL.
pub(crate) fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'\'');
    for byte in bytes {
        if *byte == b'\'' {
            out.extend_from_slice(b"'\\''");
        } else {
            out.push(*byte);
        }
    }
    out.push(b'\'');
    out
}

/// Reads one word of shell text, undoing every quoting a shell prints: `"…"`, `'…'`, `$'…'`
/// and backslashes. Stops before unquoted white space.
pub(crate) fn read_word(input: &mut &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while let Some((first, rest)) = input.split_first() {
        match first {
            b' ' | b'\t' | b'\n' => break,
            b'\'' => {
                let end = rest.iter().position(|b| *b == b'\'')?;
                out.extend_from_slice(rest.get(..end)?);
                *input = rest.get(end + 1..)?;
            }
            b'"' => *input = read_double(rest, &mut out)?,
            b'$' if rest.first() == Some(&b'\'') => {
                *input = read_ansi(rest.get(1..)?, &mut out)?;
            }
            b'\\' => {
                out.push(*rest.first()?);
                *input = rest.get(1..)?;
            }
            other => {
                out.push(*other);
                *input = rest;
            }
        }
    }
    Some(out)
}

fn read_double<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (first, after) = rest.split_first()?;
        match first {
            b'"' => return Some(after),
            b'\\' => {
                let (escaped, after) = after.split_first()?;
                match escaped {
                    b'$' | b'`' | b'"' | b'\\' => out.push(*escaped),
                    b'\n' => {}
                    other => out.extend_from_slice(&[b'\\', *other]),
                }
                rest = after;
            }
            other => {
                out.push(*other);
                rest = after;
            }
        }
    }
}

fn read_ansi<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'\'' => return Some(rest),
            b'\\' => rest = read_escape(rest, out)?,
            other => out.push(*other),
        }
    }
}

fn read_escape<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (first, after) = rest.split_first()?;
    let plain = match first {
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let (value, rest) = read_number(rest, 8, 3);
            out.push(value.to_le_bytes()[0]);
            return Some(rest);
        }
        b'x' => {
            let (value, rest) = read_number(after, 16, 2);
            out.push(value.to_le_bytes()[0]);
            return Some(rest);
        }
        b'u' | b'U' => {
            let (value, rest) = read_number(after, 16, if *first == b'u' { 4 } else { 8 });
            let mut buffer = [0; 4];
            let encoded = char::from_u32(value)?.encode_utf8(&mut buffer);
            out.extend_from_slice(encoded.as_bytes());
            return Some(rest);
        }
        other => *other,
    };
    out.push(plain);
    Some(after)
}

fn read_number(bytes: &[u8], radix: u32, most: usize) -> (u32, &[u8]) {
    let mut value = 0;
    let mut rest = bytes;
    for _ in 0..most {
        let Some((first, after)) = rest.split_first() else {
            break;
        };
        let Some(digit) = char::from(*first).to_digit(radix) else {
            break;
        };
        value = value * radix + digit;
        rest = after;
    }
    (value, rest)
}

/// Skips a value as `declare -p` prints it, an array's parentheses included.
pub(crate) fn skip_value<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = *input;
    if input.first() == Some(&b'(') {
        *input = input.get(1..)?;
        while input.first() != Some(&b')') {
            if input.first() == Some(&b' ') {
                *input = input.get(1..)?;
                continue;
            }
            // An element is a word whose subscript and value are quoted; a bare `)` ends it.
            let before = input.len();
            let end = element_length(input)?;
            *input = input.get(end..)?;
            if input.len() == before {
                return None;
            }
        }
        *input = input.get(1..)?;
    } else {
        read_word(input)?;
    }
    start.get(..start.len() - input.len())
}

fn element_length(input: &[u8]) -> Option<usize> {
    let mut rest = input;
    while let Some(first) = rest.first() {
        match first {
            b' ' | b')' => break,
            b'"' | b'\'' | b'$' | b'\\' => {
                // One quoted run at a time, so that a bare `)` behind it is seen.
                let mut run = rest;
                let mut sink = Vec::new();
                run = match first {
                    b'"' => read_double(run.get(1..)?, &mut sink)?,
                    b'\'' => {
                        let end = run.get(1..)?.iter().position(|b| *b == b'\'')?;
                        run.get(end + 2..)?
                    }
                    b'$' if run.get(1) == Some(&b'\'') => read_ansi(run.get(2..)?, &mut sink)?,
                    b'\\' => run.get(2..)?,
                    _ => run.get(1..)?,
                };
                rest = run;
            }
            _ => rest = rest.get(1..)?,
        }
    }
    Some(input.len() - rest.len())
}

#[cfg(test)]
#[path = "quote_tests.rs"]
mod tests;
