//! The vendor's device plugin command line as settings of ours.
//!
//! A line that the vendor's program would refuse is refused here with the flag, the value and the
//! remedy. What is understood and changes nothing yet is a note, so that nobody relies on it.

use std::ffi::OsString;

use super::go_flags::{GoFlagError, Words, parse};
use super::sources::GivenSetting;
use super::vendor_flags::{EDGE_LOG_FILE, Effect, LOG_FILE, VENDOR_FLAGS, VendorFlag};
use super::vendor_rules::Line;

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VendorRequest {
    /// The list of flags.
    Help,
    /// Name and version.
    Version,
    /// A run with these settings.
    Run(VendorLine),
}

/// A valid line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VendorLine {
    /// What it sets.
    pub settings: Vec<GivenSetting>,
    /// Where the vendor's plugin would log unless told otherwise.
    pub default_log_file: String,
    /// What a person should know about it, one sentence each.
    pub notes: Vec<String>,
    /// The first word that is no flag; it and all after it are not read.
    pub stray: Option<String>,
}

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VendorLineError {
    /// A word is wrong.
    #[error(transparent)]
    Word(#[from] GoFlagError),
    /// A word is not UTF-8.
    #[error("word {word:?} is not valid UTF-8; write plain text")]
    Encoding {
        /// The word.
        word: String,
    },
    /// A value is wrong for a reason of its own.
    #[error("flag -{name}={value}: {remedy}")]
    Value {
        /// The flag.
        name: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        remedy: String,
    },
}

impl VendorRequest {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// Names the first flag that is unknown, malformed, out of range or forbidden beside another.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, VendorLineError> {
        let words: Vec<String> = words
            .into_iter()
            .map(|word| {
                word.into_string()
                    .map_err(|word| VendorLineError::Encoding {
                        word: word.to_string_lossy().into_owned(),
                    })
            })
            .collect::<Result<_, _>>()?;
        match parse(VENDOR_FLAGS, words)? {
            Words::Help => Ok(Self::Help),
            Words::Flags { given, rest } => {
                let line = Line { given };
                if line.is_on("version") {
                    return Ok(Self::Version);
                }
                line.check()?;
                Ok(Self::Run(line.translate(rest)))
            }
        }
    }
}

impl Line<'_> {
    fn translate(&self, rest: Option<String>) -> VendorLine {
        let mut line = VendorLine {
            default_log_file: if self.is_on("fdFlag") {
                EDGE_LOG_FILE
            } else {
                LOG_FILE
            }
            .to_owned(),
            ..VendorLine::default()
        };
        for flag in VENDOR_FLAGS {
            let Some(value) = self.given(flag.name) else {
                continue;
            };
            match flag.effect {
                Effect::Key(key) => self.set_key(&mut line, flag, key, value),
                Effect::None(consequence) if value != flag.default => {
                    line.notes
                        .push(format!("-{}={value}: {consequence}", flag.name));
                }
                Effect::Removed(successor) => {
                    line.notes.push(format!(
                        "-{} has no effect any more: {successor}",
                        flag.name
                    ));
                }
                Effect::None(_) | Effect::Shared(_) | Effect::Prints => {}
            }
        }
        if self.given("hotReset") == Some("1") {
            line.notes.push(
                "-hotReset=1: the vendor's plugin dropped this value (reset of running training) in \
                 26.1; newer releases refuse it, write -1"
                    .to_owned(),
            );
        }
        self.set_logs(&mut line);
        self.set_health(&mut line);
        if let Some(word) = &rest {
            line.notes.push(format!(
                "the words from {word:?} on are not read: flags end at the first word that is none"
            ));
        }
        line.stray = rest;
        line
    }

    fn set_key(&self, line: &mut VendorLine, flag: &VendorFlag, key: &'static str, value: &str) {
        // Without quotas nobody may share a chip.
        let quiet = flag.name == "shareDevCount" && !self.value("softShareDevConfigDir").is_empty();
        if !quiet {
            line.set(key, value, flag.name);
        }
    }

    fn set_logs(&self, line: &mut VendorLine) {
        let file = if self.is_on("fdFlag") {
            "edgeLogFile"
        } else {
            "logFile"
        };
        if let Some(path) = self.given(file) {
            line.set("log_file", path, file);
        }
        if self.given("logLevel").is_some() {
            let level = match self.number("logLevel") {
                -1 => "debug",
                0 => "info",
                1 => "warn",
                _ => "error",
            };
            line.set("log_level", level, "logLevel");
        }
    }

    fn set_health(&self, line: &mut VendorLine) {
        if self.given("enable-healthz").is_some() {
            let port = self.value("healthz-address");
            let address = if self.is_on("enable-healthz") {
                format!(":{port}")
            } else {
                String::new()
            };
            line.set("health_address", &address, "enable-healthz");
        } else if self.given("healthz-address").is_some() {
            line.notes.push(
                "-healthz-address: no health server, -enable-healthz is not given".to_owned(),
            );
        }
    }
}

