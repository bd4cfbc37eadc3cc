//! Stands between the agent and kubelet's pod-resources socket: counts, and falls silent on demand.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const PREFACE_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 9;
const HEADERS_FRAME: u8 = 1;

#[derive(Default)]
struct State {
    calls: AtomicUsize,
    silent: AtomicBool,
    ended: AtomicBool,
}

/// The relay; dropped, it ends.
pub(crate) struct Relay {
    front: PathBuf,
    state: Arc<State>,
}

impl Relay {
    /// Serves `front` and passes everything on to `back`.
    pub(crate) fn start(front: &Path, back: &Path) -> Self {
        let listener = UnixListener::bind(front).expect("the relay's socket");
        let state = Arc::new(State::default());
        let (shared, back) = (Arc::clone(&state), back.to_owned());
        std::thread::spawn(move || serve(&listener, &back, &shared));
        Self {
            front: front.to_owned(),
            state,
        }
    }

    /// Lists so far: HTTP/2 requests, since the agent keeps its connection.
    pub(crate) fn calls(&self) -> usize {
        self.state.calls.load(Ordering::SeqCst)
    }

    /// Takes calls and answers nothing.
    pub(crate) fn silence(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // Wakes the thread up; a thread that is gone already needs no call.
        UnixStream::connect(&self.front).ok();
        fs::remove_file(&self.front).ok();
    }
}

fn serve(listener: &UnixListener, back: &Path, state: &Arc<State>) {
    let mut unanswered = Vec::new();
    for stream in listener.incoming() {
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if state.silent.load(Ordering::SeqCst) {
            unanswered.push(stream);
            continue;
        }
        let Ok(kubelet) = UnixStream::connect(back) else {
            continue;
        };
        pass_requests(&stream, &kubelet, Arc::clone(state));
        pass(&kubelet, &stream);
    }
}

/// Passes on what the agent sends and counts its requests; while silent, nothing comes through.
fn pass_requests(from: &UnixStream, to: &UnixStream, state: Arc<State>) {
    let mut from = from.try_clone().expect("a handle");
    let mut to = to.try_clone().expect("a handle");
    std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut at = PREFACE_BYTES;
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            seen.extend_from_slice(&chunk[..read]);
            while let Some([a, b, c, kind, ..]) = seen.get(at..at + FRAME_HEADER_BYTES) {
                if *kind == HEADERS_FRAME {
                    state.calls.fetch_add(1, Ordering::SeqCst);
                }
                let length = u32::from_be_bytes([0, *a, *b, *c]);
                at += FRAME_HEADER_BYTES + usize::try_from(length).expect("24 bits");
            }
            if state.silent.load(Ordering::SeqCst) {
                continue;
            }
            if to.write_all(&chunk[..read]).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Both).ok();
    });
}

fn pass(from: &UnixStream, to: &UnixStream) {
    let mut from = from.try_clone().expect("a handle");
    let mut to = to.try_clone().expect("a handle");
    std::thread::spawn(move || {
        // Either side may hang up at any time.
        io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}
