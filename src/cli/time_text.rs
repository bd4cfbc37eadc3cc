//! Times as people write them.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// A time that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "time {text:?} is not understood; write 90s, 30m, 2h or 3d (ago), 2026-11-29T10:00Z, \
     2026-11-29T10:00+08:00 (both with or without seconds) or 2026-11-29 (UTC)"
)]
pub(super) struct TimeTextError {
    text: String,
}

/// UTC nanoseconds of a text, relative ones counted back from `now_ns`.
pub(super) fn parse(text: &str, now_ns: i64) -> Result<i64, TimeTextError> {
    let refuse = || TimeTextError {
        text: text.chars().take(64).collect(),
    };
    if let Some(ago) = ago_ns(text) {
        return now_ns.checked_sub(ago).ok_or_else(refuse);
    }
    absolute(text).ok_or_else(refuse)
}

fn ago_ns(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let number: i64 = text
        .strip_suffix(unit)?
        .parse()
        .ok()
        .filter(|number| *number >= 0)?;
    number.checked_mul(seconds)?.checked_mul(1_000_000_000)
}

fn absolute(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return time.timestamp_nanos_opt();
    }
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_nanos_opt();
    }
    // The same without seconds, which RFC 3339 wants.
    if let Ok(time) = DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M%:z") {
        return time.timestamp_nanos_opt();
    }
    let plain = text.strip_suffix('Z')?;
    ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(plain, form).ok())?
        .and_utc()
        .timestamp_nanos_opt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn reads_times_ago_and_absolute_ones() {
        for (text, expected) in [
            ("90s", NOW - 90 * SECOND),
            ("2h", NOW - 7200 * SECOND),
            ("3d", NOW - 3 * 86_400 * SECOND),
            ("1970-01-02", 86_400 * SECOND),
            ("1970-01-01T01:00Z", 3600 * SECOND),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01T08:00+08:00", 0),
            ("1970-01-01T00:00-01:30", 5400 * SECOND),
        ] {
            assert_eq!(parse(text, NOW), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "h",
            "-2h",
            "yesterday",
            "2026-13-01",
            "99999999999999d",
            "10:00",
            "1970-01-01T08:00",
            "1970-01-01T08:00+99:00",
        ] {
            let error = parse(text, NOW).expect_err("refused").to_string();
            for form in ["2h", "10:00Z", "10:00+08:00", "2026-11-29 "] {
                assert!(error.contains(form), "{error}");
            }
        }
    }
}
