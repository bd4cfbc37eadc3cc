//! The vendor's library: search and safety checks, memory layouts, symbols, safe calls.
//!
//! The only room with `unsafe`; may import `domain` only. Used inside the driver host alone, because
//! the library forks shells, freezes its id tables at init, can block for ever and can never be
//! unloaded. Invariants: raw pointers do not leave `call`, `symbols` and `subscription`; a library
//! once loaded stays loaded for the life of the process; a missing symbol disables one ability and
//! is reported by name. The drawback of declaring layouts by hand is that nothing but the size and
//! offset assertions in `layout` guards against a slip.

#[expect(unsafe_code, reason = "calls into the vendor's C library")]
pub mod call;
pub mod code;
mod layout;
pub mod node;
mod numa;
pub mod search;
#[expect(
    unsafe_code,
    reason = "the vendor's library calls back with a raw pointer"
)]
pub mod subscription;
#[expect(unsafe_code, reason = "dlopen and dlsym")]
pub mod symbols;