impl VendorLine {
    fn set(&mut self, key: &'static str, value: &str, flag: &str) {
        self.settings.push(GivenSetting {
            key,
            value: value.to_owned(),
            flag: format!("flag -{flag}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<VendorRequest, VendorLineError> {
        VendorRequest::read(line.iter().map(OsString::from))
    }

    fn run(line: &[&str]) -> VendorLine {
        match read(line) {
            Ok(VendorRequest::Run(line)) => line,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    fn setting(line: &[&str], key: &str) -> Option<String> {
        let line = run(line);
        let set = line
            .settings
            .iter()
            .rev()
            .find(|setting| setting.key == key);
        set.map(|setting| setting.value.clone())
    }

    #[test]
    fn a_line_that_says_nothing_sets_and_notes_nothing() {
        let line = run(&[]);
        assert_eq!((line.settings.len(), line.notes.len()), (0, 0));
        assert_eq!(line.default_log_file, LOG_FILE);
    }

    #[test]
    fn the_last_value_counts_and_the_flag_is_the_origin() {
        let line = run(&["-deviceResetTimeout=60", "--deviceResetTimeout", "90"]);
        assert_eq!(
            line.settings,
            [GivenSetting {
                key: "device_wait_seconds",
                value: "90".to_owned(),
                flag: "flag -deviceResetTimeout".to_owned(),
            }]
        );
    }

    #[test]
    fn levels_have_our_names() {
        for (number, name) in [
            ("-1", "debug"),
            ("0", "info"),
            ("1", "warn"),
            ("2", "error"),
            ("3", "error"),
        ] {
            let given = format!("-logLevel={number}");
            assert_eq!(setting(&[&given], "log_level").as_deref(), Some(name));
        }
    }

    #[test]
    fn version_and_help_come_before_everything_else() {
        assert_eq!(read(&["-version"]), Ok(VendorRequest::Version));
        assert_eq!(
            read(&["-version", "-presetVirtualDevice=false"]),
            Ok(VendorRequest::Version)
        );
        assert_eq!(read(&["-h"]), Ok(VendorRequest::Help));
    }

    #[test]
    fn flags_of_all_releases_are_tolerated_with_one_note_each() {
        for given in [
            "-mode=ascend910",
            "--kubeConfig=/k",
            "-useAscendDocker=false",
            "-useLargeModel",
            "-cacheExpirePeriod=30",
        ] {
            let notes = run(&[given]).notes;
            assert_eq!(notes.len(), 1, "{given}: {notes:?}");
            assert!(notes[0].contains("no effect any more"), "{notes:?}");
        }
    }

    #[test]
    fn what_has_no_effect_yet_says_so_unless_it_is_the_default() {
        for (given, default, part) in [
            (
                "-volcanoType",
                "-volcanoType=false",
                "chosen by kubelet, not by Volcano",
            ),
            ("-hotReset=0", "-hotReset=-1", "no chip is reset"),
            ("-autoStowing=false", "-autoStowing", "hold_down_seconds"),
            ("-linkdownTimeout=5", "-linkdownTimeout=30", "no link state"),
            (
                "-dealWatchHandler",
                "-dealWatchHandler=0",
                "no pods are watched",
            ),
            (
                "-checkCachedPods=f",
                "-checkCachedPods=t",
                "no pods are cached",
            ),
            ("-enableSlowNode", "-enableSlowNode=false", "PERF_DUMP"),
            (
                "-thirdPartyScanDelay=5",
                "-thirdPartyScanDelay=300",
                "health_poll_ms",
            ),
            (
                "-getPodFromKubelet",
                "-getPodFromKubelet=F",
                "pod-resources",
            ),
            (
                "-listWatchPeriod=60",
                "-listWatchPeriod=5",
                "health_poll_ms",
            ),
        ] {
            let notes = run(&[given]).notes;
            assert_eq!(notes.len(), 1, "{given}: {notes:?}");
            assert!(notes[0].contains(part), "{notes:?}");
            assert!(run(&[default]).notes.is_empty(), "{default}");
        }
        assert_eq!(run(&["-hotReset=1"]).notes.len(), 2);
    }

    #[test]
    fn soft_slicing_without_quotas_lets_nobody_share() {
        let soft = [
            "-volcanoType",
            "-softShareDevConfigDir=/soft",
            "-shareDevCount=100",
        ];
        assert_eq!(setting(&soft, "share_count"), None);
        assert!(run(&soft).notes.concat().contains("offered whole"));
    }

    #[test]
    fn words_after_the_flags_are_pointed_at() {
        let notes = run(&["start", "-volcanoType"]).notes;
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("\"start\""), "{notes:?}");
    }

    #[test]
    fn fusion_director_logs_elsewhere() {
        assert_eq!(run(&["-fdFlag"]).default_log_file, EDGE_LOG_FILE);
    }
}
