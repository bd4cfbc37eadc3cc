//! How this process is to misbehave, as the last answer said.

use std::sync::{PoisonError, RwLock};

use crate::wire::Quirks;

static NOTED: RwLock<Quirks> = RwLock::new(Quirks::NONE);

/// Keeps what an answer said.
pub(super) fn note(quirks: Quirks) {
    *NOTED.write().unwrap_or_else(PoisonError::into_inner) = quirks;
}

/// What the last answer said.
pub(crate) fn quirks() -> Quirks {
    *NOTED.read().unwrap_or_else(PoisonError::into_inner)
}
