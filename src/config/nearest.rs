//! The name somebody probably meant.

/// Longer words are compared by their beginning.
const COMPARED_CHARS: usize = 64;

/// A beginning shorter than this is shared by too many names.
const BEGINNING_MIN: usize = 4;

/// The name that begins like what was written, or the one with the fewest edits when close enough to
/// be meant. Capitals and underscores do not count.
#[must_use]
pub fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let written = plain(&written.chars().take(COMPARED_CHARS).collect::<String>());
    let begun = names
        .clone()
        .find(|name| written.len() >= BEGINNING_MIN && plain(name).starts_with(&written));
    if begun.is_some() {
        return begun;
    }
    names
        .map(|name| (edits(&written, &plain(name)), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= name.len() / 3 + 1)
        .map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// Levenshtein distance.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, other) in row.iter_mut().skip(1).zip(&to) {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = *cell;
            *cell = substituted.min(*cell + 1).min(left + 1);
            left = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (from, to, distance) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
            assert_eq!(edits(from, to), distance);
        }
    }

    #[test]
    fn finds_beginnings_slips_and_other_capitals_and_nothing_far_away() {
        let names = ["hotReset", "shareDevCount", "state_dir"];
        for (written, found) in [
            ("hotrest", Some("hotReset")),
            ("share", Some("shareDevCount")),
            ("STATEDIR", Some("state_dir")),
            ("quux", None),
        ] {
            assert_eq!(nearest(written, names.into_iter()), found, "{written}");
        }
    }
}
