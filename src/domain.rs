//! The field's nouns: ids, chip families, chips and their health, allocations, history.
//!
//! Pure: no clock, no I/O, no randomness, no logging; time and ids are arguments. May import nothing
//! of this crate. Text forms (parsing and printing) live beside the type they belong to. The drawback
//! of one vocabulary room is that nearly every change of a record touches it.

pub mod allocation;
pub mod causes;
pub mod chip;
pub mod driver_code;
pub mod family;
pub mod fault;
pub mod history;
pub mod ids;
pub mod kubelet_view;
pub mod offer;
pub mod product;
pub mod status;
pub mod time;
pub mod vitals;
