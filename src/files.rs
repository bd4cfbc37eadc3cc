//! Files that container runtimes read.
//!
//! A reader sees the old file or the new one, never a part: each is written beside its place, synced
//! and renamed. A disk or folder that gives no answer costs a deadline, never the caller.

mod replace;
mod spec_file;

pub use spec_file::{FileError, SpecFile};
