//! The form of every stored value: version byte, checksum, body. The only place that knows bincode.
//!
//! The checksum covers table and key as well, so that a record found under another key is damage and
//! not somebody else's allocation. A body must be used up to its last byte.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of the envelope, not of the records in it.
const ENVELOPE_VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + size_of::<u32>();
/// No record comes near it; it bounds what a damaged length can make a decoder allocate.
const RECORD_MAX_BYTES: usize = 256 * 1024;

const CONFIG: Configuration<LittleEndian, Varint, Limit<RECORD_MAX_BYTES>> =
    bincode::config::standard().with_limit::<RECORD_MAX_BYTES>();

/// The table a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Meta = 1,
    Chip,
    Allocation,
    History,
    Name,
    Outbox,
}

/// Why stored bytes are not a record, or a record cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodecError {
    #[error("record of {bytes} bytes is shorter than its head")]
    TooShort { bytes: usize },
    #[error("record envelope {found} is not version {ENVELOPE_VERSION}")]
    Version { found: u8 },
    #[error("record checksum {stored:08x} is not {computed:08x}")]
    Checksum { stored: u32, computed: u32 },
    #[error("record body cannot be read")]
    Body(#[from] bincode::error::DecodeError),
    #[error("record body has {surplus} bytes too many")]
    Surplus { surplus: usize },
    #[error("record holds an impossible value: {what}")]
    Value { what: String },
    #[error("record cannot be written")]
    Encode(#[from] bincode::error::EncodeError),
    #[error("record of {bytes} bytes is larger than {RECORD_MAX_BYTES}")]
    TooLarge { bytes: usize },
}

/// Makes the stored form of a record.
pub(super) fn seal(kind: Kind, key: &[u8], record: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    let body = bincode::serde::encode_to_vec(record, CONFIG)?;
    if body.len() > RECORD_MAX_BYTES {
        return Err(CodecError::TooLarge { bytes: body.len() });
    }
    let mut sealed = Vec::with_capacity(HEAD_BYTES + body.len());
    sealed.push(ENVELOPE_VERSION);
    sealed.extend_from_slice(&checksum(kind, key, &body).to_le_bytes());
    sealed.extend_from_slice(&body);
    Ok(sealed)
}

/// Reads the stored form of a record.
pub(super) fn unseal<T: DeserializeOwned>(
    kind: Kind,
    key: &[u8],
    sealed: &[u8],
) -> Result<T, CodecError> {
    let too_short = || CodecError::TooShort {
        bytes: sealed.len(),
    };
    let (version, rest) = sealed.split_first().ok_or_else(too_short)?;
    if *version != ENVELOPE_VERSION {
        return Err(CodecError::Version { found: *version });
    }
    let (stored, body) = rest.split_first_chunk().ok_or_else(too_short)?;
    let stored = u32::from_le_bytes(*stored);
    let computed = checksum(kind, key, body);
    if stored != computed {
        return Err(CodecError::Checksum { stored, computed });
    }
    let (record, used) = bincode::serde::decode_from_slice(body, CONFIG)?;
    match body.len().saturating_sub(used) {
        0 => Ok(record),
        surplus => Err(CodecError::Surplus { surplus }),
    }
}

fn checksum(kind: Kind, key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[ENVELOPE_VERSION, kind as u8]);
    hasher.update(key);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::schema_1::{OutboxRow, SequenceRecord};

    fn row() -> impl Strategy<Value = OutboxRow> {
        (
            any::<i64>(),
            any::<u32>(),
            ".{0,40}",
            prop::collection::vec(any::<u8>(), 0..80),
        )
            .prop_map(|(created_utc_ns, tries, target, patch)| OutboxRow {
                created_utc_ns,
                tries,
                target,
                patch,
            })
    }

    proptest! {
        #[test]
        fn reads_back_what_it_wrote(row in row(), key in any::<u64>()) {
            let key = key.to_be_bytes();
            let sealed = seal(Kind::Outbox, &key, &row).unwrap();
            prop_assert_eq!(unseal::<OutboxRow>(Kind::Outbox, &key, &sealed).unwrap(), row);
        }

        #[test]
        fn detects_every_flipped_byte(row in row(), mask in 1_u8..) {
            let sealed = seal(Kind::Outbox, &[7], &row).unwrap();
            for place in 0..sealed.len() {
                let mut flipped = sealed.clone();
                flipped[place] ^= mask;
                prop_assert!(unseal::<OutboxRow>(Kind::Outbox, &[7], &flipped).is_err(), "{}", place);
            }
        }

        #[test]
        fn detects_every_cut_and_every_surplus(row in row(), surplus in any::<u8>()) {
            let sealed = seal(Kind::Outbox, &[7], &row).unwrap();
            for length in 0..sealed.len() {
                prop_assert!(unseal::<OutboxRow>(Kind::Outbox, &[7], &sealed[..length]).is_err());
            }
            let mut longer = sealed;
            longer.push(surplus);
            prop_assert!(unseal::<OutboxRow>(Kind::Outbox, &[7], &longer).is_err());
        }

        #[test]
        fn never_panics_on_foreign_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(unseal::<OutboxRow>(Kind::Outbox, &[7], &bytes).is_err());
        }
    }

    #[test]
    fn refuses_a_record_under_another_key_or_of_another_table() {
        let sealed = seal(Kind::Meta, &[2], &SequenceRecord { last: 7 }).unwrap();
        assert!(unseal::<SequenceRecord>(Kind::Meta, &[3], &sealed).is_err());
        assert!(unseal::<SequenceRecord>(Kind::Chip, &[2], &sealed).is_err());
    }

    #[test]
    fn refuses_a_body_that_is_longer_than_its_record() {
        let mut body = bincode::serde::encode_to_vec(SequenceRecord { last: 7 }, CONFIG).unwrap();
        body.push(0);
        let mut sealed = vec![ENVELOPE_VERSION];
        sealed.extend_from_slice(&checksum(Kind::Meta, &[2], &body).to_le_bytes());
        sealed.extend_from_slice(&body);
        let refused = unseal::<SequenceRecord>(Kind::Meta, &[2], &sealed);
        assert!(matches!(refused, Err(CodecError::Surplus { surplus: 1 })));
    }

    #[test]
    fn refuses_a_record_above_the_limit() {
        let huge = vec![1_u8; RECORD_MAX_BYTES + 1];
        assert!(seal(Kind::Outbox, &[], &huge).is_err());
    }
}
