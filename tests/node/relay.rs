//! Stands between the agent and kubelet's pod-resources socket: counts, and falls silent on demand.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

    /// Connections so far; the agent dials for every List.
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

fn serve(listener: &UnixListener, back: &Path, state: &State) {
    let mut unanswered = Vec::new();
    for stream in listener.incoming() {
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        state.calls.fetch_add(1, Ordering::SeqCst);
        if state.silent.load(Ordering::SeqCst) {
            unanswered.push(stream);
            continue;
        }
        let Ok(kubelet) = UnixStream::connect(back) else {
            continue;
        };
        pass(&stream, &kubelet);
        pass(&kubelet, &stream);
    }
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
