//! What travels between agent and driver host: frames of a four-byte little-endian length and a JSON
//! body.
//!
//! Invariant: a frame longer than [`FRAME_MAX_BYTES`] ends the connection, so neither side can make
//! the other grow.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::chip::{ChipSample, DiePolicy, Inventory};
use crate::domain::fault::FaultEvent;
use crate::domain::ids::{DieId, LogicId};

/// A full inventory of 64 chips is below 64 KiB.
pub(super) const FRAME_MAX_BYTES: usize = 1 << 20;

/// From the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Read the whole node.
    Inventory { id: u64 },
    /// Read every chip named, each within the deadline.
    Sample {
        id: u64,
        with_processes: bool,
        deadline_ms: u64,
        chips: Vec<ChipKey>,
    },
    /// Set the multi-die policy and read it back.
    SetDiePolicy { id: u64, policy: DiePolicy },
    /// End.
    Close,
}

/// The chip meant, and the number by which the asker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChipKey {
    pub(super) die: DieId,
    pub(super) logic: LogicId,
}

/// From the driver host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// First frame of every host.
    Hello { pid: u32 },
    /// The host cannot do its work and ends.
    Failed(HostFailure),
    /// Answer to [`Request::Inventory`].
    Inventory {
        id: u64,
        result: Result<Inventory, HostFailure>,
    },
    /// Answer to [`Request::Sample`].
    Samples {
        id: u64,
        samples: Vec<ChipSample>,
        stuck: Stuck,
    },
    /// Answer to [`Request::SetDiePolicy`]; the error is for people.
    DiePolicySet { id: u64, result: Result<(), String> },
    /// Unasked: a fault event.
    Event(FaultEvent),
    /// Unasked: events were lost.
    EventsDropped(u64),
    /// Unasked: something an operator should read.
    Note(String),
    /// Last frame of an orderly end.
    Closed,
}

/// Threads whose call has overrun its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stuck {
    /// How many.
    pub(super) threads: usize,
    /// How long the longest is overdue.
    pub(super) longest_ms: u64,
    /// More than the host tolerates.
    pub(super) over_bound: bool,
}

/// Why the host has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(super) enum HostFailure {
    /// No library, an unsafe one, or one that cannot be loaded.
    #[error("{0}")]
    Library(String),
    /// The library's initialisation failed.
    #[error("{0}")]
    Init(String),
    /// The host itself: its lock, its threads.
    #[error("{0}")]
    Host(String),
    /// A call for the whole node failed.
    #[error("{text}")]
    Call {
        symbol: String,
        code: i32,
        text: String,
    },
}

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of {bytes} bytes is longer than the limit of {FRAME_MAX_BYTES}")]
    TooLong { bytes: usize },
    #[error("malformed frame")]
    Malformed(#[from] serde_json::Error),
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

/// Writes one frame with a single write.
pub(super) fn write_frame<T: Serialize>(
    writer: &mut impl Write,
    message: &T,
) -> Result<(), FrameError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let bytes = frame.len().saturating_sub(4);
    let length = u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= FRAME_MAX_BYTES);
    let length = length.ok_or(FrameError::TooLong { bytes })?;
    for (place, byte) in frame.iter_mut().zip(length.to_le_bytes()) {
        *place = byte;
    }
    Ok(writer.write_all(&frame)?)
}

/// Reads one frame; `None` when the other side closed between frames.
pub(super) fn read_frame<T: DeserializeOwned>(
    reader: &mut impl Read,
) -> Result<Option<T>, FrameError> {
    let mut length = [0; 4];
    let first = loop {
        match reader.read(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    if let Some(rest) = length.get_mut(first..) {
        reader.read_exact(rest)?;
    }
    let bytes = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if bytes > FRAME_MAX_BYTES {
        return Err(FrameError::TooLong { bytes });
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::chip::HealthReading;

    fn samples() -> Report {
        Report::Samples {
            id: 7,
            samples: vec![ChipSample {
                logic: LogicId(3),
                health: HealthReading::NoAnswer,
                codes: Vec::new(),
                processes: Some(vec![1, 2]),
            }],
            stuck: Stuck {
                threads: 1,
                longest_ms: 5,
                over_bound: false,
            },
        }
    }

    #[test]
    fn frames_read_back_in_order_and_then_end() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &Report::Hello { pid: 9 }).unwrap();
        write_frame(&mut bytes, &samples()).unwrap();
        let mut reader = bytes.as_slice();
        assert_eq!(
            read_frame(&mut reader).unwrap(),
            Some(Report::Hello { pid: 9 })
        );
        assert_eq!(read_frame(&mut reader).unwrap(), Some(samples()));
        assert_eq!(read_frame::<Report>(&mut reader).unwrap(), None);
    }

    #[test]
    fn a_frame_cut_anywhere_is_an_error_and_not_an_end() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &samples()).unwrap();
        for end in 1..bytes.len() {
            assert!(
                read_frame::<Report>(&mut &bytes[..end]).is_err(),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn an_oversized_frame_is_refused_by_reader_and_writer() {
        let length = u32::try_from(FRAME_MAX_BYTES + 1).unwrap().to_le_bytes();
        let read = read_frame::<Report>(&mut length.as_slice());
        assert!(matches!(read, Err(FrameError::TooLong { .. })));
        let note = Report::Note("x".repeat(FRAME_MAX_BYTES));
        let written = write_frame(&mut Vec::new(), &note);
        assert!(matches!(written, Err(FrameError::TooLong { .. })));
    }

    #[test]
    fn garbage_is_an_error() {
        let frame = [2, 0, 0, 0, b'{', b'x'];
        let read = read_frame::<Request>(&mut frame.as_slice());
        assert!(matches!(read, Err(FrameError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = bytes.as_slice();
            while let Ok(Some(_)) = read_frame::<Report>(&mut reader) {}
            let mut framed = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
            framed.extend(&bytes);
            let _report = read_frame::<Report>(&mut framed.as_slice());
        }
    }
}
