//! Which chips belong together, and which set of them a container should get.
//!
//! Pure: imports `domain` only. The layouts are the vendor's published ones; they are constants per
//! family because most drivers do not answer topology questions. The drawback: a board wired
//! otherwise is grouped as its family is.

mod preferred;

pub use preferred::{Candidate, choose};
