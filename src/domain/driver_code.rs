//! What the return codes of the driver's functions mean, for people.

/// Said of a number that is not in the table.
const UNLISTED: &str = "a code the driver's manual does not list";

/// Numbers of the driver's manual; the busy code is documented as "not supported in a container".
const WORDS: [(i32, &str); 21] = [
    (-8001, "invalid parameter"),
    (-8002, "not permitted"),
    (-8003, "memory operation failed"),
    (-8004, "secure function failed"),
    (-8005, "inner error"),
    (-8006, "timeout"),
    (-8007, "invalid device id"),
    (-8008, "device does not exist"),
    (-8009, "ioctl failed"),
    (-8010, "send failed"),
    (-8011, "receive failed"),
    (-8012, "not ready"),
    (-8013, "device busy"),
    (-8014, "file operation failed"),
    (-8015, "reset failed"),
    (-8016, "reset cancelled"),
    (-8017, "upgrading"),
    (-8020, "resource occupied"),
    (-8022, "wrong partition"),
    (-8023, "not configured"),
    (-8255, "not supported"),
];

/// The words for the number that a function of the driver returned.
#[must_use]
pub fn words(raw: i32) -> &'static str {
    WORDS
        .iter()
        .find(|(listed, _)| *listed == raw)
        .map_or(UNLISTED, |(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_codes_have_words_and_others_are_said_to_be_unlisted() {
        assert_eq!(words(-8017), "upgrading");
        assert_eq!(words(-8255), "not supported");
        for raw in [0, -8018, -1, 7] {
            assert_eq!(words(raw), UNLISTED, "{raw}");
        }
    }
}
