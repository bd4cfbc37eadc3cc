//! What was found, and how bad it is.

use serde::Serialize;

/// Number of the document's form; raised when a field changes its meaning or goes.
const REPORT_SCHEMA: u32 = 1;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The agent works, but not as well as it could, or doctor cannot see enough.
    Warn,
    /// The agent cannot do its duty.
    Fail,
}

impl Verdict {
    /// As it is printed.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad.
    pub verdict: Verdict,
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What to do; empty when nothing.
    pub remedy: String,
}

impl Finding {
    pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self::of(Verdict::Ok, what, found, "")
    }

    pub(super) fn warn(
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::of(Verdict::Warn, what, found, remedy)
    }

    pub(super) fn fail(
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::of(Verdict::Fail, what, found, remedy)
    }

    fn of(
        verdict: Verdict,
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict,
            what,
            found: found.into(),
            remedy: remedy.into(),
        }
    }
}

/// Everything that was looked at, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Form of this document.
    pub schema: u32,
    /// One after another.
    pub findings: Vec<Finding>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            schema: REPORT_SCHEMA,
            findings: Vec::new(),
        }
    }
}

impl Report {
    /// The worst verdict; `Ok` of an empty report.
    #[must_use]
    pub fn worst(&self) -> Verdict {
        let verdicts = self.findings.iter().map(|finding| finding.verdict);
        verdicts.max().unwrap_or(Verdict::Ok)
    }

    pub(super) fn take(&mut self, findings: Vec<Finding>) {
        self.findings.extend(findings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides() {
        let mut report = Report::default();
        assert_eq!(report.worst(), Verdict::Ok);
        report.take(vec![
            Finding::warn("a", "found", "do"),
            Finding::ok("b", "found"),
        ]);
        assert_eq!(report.worst(), Verdict::Warn);
        report.take(vec![Finding::fail("c", "found", "do")]);
        assert_eq!(report.worst(), Verdict::Fail);
    }
}
