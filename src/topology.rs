//! Which chips belong together, and which set of them a container should get.
//!
//! Pure: imports `domain` only. The layouts are the vendor's published ones; they are constants per
//! product because most drivers do not answer topology questions. The drawback: a board wired
//! otherwise is grouped as its product is. `docs/topology.md` has the rules as a table.

mod boxes;
mod groups;
mod pairs;
mod preferred;
mod rings;

pub use preferred::{Candidate, choose};
