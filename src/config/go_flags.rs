//! The syntax of Go's package `flag`, for command lines that were written for Go programs.
//!
//! `-x`, `--x`, `-x=v`, and `-x v` for everything that is no truth value; `--` and the first word that
//! is no flag end the flags; a repeated flag counts with its last value, yet each value must be valid.

use super::nearest::nearest;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A truth value; the flag alone means true.
    Bool,
    /// A whole number within these bounds.
    Int {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// A text.
    Text,
}

/// The part of a flag that its syntax needs.
pub(super) trait Named {
    fn name(&self) -> &'static str;
    fn kind(&self) -> Kind;
}

/// What the words mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Words<'a, F> {
    /// `-h` or `-help`.
    Help,
    /// The flags in order, values in one form (`true`, `false`, decimal numbers), and the first word
    /// after them, which nobody reads.
    Flags {
        given: Vec<(&'a F, String)>,
        rest: Option<String>,
    },
}

/// Why words are no command line. Messages hold the flag, the value and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoFlagError {
    /// Not a flag at all.
    #[error("{word:?} is no flag; write -name=value")]
    Syntax {
        /// The word.
        word: String,
    },
    /// No flag has this name.
    #[error("unknown flag -{name}{hint}; -h lists all flags")]
    Unknown {
        /// The name as written.
        name: String,
        /// The nearest flag, as a sentence part.
        hint: String,
    },
    /// The value is missing.
    #[error("flag -{name} needs a value; write -{name}=VALUE")]
    NoValue {
        /// The flag.
        name: &'static str,
    },
    /// The value cannot be read or is out of range.
    #[error("flag -{name}={value}: {expected}")]
    Value {
        /// The flag.
        name: &'static str,
        /// The value as written.
        value: String,
        /// What is allowed.
        expected: String,
    },
}

/// Longest part of a foreign text that is repeated in a message.
const SHOWN_MAX_CHARS: usize = 256;

/// Reads the words after the program's name.
///
/// # Errors
/// Names the first word that is wrong.
pub(super) fn parse<F: Named>(
    flags: &[F],
    words: impl IntoIterator<Item = String>,
) -> Result<Words<'_, F>, GoFlagError> {
    let mut words = words.into_iter();
    let mut given = Vec::new();
    while let Some(word) = words.next() {
        let Some(bare) = word.strip_prefix('-').filter(|bare| !bare.is_empty()) else {
            return Ok(Words::Flags {
                given,
                rest: Some(word),
            });
        };
        let bare = bare.strip_prefix('-').unwrap_or(bare);
        if bare.is_empty() {
            let rest = words.next();
            return Ok(Words::Flags { given, rest });
        }
        if bare.starts_with(['-', '=']) {
            let word = shown(&word);
            return Err(GoFlagError::Syntax { word });
        }
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (bare, None),
        };
        let Some(flag) = flags.iter().find(|flag| flag.name() == name) else {
            if name == "h" || name == "help" {
                return Ok(Words::Help);
            }
            return Err(unknown(flags, name));
        };
        let value = match value {
            Some(value) => value,
            None if flag.kind() == Kind::Bool => "true".to_owned(),
            None => words
                .next()
                .ok_or(GoFlagError::NoValue { name: flag.name() })?,
        };
        given.push((flag, one_form(flag, &value)?));
    }
    Ok(Words::Flags { given, rest: None })
}

fn unknown<F: Named>(flags: &[F], name: &str) -> GoFlagError {
    let names = flags.iter().map(Named::name);
    GoFlagError::Unknown {
        name: shown(name),
        hint: nearest(name, names)
            .map_or_else(String::new, |near| format!("; did you mean -{near}?")),
    }
}

fn one_form<F: Named>(flag: &F, value: &str) -> Result<String, GoFlagError> {
    let refuse = |expected: String| GoFlagError::Value {
        name: flag.name(),
        value: shown(value),
        expected,
    };
    match flag.kind() {
        Kind::Text => Ok(value.to_owned()),
        Kind::Bool => match value {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok("true".to_owned()),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok("false".to_owned()),
            _ => Err(refuse("must be true or false".to_owned())),
        },
        Kind::Int { min, max } => whole_number(value)
            .filter(|number| (min..=max).contains(number))
            .map(|number| number.to_string())
            .ok_or_else(|| {
                refuse(if max == i64::MAX {
                    format!("must be a whole number, at least {min}")
                } else {
                    format!("must be a whole number from {min} to {max}")
                })
            }),
    }
}

/// A number as Go reads it with base 0: a sign, then decimal, `0x`, `0o`, `0b` or a leading zero for
/// octal. One underscore may stand between two digits, or between prefix and digits.
fn whole_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (after_prefix(digits), 16)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (after_prefix(digits), 2)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (after_prefix(digits), 8)
    } else if let Some(digits) = lower.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        (after_prefix(digits), 8)
    } else {
        (lower.as_str(), 10)
    };
    let is_group =
        |group: &str| !group.is_empty() && group.chars().all(|digit| digit.is_digit(radix));
    if !digits.split('_').all(is_group) {
        return None;
    }
    let number = i64::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -number } else { number })
}

