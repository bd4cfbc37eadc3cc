//! Stored bytes, as a damaged disk may give them back. The codec is included as source, because only
//! the store may use it. The fuzzer's bytes are tried twice: as they are, and as the body of an
//! envelope whose checksum is right, which is what a fault of ours or a collision would look like.

#![no_main]

#[expect(dead_code, reason = "the fuzzer reads what the store also writes")]
#[path = "../../src/store/codec.rs"]
mod codec;
#[expect(dead_code, reason = "the rows are decoded and not looked into")]
#[path = "../../migrations/0001_initial.rs"]
mod schema_1;

use arbitrary::Arbitrary;
use codec::{Kind, seal, unseal};
use libfuzzer_sys::fuzz_target;
use schema_1::{ChipRow, HeldRow, HistoryRow, NameRecord, OutboxRow, SchemaRecord, SequenceRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;

const KEY: [u8; 8] = [7; 8];
const ENVELOPE_VERSION: u8 = 1;

#[derive(Arbitrary, Debug)]
struct Stored<'a> {
    table: u8,
    bytes: &'a [u8],
}

fuzz_target!(|stored: Stored<'_>| {
    match stored.table % 7 {
        0 => try_both::<SchemaRecord>(Kind::Meta, stored.bytes),
        1 => try_both::<SequenceRecord>(Kind::Meta, stored.bytes),
        2 => try_both::<ChipRow>(Kind::Chip, stored.bytes),
        3 => try_both::<HeldRow>(Kind::Allocation, stored.bytes),
        4 => try_both::<HistoryRow>(Kind::History, stored.bytes),
        5 => try_both::<NameRecord>(Kind::Name, stored.bytes),
        _ => try_both::<OutboxRow>(Kind::Outbox, stored.bytes),
    }
});

fn try_both<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    kind: Kind,
    bytes: &[u8],
) {
    let _damaged = unseal::<T>(kind, &KEY, bytes);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[ENVELOPE_VERSION, kind as u8]);
    hasher.update(&KEY);
    hasher.update(bytes);
    let mut sealed = vec![ENVELOPE_VERSION];
    sealed.extend_from_slice(&hasher.finalize().to_le_bytes());
    sealed.extend_from_slice(bytes);
    if let Ok(record) = unseal::<T>(kind, &KEY, &sealed) {
        let again = seal(kind, &KEY, &record).expect("what was read can be written");
        assert_eq!(
            unseal::<T>(kind, &KEY, &again).expect("and read again"),
            record
        );
    }
}
