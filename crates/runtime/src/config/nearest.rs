//! Which known key somebody probably meant.

/// Returns the known key closest to the given one, if any is close.
///
/// Keys are compared whole and by their last part, so that a key in the wrong table, or in none, is recognised as well.
pub(super) fn nearest<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let given = given.to_lowercase().replace('-', "_");
    let scored = known
        .into_iter()
        .filter_map(|key| Some((score(&given, key)?, key)));
    scored.min_by_key(|(score, _)| *score).map(|(_, key)| key)
}

/// Returns how far apart two keys are; the lower the closer, `None` = not alike.
fn score(given: &str, known: &str) -> Option<usize> {
    let whole = distance(given, known);
    let (given_last, known_last) = (last_part(given), last_part(known));
    let same_table = given.strip_suffix(given_last) == known.strip_suffix(known_last);
    // A left-out unit (`timeout` for `timeout_seconds`) is many letters but the same thought.
    let shortened = given_last.len() >= 3 && known_last.starts_with(given_last);
    let last = if shortened {
        1
    } else {
        distance(given_last, known_last)
    };
    let allowed = (given_last.chars().count() / 3).max(1);
    // Doubled, so that the table only decides between keys that are otherwise equally close.
    (last <= allowed || whole <= allowed).then_some(last.min(whole) * 2 + usize::from(!same_table))
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Counts the letters to insert, delete, replace or swap with their neighbour to turn one text into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut previous = None;
    for (row, letter) in from.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let replace = last[column] + usize::from(letter != *other);
            let mut best = replace.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = column > 0 && previous == Some(*other) && to[column - 1] == letter;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "nearest_tests.rs"]
mod tests;
