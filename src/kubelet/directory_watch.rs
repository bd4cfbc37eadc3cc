//! Watches kubelet's socket directory: was kubelet's socket replaced, was something removed, did
//! kubelet write its checkpoint. File events only make it fast; it looks at the directory at a slow
//! pace too, so a lost event, an overflow or a kernel without inotify costs a second and no more.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use inotify::{EventMask, EventOwned, EventStream, Inotify, WatchMask};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::snapshot::StatusBoard;
use super::socket_dir::{FileIdentity, SocketDir, SocketDirError};
use crate::domain::causes::with_causes;

/// Events of one burst are looked at together; a socket that is created twice counts once.
const DEBOUNCE: Duration = Duration::from_millis(20);

const EVENT_BUFFER_BYTES: usize = 4096;

/// What the directory looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryView {
    /// Kubelet's socket, when there is one that may be trusted.
    pub(super) kubelet: Option<KubeletSocket>,
    /// Grows with every look: whoever owns a socket here looks for it now.
    pub(super) looks: u64,
}

/// One life of kubelet's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KubeletSocket {
    identity: FileIdentity,
    /// Creations seen: a socket made anew within one clock tick can repeat the whole identity.
    creations: u64,
}

/// What to watch and whom to tell.
#[derive(Clone)]
pub(super) struct DirectoryWatch<F> {
    pub(super) dir: SocketDir,
    pub(super) kubelet_socket: PathBuf,
    pub(super) checkpoint: PathBuf,
    pub(super) checkpoint_changed: F,
    pub(super) pace: Duration,
    pub(super) view: Arc<watch::Sender<DirectoryView>>,
    pub(super) board: StatusBoard,
}

type Events = EventStream<[u8; EVENT_BUFFER_BYTES]>;

#[derive(Default)]
struct Seen {
    creations: u64,
    checkpoint: Option<FileIdentity>,
    problem: Option<String>,
    /// Whether kubelet's socket was there at the last look.
    kubelet: Option<bool>,
}

impl<F: Fn()> DirectoryWatch<F> {
    /// Runs until cancelled.
    pub(super) async fn run(self, cancel: CancellationToken) {
        let mut seen = Seen {
            checkpoint: FileIdentity::read(&self.checkpoint).ok(),
            ..Seen::default()
        };
        let mut events: Option<(Events, DirectoryPlace)> = None;
        loop {
            let current = self.dir_identity();
            if events.as_ref().map(|(_, armed_on)| *armed_on) != current {
                events = current.and_then(|identity| Some((self.arm()?, identity)));
            }
            self.look(&mut seen);
            let stream = events.as_mut().map(|(stream, _)| stream);
            let first = tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(self.pace) => continue,
                first = next_event(stream) => first,
            };
            if !self.take_burst(&mut events, first, &mut seen).await {
                debug!(directory = %self.dir.path().display(), "directory watch is set up anew");
                events = None;
            }
        }
    }

    /// Counts what one burst says; false when the watch itself is gone.
    async fn take_burst(
        &self,
        events: &mut Option<(Events, DirectoryPlace)>,
        first: Option<EventOwned>,
        seen: &mut Seen,
    ) -> bool {
        let mut next = first;
        let quiet = tokio::time::sleep(DEBOUNCE);
        tokio::pin!(quiet);
        loop {
            let Some(event) = next else { return false };
            let gone = EventMask::IGNORED | EventMask::DELETE_SELF | EventMask::MOVE_SELF;
            if event.mask.intersects(gone | EventMask::UNMOUNT) {
                return false;
            }
            let made = EventMask::CREATE | EventMask::MOVED_TO;
            if event.mask.intersects(made)
                && event.name.as_deref() == self.kubelet_socket.file_name()
            {
                seen.creations = seen.creations.saturating_add(1);
            }
            let stream = events.as_mut().map(|(stream, _)| stream);
            next = tokio::select! {
                () = &mut quiet => return true,
                next = next_event(stream) => next,
            };
        }
    }

    fn look(&self, seen: &mut Seen) {
        let found = self
            .dir
            .check()
            .and_then(|()| self.dir.check_socket(&self.kubelet_socket));
        let (kubelet, problem) = match found {
            Ok(identity) => {
                let creations = seen.creations;
                (
                    Some(KubeletSocket {
                        identity,
                        creations,
                    }),
                    None,
                )
            }
            // Kubelet's socket is missing whenever kubelet is down: a state, not a problem.
            Err(SocketDirError::Missing { path }) if path == self.kubelet_socket => (None, None),
            Err(error) => (None, Some(with_causes(&error))),
        };
        if problem != seen.problem {
            if let Some(problem) = &problem {
                warn!(problem, "kubelet's socket directory cannot be used");
            } else {
                info!("kubelet's socket directory is usable");
            }
            seen.problem.clone_from(&problem);
        }
        let there = kubelet.is_some();
        if problem.is_none() && seen.kubelet != Some(there) {
            let path = self.kubelet_socket.display();
            if there {
                info!(%path, "kubelet's registry socket is there");
            } else {
                warn!(%path, "waiting for kubelet: its registry socket is not there");
            }
            seen.kubelet = Some(there);
        }
        self.board.directory(kubelet.is_some(), problem);
        self.view.send_modify(|view| {
            view.kubelet = kubelet;
            view.looks = view.looks.wrapping_add(1);
        });
        let checkpoint = FileIdentity::read(&self.checkpoint).ok();
        if checkpoint != seen.checkpoint {
            seen.checkpoint = checkpoint;
            (self.checkpoint_changed)();
        }
    }

    fn arm(&self) -> Option<Events> {
        self.dir.check().ok()?;
        let mask = WatchMask::CREATE
            | WatchMask::DELETE
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        let armed = Inotify::init().and_then(|inotify| {
            inotify.watches().add(self.dir.path(), mask)?;
            inotify.into_event_stream([0_u8; EVENT_BUFFER_BYTES])
        });
        match armed {
            Ok(events) => Some(events),
            Err(error) => {
                debug!(%error, "no file events from kubelet's directory; looking at it instead");
                None
            }
        }
    }

    fn dir_identity(&self) -> Option<DirectoryPlace> {
        FileIdentity::read(self.dir.path())
            .ok()
            .map(FileIdentity::place)
    }
}

/// A directory's modification time changes with its entries, so only its place counts.
type DirectoryPlace = (u64, u64);

/// None when the watch failed; never returns when there is none.
async fn next_event(events: Option<&mut Events>) -> Option<EventOwned> {
    match events {
        Some(events) => events.next().await.and_then(Result::ok),
        None => std::future::pending().await,
    }
}