fn after_prefix(digits: &str) -> &str {
    digits.strip_prefix('_').unwrap_or(digits)
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Flag(&'static str, Kind);

    impl Named for Flag {
        fn name(&self) -> &'static str {
            self.0
        }

        fn kind(&self) -> Kind {
            self.1
        }
    }

    const FLAGS: [Flag; 3] = [
        Flag("b", Kind::Bool),
        Flag("count", Kind::Int { min: -1, max: 100 }),
        Flag("text", Kind::Text),
    ];

    type Read = (Vec<(&'static str, String)>, Option<String>);

    fn read(line: &[&str]) -> Result<Read, GoFlagError> {
        match parse(&FLAGS, line.iter().map(|word| (*word).to_owned()))? {
            Words::Help => panic!("help"),
            Words::Flags { given, rest } => Ok((
                given
                    .iter()
                    .map(|(flag, value)| (flag.0, value.clone()))
                    .collect(),
                rest,
            )),
        }
    }

    fn values(line: &[&str]) -> Vec<String> {
        read(line)
            .unwrap()
            .0
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    }

    #[test]
    fn one_and_two_dashes_and_both_forms_of_a_value_are_the_same() {
        for line in [
            &["-count=7"][..],
            &["--count=7"],
            &["-count", "7"],
            &["--count", "7"],
            &["-count=0x7"],
            &["-count=007"],
            &["-count=+7"],
            &["-count=0_7"],
            &["-count=0x_7"],
            &["-count=0b1_1_1"],
        ] {
            assert_eq!(values(line), ["7"], "{line:?}");
        }
        assert_eq!(values(&["-count", "-1"]), ["-1"]);
        assert_eq!(values(&["-count=1_0"]), ["10"]);
        for bad in [
            "_7", "7_", "1__0", "0x", "0x_", "0__7", "0_", "0x__7", "08", "0_8", "+-7",
        ] {
            assert!(read(&[&format!("-count={bad}")]).is_err(), "{bad}");
        }
        assert_eq!(values(&["-text=a=b"]), ["a=b"]);
        assert_eq!(values(&["-text="]), [""]);
        assert_eq!(values(&["-text", "-b"]), ["-b"]);
    }

    #[test]
    fn every_form_of_a_truth_value_is_known_and_no_other() {
        for yes in [
            "-b", "--b", "-b=true", "-b=1", "-b=t", "-b=T", "-b=TRUE", "-b=True",
        ] {
            assert_eq!(values(&[yes]), ["true"], "{yes}");
        }
        for no in ["-b=false", "-b=0", "-b=f", "-b=F", "-b=FALSE", "-b=False"] {
            assert_eq!(values(&[no]), ["false"], "{no}");
        }
        for bad in ["-b=yes", "-b=tRUE", "-b="] {
            let said = read(&[bad]).unwrap_err().to_string();
            assert!(said.contains("true or false"), "{said}");
        }
    }

    #[test]
    fn a_truth_value_never_takes_the_next_word() {
        assert_eq!(
            read(&["-b", "false", "-count=3"]).unwrap(),
            (vec![("b", "true".to_owned())], Some("false".to_owned()))
        );
    }

    #[test]
    fn flags_end_at_two_dashes_or_at_the_first_other_word() {
        for (line, rest) in [
            (&["-b", "--", "-count=3"][..], Some("-count=3")),
            (&["-b", "--"], None),
            (&["-b", "-", "-count=3"], Some("-")),
            (&["-b", "run"], Some("run")),
            (&["-b", ""], Some("")),
        ] {
            let (given, left) = read(line).unwrap();
            assert_eq!(given.len(), 1, "{line:?}");
            assert_eq!(left.as_deref(), rest, "{line:?}");
        }
    }

    #[test]
    fn each_value_of_a_repeated_flag_is_checked() {
        assert_eq!(values(&["-count=1", "-count=2"]), ["1", "2"]);
        assert!(read(&["-count=101", "-count=2"]).is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_the_remedy() {
        for (line, parts) in [
            (&["-cuont=1"][..], &["-cuont", "did you mean -count?"][..]),
            (&["-COUNT=1"], &["did you mean -count?"]),
            (&["-zzzzzzzz"], &["unknown flag -zzzzzzzz", "-h"]),
            (&["-count"], &["-count needs a value"]),
            (&["-count=x"], &["-count=x", "from -1 to 100"]),
            (&["-count=101"], &["-count=101", "from -1 to 100"]),
            (&["-count=9223372036854775808"], &["from -1 to 100"]),
            (&["-count=0x"], &["-count=0x"]),
            (&["-count=--1"], &["-count=--1"]),
            (&["---b"], &["\"---b\"", "-name=value"]),
            (&["-=b"], &["\"-=b\""]),
        ] {
            let said = read(line).unwrap_err().to_string();
            for part in parts {
                assert!(
                    said.contains(part),
                    "{line:?}: {part:?} is missing in {said}"
                );
            }
        }
    }

    #[test]
    fn help_is_asked_for_by_name() {
        for word in ["-h", "--h", "-help", "--help", "-h=x"] {
            assert_eq!(parse(&FLAGS, [word.to_owned()]), Ok(Words::Help), "{word}");
        }
    }
}
