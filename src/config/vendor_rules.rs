//! What the table of the vendor's flags cannot say: paths, and which flags go together.

use super::vendor_flags::{VENDOR_FLAGS, VendorFlag};
use super::vendor_line::VendorLineError;

/// Exactly so many shares per chip belong to soft slicing.
const SOFT_SHARES: i64 = 100;

/// The flags of one line.
pub(super) struct Line<'a> {
    pub(super) given: Vec<(&'a VendorFlag, String)>,
}

impl Line<'_> {
    /// The last value given.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        debug_assert!(
            VENDOR_FLAGS.iter().any(|flag| flag.name == name),
            "{name} is not in the table"
        );
        let mut values = self.given.iter().rev();
        values
            .find(|(flag, _)| flag.name == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn value(&self, name: &str) -> &str {
        let default = VENDOR_FLAGS.iter().find(|flag| flag.name == name);
        self.given(name)
            .unwrap_or(default.map_or("", |flag| flag.default))
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name) == "true"
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        self.value(name).parse().unwrap_or_default()
    }

    fn refuse(&self, name: &'static str, remedy: impl Into<String>) -> VendorLineError {
        let value = self.value(name).chars().take(256).collect();
        VendorLineError::Value {
            name,
            value,
            remedy: remedy.into(),
        }
    }

    /// What the table cannot say: paths, and which flags go together.
    pub(super) fn check(&self) -> Result<(), VendorLineError> {
        for name in [
            "logFile",
            "edgeLogFile",
            "tls-cert-file",
            "tls-private-key-file",
        ] {
            if self
                .given(name)
                .is_some_and(|path| !path.is_empty() && !path.starts_with('/'))
            {
                return Err(self.refuse(name, "must be an absolute path, beginning with /"));
            }
        }
        let (volcano, shares) = (self.is_on("volcanoType"), self.number("shareDevCount"));
        let soft = !self.value("softShareDevConfigDir").is_empty();
        if soft {
            let name = "softShareDevConfigDir";
            if !self.value(name).starts_with('/') {
                return Err(self.refuse(name, "must be an absolute path, beginning with /"));
            }
            if !volcano {
                return Err(self.refuse(name, "needs Volcano; add -volcanoType=true or remove it"));
            }
            if shares != SOFT_SHARES {
                let said = format!(
                    "must be exactly {SOFT_SHARES} beside -softShareDevConfigDir; set it so or \
                     remove -softShareDevConfigDir"
                );
                return Err(self.refuse("shareDevCount", said));
            }
        }
        if !self.is_on("presetVirtualDevice") {
            let name = "presetVirtualDevice";
            if !volcano {
                return Err(self.refuse(name, "needs Volcano; add -volcanoType=true or remove it"));
            }
            if shares != 1 {
                return Err(self.refuse(
                    name,
                    format!("excludes sharing; remove it or -shareDevCount={shares}"),
                ));
            }
        }
        if self.is_on("use310PMixedInsert") {
            let name = "use310PMixedInsert";
            if volcano {
                return Err(self.refuse(name, "excludes Volcano; remove it or -volcanoType"));
            }
            if shares != 1 {
                return Err(self.refuse(
                    name,
                    format!("excludes sharing; remove it or -shareDevCount={shares}"),
                ));
            }
        }
        let (cert, key) = ("tls-cert-file", "tls-private-key-file");
        match (self.value(cert).is_empty(), self.value(key).is_empty()) {
            (false, true) => Err(self.refuse(cert, format!("needs its key; add -{key}=FILE"))),
            (true, false) => {
                Err(self.refuse(key, format!("needs its certificate; add -{cert}=FILE")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::vendor_line::VendorRequest;

    #[test]
    fn forbidden_values_and_combinations_name_flag_value_and_remedy() {
        for (line, parts) in [
            (
                &["-presetVirtualDevice=false"][..],
                &["-presetVirtualDevice=false", "-volcanoType=true"][..],
            ),
            (
                &[
                    "-presetVirtualDevice=false",
                    "-volcanoType",
                    "-shareDevCount=2",
                ],
                &["-presetVirtualDevice=false", "-shareDevCount=2"],
            ),
            (
                &["-use310PMixedInsert", "-volcanoType"],
                &["-use310PMixedInsert=true", "-volcanoType"],
            ),
            (
                &["-use310PMixedInsert", "-shareDevCount=2"],
                &["-use310PMixedInsert=true", "-shareDevCount=2"],
            ),
            (
                &["-softShareDevConfigDir=/a", "-shareDevCount=100"],
                &["-softShareDevConfigDir=/a", "-volcanoType"],
            ),
            (
                &["-softShareDevConfigDir=/a", "-volcanoType"],
                &["-shareDevCount=1", "exactly 100"],
            ),
            (
                &[
                    "-softShareDevConfigDir=a",
                    "-volcanoType",
                    "-shareDevCount=100",
                ],
                &["-softShareDevConfigDir=a", "absolute"],
            ),
            (
                &["-shareDevCount=0"],
                &["-shareDevCount=0", "from 1 to 100"],
            ),
            (&["-hotReset=3"], &["-hotReset=3", "from -1 to 2"]),
            (
                &["-listWatchPeriod=2"],
                &["-listWatchPeriod=2", "from 3 to 1800"],
            ),
            (
                &["-healthz-address=80"],
                &["-healthz-address=80", "from 1025 to 65535"],
            ),
            (&["-healthz-address=:8080"], &["-healthz-address=:8080"]),
            (
                &["-thirdPartyScanDelay=-1"],
                &["-thirdPartyScanDelay=-1", "at least 0"],
            ),
            (
                &["-tls-cert-file=/c"],
                &["-tls-cert-file=/c", "-tls-private-key-file"],
            ),
            (
                &["-tls-private-key-file=/k"],
                &["-tls-private-key-file=/k", "-tls-cert-file"],
            ),
            (&["-logFile=x.log"], &["-logFile=x.log", "absolute"]),
            (&["-logLevel=4"], &["-logLevel=4", "from -1 to 3"]),
            (&["-maxAge=6"], &["-maxAge=6", "from 7 to 700"]),
            (&["-maxBackups=181"], &["-maxBackups=181", "from 1 to 180"]),
            (
                &["-linkdownTimeout=31"],
                &["-linkdownTimeout=31", "from 1 to 30"],
            ),
            (
                &["-deviceResetTimeout=9"],
                &["-deviceResetTimeout=9", "from 10 to 600"],
            ),
            (&["-volcano"], &["-volcano", "-volcanoType"]),
        ] {
            let said = VendorRequest::read(line.iter().map(OsString::from))
                .unwrap_err()
                .to_string();
            for part in parts {
                assert!(
                    said.contains(part),
                    "{line:?}: {part:?} is missing in {said}"
                );
            }
        }
    }
}
