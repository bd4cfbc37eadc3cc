//! The child's side.
