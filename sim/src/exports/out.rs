//! The caller's memory. Only C makes these values, so what the interface demands of C holds.

use std::ffi::{c_char, c_uint};
use std::ptr::NonNull;

use crate::abi::{EccInfo, LongEccInfo};
use crate::client;
use crate::wire::{Failure, ReturnCode};

/// Stands where an end mark is missing.
const NO_END: u8 = b'_';
/// Stands where nothing should be read.
const GARBAGE: u8 = 0xA5;

/// A pointer the caller passed for an answer; may be null.
#[repr(transparent)]
pub(super) struct Out<T>(*mut T);

/// A pointer that is not null.
pub(super) struct Place<T>(NonNull<T>);

impl<T> Out<T> {
    /// The place to write to.
    ///
    /// # Errors
    /// The caller passed null.
    pub(super) fn place(self) -> Result<Place<T>, Failure> {
        NonNull::new(self.0)
            .map(Place)
            .ok_or(Failure(ReturnCode::INVALID_PARAMETER))
    }
}

impl<T> Place<T> {
    /// Writes the answer.
    pub(super) fn write(&self, value: T) {
        // SAFETY: a `Place` comes from C only, which promises one aligned, writable `T` there for
        // as long as the call lasts; that it is not null was checked.
        unsafe { self.0.write(value) }
    }
}

impl<T: Copy> Place<T> {
    /// Reads what the caller put there.
    pub(super) fn read(&self) -> T {
        // SAFETY: as for `write`, and the interface demands that this argument be filled in.
        unsafe { self.0.read() }
    }

    /// Writes a list. The interface promises room for as many: by the length argument, which the
    /// caller of this function has compared, or by a fixed number in the contract.
    pub(super) fn write_list(&self, values: &[T]) {
        for (index, value) in values.iter().enumerate() {
            // SAFETY: C promises room for all of `values` in one array, so the address is inside.
            let slot = unsafe { self.0.add(index) };
            // SAFETY: as above, and C promises that the array is writable during the call.
            unsafe { slot.write(*value) };
        }
    }
}

impl Place<u8> {
    /// What the caller put at the start of a buffer of `room` bytes; `None` if there is no room.
    pub(super) fn read_word(&self, room: usize) -> Option<u32> {
        if room < size_of::<u32>() {
            return None;
        }
        let start = self.0.cast::<u32>();
        // SAFETY: the caller promises `room` bytes, which were compared with what is read, every
        // four bytes are a number, and the read asks for no alignment.
        Some(unsafe { start.read_unaligned() })
    }

    /// Writes a struct to a buffer of `room` bytes; false if there is no room.
    pub(super) fn write_struct<T: Copy>(&self, value: T, room: usize) -> bool {
        if room < size_of::<T>() {
            return false;
        }
        let start = self.0.cast::<T>();
        // SAFETY: the caller promises `room` writable bytes, which were compared with what is
        // written, and the write asks for no alignment.
        unsafe { start.write_unaligned(value) };
        true
    }
}

impl Place<c_char> {
    /// Writes a text with its end mark, cut to `capacity` bytes.
    pub(super) fn write_text(&self, text: &str, capacity: usize) {
        let room = capacity.saturating_sub(1);
        let mut bytes: Vec<c_char> = text.bytes().take(room).map(as_char).collect();
        bytes.push(0);
        self.write_list(&bytes);
    }
}

impl Place<EccInfo> {
    /// The same place, trusted to be as long as other driver builds demand.
    pub(super) fn longer(&self) -> Place<LongEccInfo> {
        Place(self.0.cast())
    }
}

/// The text in a field of fixed size. One that fills the field has no end mark, as in the
/// real library.
pub(super) fn field<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    fill(text, 0)
}

/// The name in a field of fixed size, behind which some driver builds set no end mark.
pub(super) fn name_field<const SIZE: usize>(name: &str) -> [u8; SIZE] {
    let unterminated = client::quirks().unterminated;
    fill(name, if unterminated { NO_END } else { 0 })
}

/// A reserved field: zeros, or what some driver builds leave there.
pub(super) fn reserved<const SIZE: usize>() -> [u8; SIZE] {
    [if client::quirks().garbage { GARBAGE } else { 0 }; SIZE]
}

/// A reserved field of words.
pub(super) fn reserved_words<const SIZE: usize>() -> [c_uint; SIZE] {
    std::array::from_fn(|_| c_uint::from_ne_bytes(reserved()))
}

fn fill<const SIZE: usize>(text: &str, rest: u8) -> [u8; SIZE] {
    let mut bytes = text.bytes();
    std::array::from_fn(|_| bytes.next().unwrap_or(rest))
}

/// The same for a field of C characters.
pub(super) fn char_field<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    field(text).map(as_char)
}

/// C characters are signed on one architecture and not on the other.
fn as_char(byte: u8) -> c_char {
    c_char::from_ne_bytes([byte])
}
