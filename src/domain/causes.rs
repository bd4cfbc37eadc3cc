//! The text of an error with the texts of its causes, for a log line, a status line or an exit.

use std::error::Error;

/// The message followed by those of its causes, each after a colon. A cause whose words stand in the
/// text already is left out: libraries often repeat the messages of what they wrap.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{said}")]
    struct Told {
        said: &'static str,
        source: Option<Box<Told>>,
    }

    fn told(words: &[&'static str]) -> Option<Box<Told>> {
        let (said, rest) = words.split_first()?;
        Some(Box::new(Told {
            said,
            source: told(rest),
        }))
    }

    #[test]
    fn every_cause_is_named_once() {
        for (words, text) in [
            (&["alone"][..], "alone"),
            (&["no list", "no socket"], "no list: no socket"),
            (
                &["no list: no socket", "no socket", "file not found"],
                "no list: no socket: file not found",
            ),
        ] {
            assert_eq!(with_causes(&*told(words).expect("an error")), text);
        }
    }
}
