//! The topology room from outside.

#[cfg(test)]
#[path = "topology/preferred.rs"]
mod preferred;
