//! Whether a chip may be offered: one tracker per chip that turns samples and events into transitions.
//!
//! Pure: imports `domain` only, time is an argument. A bad sign counts at once; a good one only after
//! a direct sample, and only when the chip stayed good for the hold-down. The drawback of one tracker
//! per chip is that a fault seen on many chips at the same moment is not recognised as one cause.

mod tracker;

pub use tracker::{ChipHealth, HealthPolicy, Transition};
