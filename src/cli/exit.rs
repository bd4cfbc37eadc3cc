//! The one place where an outcome becomes an exit code.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::domain::causes::with_causes;

pub(super) const PROBLEM: u8 = 1;
pub(super) const USAGE: u8 = 2;

/// How a command ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    /// A problem was found; the text is already with the user.
    Found,
    /// It could not be done.
    Failed(String),
    /// It was asked for wrongly.
    Usage(String),
}

impl Outcome {
    pub(super) fn failed(error: &dyn Error) -> Self {
        Self::Failed(with_causes(error))
    }

    /// What is printed is printed, and a problem was found.
    pub(super) fn found_if(self, problem: bool) -> Self {
        match self {
            Self::Done if problem => Self::Found,
            Self::Done | Self::Found | Self::Failed(_) | Self::Usage(_) => self,
        }
    }

    pub(super) fn usage(error: &dyn Error) -> Self {
        Self::Usage(with_causes(error))
    }
}

pub(super) fn code(outcome: &Outcome) -> ExitCode {
    let (number, text) = match outcome {
        Outcome::Done => return ExitCode::SUCCESS,
        Outcome::Found => return ExitCode::from(PROBLEM),
        Outcome::Failed(text) => (PROBLEM, text),
        Outcome::Usage(text) => (USAGE, text),
    };
    // Nothing is left to be done when even this cannot be written.
    let _ = writeln!(io::stderr(), "ascend-agent: {text}");
    ExitCode::from(number)
}
