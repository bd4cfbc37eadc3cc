//! The exported C functions. The only unsafe room: raw pointers end in `out`, and the functions
//! here see checked places to write to.
#![expect(
    unsafe_code,
    reason = "the C boundary: exported names, caller's pointers, its callback"
)]

mod device_info;
mod enumeration;
mod faults;
mod identity;
mod initialisation;
mod network;
#[cfg(not(old_driver))]
mod newer;
mod out;
mod reset;
mod sensors;
mod vdevice;

use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::client::{self, At};
use crate::wire::{Answer, ChipQuery, Failure, Query, ReturnCode};

/// Exports functions. Each body gets the exported name and yields what is to be returned.
macro_rules! export {
    ($(fn $name:ident($($arg:ident: $kind:ty),* $(,)?) = $body:expr;)+) => {$(
        // SAFETY: the name is one of the library's own and occurs once in the program.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $kind),*) -> std::ffi::c_int {
            let body = $body;
            $crate::exports::guard(move || body(stringify!($name)))
        }
    )+};
}
use export;

/// Runs a body without letting a panic cross into C.
fn guard(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    match outcome {
        Ok(Ok(())) => ReturnCode::OK.0,
        Ok(Err(Failure(code))) => code.0,
        Err(_) => ReturnCode::INNER_ERROR.0,
    }
}

fn ask(symbol: &'static str, at: At, query: ChipQuery) -> Result<Answer, Failure> {
    client::session().ask(symbol, at, Query::Chip(query))
}

/// For questions that need no chip, though some name one.
fn ask_node(symbol: &'static str, at: At, query: Query) -> Result<Answer, Failure> {
    client::session().ask(symbol, at, query)
}

const INNER_ERROR: Failure = Failure(ReturnCode::INNER_ERROR);

fn number(answer: &Answer) -> Result<i64, Failure> {
    if let Answer::Number(number) = *answer {
        Ok(number)
    } else {
        Err(INNER_ERROR)
    }
}

fn numbers<const COUNT: usize>(answer: Answer) -> Result<[i64; COUNT], Failure> {
    list(answer)?.try_into().map_err(|_| INNER_ERROR)
}

fn list(answer: Answer) -> Result<Vec<i64>, Failure> {
    if let Answer::Numbers(numbers) = answer {
        Ok(numbers)
    } else {
        Err(INNER_ERROR)
    }
}

fn text(answer: Answer) -> Result<String, Failure> {
    if let Answer::Text(text) = answer {
        Ok(text)
    } else {
        Err(INNER_ERROR)
    }
}

/// The low 32 bits, so that -1 becomes the sentinel 0xFFFFFFFF.
fn word(value: i64) -> c_uint {
    c_uint::try_from(value & i64::from(u32::MAX)).unwrap_or(c_uint::MAX)
}

/// The low 32 bits as a signed number.
fn int(value: i64) -> c_int {
    word(value).cast_signed()
}

/// A length the caller gave in a signed number; zero and less mean no room at all.
fn capacity(length: c_int) -> Result<usize, Failure> {
    usize::try_from(length)
        .ok()
        .filter(|length| *length > 0)
        .ok_or(Failure(ReturnCode::INVALID_PARAMETER))
}

/// A place or text of less than the least length the function demands.
fn at_least(length: usize, least: usize) -> Result<(), Failure> {
    if length < least {
        return Err(Failure(ReturnCode::INVALID_PARAMETER));
    }
    Ok(())
}

/// Runs at unload, so that the daemon sees this process leave.
extern "C" fn at_unload() {
    guard(|| {
        client::close();
        Ok(())
    });
}

// SAFETY: the section holds pointers to functions without arguments, which this is.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_UNLOAD: extern "C" fn() = at_unload;
