//! `ASCEND_VISIBLE_DEVICES`, the list of chips that Ascend Docker Runtime puts into a container.
//! Source of the grammar: the runtime.

use std::collections::BTreeSet;

/// Ends of a range lie between 0 and this; a single number may be larger, because vNPU ids are.
const RANGE_END_MAX: u32 = 128;

/// Names by which a chip may be called, before its number.
const NAMES: [&str; 5] = [
    "Ascend910-",
    "Ascend310B-",
    "Ascend310P-",
    "Ascend310-",
    "npu-",
];

/// What the list stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibleDevices {
    /// No chip.
    None,
    /// These numbers, sorted, each once: of chips, or of vNPUs where the runtime is told so.
    Ids(BTreeSet<u32>),
}

/// Why a list means nothing. Items are cut to 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VisibleDevicesError {
    /// Numbers and names in one list.
    #[error("{item:?} mixes numbers and names; write either all as numbers or all as names")]
    Mixed {
        /// The first item that differs from those before.
        item: String,
    },
    /// A range that runs backwards or too far.
    #[error(
        "the range {item:?} must run upwards between 0 and {RANGE_END_MAX}; write larger numbers \
         one by one"
    )]
    Range {
        /// The range.
        item: String,
    },
    /// Neither number nor range nor name.
    #[error(
        "{item:?} is neither a number, nor a range like 0-3, nor a name like Ascend910-0; write the \
         items with commas between them"
    )]
    Syntax {
        /// The item.
        item: String,
    },
}

impl VisibleDevices {
    /// Reads a list: numbers and ranges, or names, with commas between them; `void` or nothing for no
    /// chip. Blanks around items do not count.
    ///
    /// # Errors
    /// Names the item that is wrong.
    pub fn parse(text: &str) -> Result<Self, VisibleDevicesError> {
        if matches!(text.trim(), "" | "void") {
            return Ok(Self::None);
        }
        let mut ids = BTreeSet::new();
        let mut named = None;
        for item in text.split(',').map(str::trim) {
            let quoted = || item.chars().take(64).collect();
            let (first, last, is_name) = read(item).map_err(|wrong| wrong(quoted()))?;
            if *named.get_or_insert(is_name) != is_name {
                return Err(VisibleDevicesError::Mixed { item: quoted() });
            }
            ids.extend(first..=last);
        }
        Ok(Self::Ids(ids))
    }
}

type Wrong = fn(String) -> VisibleDevicesError;

fn read(item: &str) -> Result<(u32, u32, bool), Wrong> {
    let syntax: Wrong = |item| VisibleDevicesError::Syntax { item };
    let range: Wrong = |item| VisibleDevicesError::Range { item };
    if let Some(number) = NAMES.iter().find_map(|name| item.strip_prefix(name)) {
        let number = number_of(number).ok_or(syntax)?;
        return Ok((number, number, true));
    }
    let Some((first, last)) = item.split_once('-') else {
        let number = number_of(item).ok_or(syntax)?;
        return Ok((number, number, false));
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return Err(syntax);
    }
    match (number_of(first), number_of(last)) {
        (Some(first), Some(last)) if first <= last && last <= RANGE_END_MAX => {
            Ok((first, last, false))
        }
        _ => Err(range),
    }
}

/// Digits only: the standard parser would take a plus sign.
fn number_of(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_item_and_what_may_stand_there() {
        for (text, item) in [
            ("0, 9-x", "9-x"),
            ("0,+1", "+1"),
            ("0-1-2", "0-1-2"),
            ("Ascend910-", "Ascend910-"),
            ("Ascend910-0-1", "Ascend910-0-1"),
            ("99999999999", "99999999999"),
        ] {
            let item = item.to_owned();
            let expected = VisibleDevicesError::Syntax { item };
            assert_eq!(VisibleDevices::parse(text), Err(expected), "{text}");
        }
        let long = "x".repeat(1000);
        let told = VisibleDevices::parse(&long)
            .expect_err("no list")
            .to_string();
        assert!(told.len() < 250, "{told}");
    }

    #[test]
    fn a_range_never_makes_a_large_list() {
        let range = |text: &str| VisibleDevicesError::Range {
            item: text.to_owned(),
        };
        for text in ["0-4294967295", "0-99999999999", "129-130"] {
            assert_eq!(VisibleDevices::parse(text), Err(range(text)), "{text}");
        }
    }
}
