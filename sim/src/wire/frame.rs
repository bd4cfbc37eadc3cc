//! Lines of JSON with a bound on their length.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde::Serialize;

/// Longest request line the daemon reads.
pub const MAX_REQUEST_BYTES: u64 = 64 * 1024;
/// Longest reply line a client reads: a `status` of 64 chips with 128 codes each stays below it.
pub const MAX_REPLY_BYTES: u64 = 1024 * 1024;

/// Why a line could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The line is longer than the reader accepts.
    #[error("a line exceeds {limit} bytes; the connection is given up")]
    TooLong {
        /// The bound in bytes.
        limit: u64,
    },
    /// The socket failed or ran into its timeout.
    #[error("socket read or write failed")]
    Socket(#[from] io::Error),
    /// The value could not be written as JSON, or the line is not the JSON expected.
    #[error("line is not the expected JSON")]
    Json(#[from] serde_json::Error),
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: BufReader<R>,
    limit: u64,
}

impl<R: Read> LineReader<R> {
    /// Wraps `inner`; a line longer than `limit` is an error.
    pub fn new(inner: R, limit: u64) -> Self {
        Self {
            inner: BufReader::with_capacity(4096, inner),
            limit,
        }
    }

    /// The reader below, to change its timeout.
    pub fn transport(&self) -> &R {
        self.inner.get_ref()
    }

    /// The next line without its newline.
    ///
    /// # Errors
    /// The peer closed, the line is too long, or the socket failed.
    pub fn next_line(&mut self) -> Result<Vec<u8>, FrameError> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.inner).take(self.limit);
        bounded.read_until(b'\n', &mut line)?;
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(line);
        }
        if u64::try_from(line.len()).unwrap_or(u64::MAX) >= self.limit {
            return Err(FrameError::TooLong { limit: self.limit });
        }
        Err(FrameError::Closed)
    }
}

/// Sends `value` as one line.
///
/// # Errors
/// The value cannot be written as JSON or the socket failed.
pub fn write_line<W: Write, T: Serialize>(mut out: W, value: &T) -> Result<(), FrameError> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_up_to_the_bound() {
        let mut reader = LineReader::new(&b"one\ntwo\n"[..], 8);
        assert_eq!(reader.next_line().unwrap(), b"one");
        assert_eq!(reader.next_line().unwrap(), b"two");
        assert!(matches!(reader.next_line(), Err(FrameError::Closed)));
    }

    #[test]
    fn refuses_a_line_beyond_the_bound() {
        let mut reader = LineReader::new(&b"0123456789\n"[..], 8);
        assert!(matches!(
            reader.next_line(),
            Err(FrameError::TooLong { limit: 8 })
        ));
    }

    #[test]
    fn half_a_line_is_a_closed_peer() {
        let mut reader = LineReader::new(&b"half"[..], 8);
        assert!(matches!(reader.next_line(), Err(FrameError::Closed)));
    }
}
