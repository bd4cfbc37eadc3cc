//! Under which resources and ids a chip is offered, by family and mode.
//!
//! Pure. The ledger asks for the places of each chip; a chip that the mode does not fit has none and
//! says why. Ids of whole chips are `<base>-<phy>`, those of shares `<base>-<phy>-<slot>`; a base name
//! never ends like a number after a dash, so that both forms can be told apart. Source of the names:
//! the vendor's own plugin.

mod names;
mod places;
mod spread;

pub use names::{CustomNames, NameEntry, NameError};
pub use places::{ChipPlace, ChipRefused, Mode, ModeError, Offering, SHARES_MAX};
pub use spread::{FreeShare, spread};
