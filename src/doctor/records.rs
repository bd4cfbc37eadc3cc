//! Records that the vendor's installers leave behind: small text files of names and values.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes read of a record; real ones have some hundred.
const BYTES_MAX: u64 = 64 << 10;

/// Names and values of a file; `None` when it cannot be read.
pub(super) fn record(path: &Path) -> Option<BTreeMap<String, String>> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text))
        .ok()?;
    Some(pairs(&text))
}

/// Lines `NAME=VALUE` or `NAME: VALUE`; others are left out.
pub(super) fn pairs(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(['=', ':'])?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_read_in_both_forms() {
        let read = pairs("version=5.0.RC1\narch: aarch64\n\nnothing\n");
        assert_eq!(read["version"], "5.0.RC1");
        assert_eq!(read["arch"], "aarch64");
        assert_eq!(read.len(), 2);
    }
}
