//! Connections to the daemon, kept for reuse so that calls of several threads run side by side.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};

use super::quirks;
use crate::wire::{
    Answer, Call, CallReply, Failure, FrameError, LineReader, MAX_REPLY_BYTES, ReturnCode,
    write_line,
};

/// Longest wait for a daemon that does not hold the answer back.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Connections kept when nobody uses them.
const MAX_IDLE: usize = 4;

/// Why a call has no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The hardware refused.
    #[error(transparent)]
    Refused(#[from] Failure),
    /// The daemon cannot be reached or does not answer in time.
    #[error("the daemon cannot be reached")]
    Unreachable(#[from] FrameError),
}

/// The way to the daemon.
#[derive(Debug)]
pub(super) struct Link {
    socket: PathBuf,
    idle: Mutex<Vec<Channel>>,
}

impl Link {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self {
            socket,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Asks and waits for the answer. A connection kept from before a restart of the daemon is
    /// replaced once; nothing is lost, since the old daemon is gone with what it had received.
    pub(super) fn call(&self, call: &Call) -> Result<Answer, CallError> {
        let kept = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(channel) = kept {
            match self.finish(channel, call) {
                Err(CallError::Unreachable(error)) if is_stale(&error) => self.drop_idle(),
                outcome => return outcome,
            }
        }
        self.finish(self.open()?, call)
    }

    /// A connection of the caller's own.
    pub(super) fn open(&self) -> Result<Channel, FrameError> {
        Channel::open(&self.socket)
    }

    fn finish(&self, mut channel: Channel, call: &Call) -> Result<Answer, CallError> {
        let outcome = channel.ask(call);
        if !matches!(outcome, Err(CallError::Unreachable(_))) {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE {
                idle.push(channel);
            }
        }
        outcome
    }

    fn drop_idle(&self) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Channel {
    lines: LineReader<UnixStream>,
}

impl Channel {
    /// The timeout is set before connecting, because a full backlog blocks.
    fn open(path: &Path) -> Result<Self, FrameError> {
        let fail = |error: rustix::io::Errno| FrameError::Socket(error.into());
        let address = SocketAddrUnix::new(path).map_err(fail)?;
        let flags = SocketFlags::CLOEXEC;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(fail)?;
        set_socket_timeout(&socket, Timeout::Send, Some(TIMEOUT)).map_err(fail)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT)).map_err(fail)?;
        connect(&socket, &address).map_err(fail)?;
        Ok(Self {
            lines: LineReader::new(UnixStream::from(socket), MAX_REPLY_BYTES),
        })
    }

    /// Asks and waits for the answer.
    pub(super) fn ask(&mut self, call: &Call) -> Result<Answer, CallError> {
        write_line(
            Quiet(self.lines.transport()),
            &serde_json::json!({ "call": call }),
        )?;
        loop {
            match self.next()? {
                CallReply::Hold => self.wait_without_limit()?,
                CallReply::Event(_) => {}
                CallReply::Done {
                    code,
                    answer,
                    quirks,
                } => {
                    quirks::note(quirks);
                    self.wait_with_limit()?;
                    if code == ReturnCode::OK {
                        return Ok(answer.unwrap_or(Answer::Nothing));
                    }
                    return Err(Failure(code).into());
                }
            }
        }
    }

    /// The next line of the daemon.
    pub(super) fn next(&mut self) -> Result<CallReply, FrameError> {
        Ok(serde_json::from_slice(&self.lines.next_line()?)?)
    }

    /// Lets reads wait for ever.
    pub(super) fn wait_without_limit(&self) -> Result<(), FrameError> {
        Ok(self.lines.transport().set_read_timeout(None)?)
    }

    fn wait_with_limit(&self) -> Result<(), FrameError> {
        Ok(self.lines.transport().set_read_timeout(Some(TIMEOUT))?)
    }
}

/// Writes without a signal when the daemon is gone: a C program that loaded the library would die
/// of it.
struct Quiet<'a>(&'a UnixStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_stale(error: &FrameError) -> bool {
    match error {
        FrameError::Closed => true,
        FrameError::Socket(error) => matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        ),
        FrameError::TooLong { .. } | FrameError::Json(_) => false,
    }
}
