//! Whether the agent lives and does its duty, for a prober.

use super::time::BootTime;

/// What was found at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// When.
    pub at: BootTime,
    /// What only a restart of the agent could mend, one line each; empty when it lives.
    pub stuck: Vec<String>,
    /// What it cannot do or promise now, one line each; empty when it does its whole duty.
    pub shortcomings: Vec<String>,
}
