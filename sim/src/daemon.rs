//! The process that is the node's hardware: one socket, a thread for each connection, one lock
//! around the machine, and the files that show the machine to the host.
//!
//! Invariants: what a control request changed is on disk and in the device directory before it is
//! answered; a held call keeps its own thread and nothing else; a connection that ends takes its
//! subscription and its place in the list of processes with it.
//! Drawback: threads, not tasks. The number of connections is bounded, so it does not matter.

mod connection;
mod due;
mod nodes;
mod state_file;
mod sysfs;

use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{fs, thread};

use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clock;
use crate::hardware::{ControlError, Hardware, SavedError};
use crate::profile::{Profile, ProfileError};
use crate::wire::{Answer, Call, Control, Failure, VdevControl};
use connection::Connection;
use nodes::{NodeDir, NodeError};
use state_file::{StateFile, StateFileError};
use sysfs::{SysfsDir, SysfsError};

/// Most connections at one time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 512;
const CONNECTION_STACK_BYTES: usize = 512 * 1024;
const BOOT_ID_SOURCE: &str = "/proc/sys/kernel/random/uuid";

/// Where the hardware shows itself.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Socket to serve.
    pub(crate) socket: PathBuf,
    /// Directory for device nodes.
    pub(crate) dev_dir: PathBuf,
    /// File that keeps the state.
    pub(crate) state: Option<PathBuf>,
    /// File that holds the id of the present boot.
    pub(crate) boot_id: Option<PathBuf>,
    /// File that holds the vendor's record of vNPUs.
    pub(crate) vnpu_cfg: Option<PathBuf>,
    /// Directory laid out like sysfs, for NUMA facts.
    pub(crate) sysfs: Option<PathBuf>,
}

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    /// The profile is not usable.
    #[error("profile refused")]
    Profile(#[from] ProfileError),
    /// The kept state is not usable.
    #[error("kept state refused")]
    Saved(#[from] SavedError),
    /// The state file failed.
    #[error("state file failed")]
    StateFile(#[from] StateFileError),
    /// The device directory failed.
    #[error("device directory failed")]
    Nodes(#[from] NodeError),
    /// The stand-in for sysfs failed.
    #[error("sysfs directory failed")]
    Sysfs(#[from] SysfsError),
    /// Another daemon answers on the socket.
    #[error("socket {0:?} is served by another daemon; end it or choose another path")]
    Served(PathBuf),
    /// The socket cannot be served.
    #[error("cannot serve socket {path:?}")]
    Socket {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Signals, threads or standard output failed.
    #[error("the process cannot be set up")]
    Process(#[from] io::Error),
}

/// Why a control request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The machine refused it.
    #[error(transparent)]
    Refused(#[from] ControlError),
    /// It was carried out, but the host's files do not show it.
    #[error("carried out, but files on this host do not show it")]
    NotShown(#[from] DaemonError),
}

/// The running daemon, shared by its connections.
#[derive(Debug)]
struct Daemon {
    hardware: Mutex<Hardware>,
    changed: Condvar,
    shown: Mutex<Shown>,
    open: AtomicUsize,
    next_connection: AtomicU64,
    stop: UnixStream,
}

/// What the host sees of the machine.
#[derive(Debug)]
struct Shown {
    nodes: NodeDir,
    state: Option<StateFile>,
    boot_id: Option<StateFile>,
    vnpu_cfg: Option<StateFile>,
    sysfs: Option<SysfsDir>,
}

/// Serves until a signal or a shutdown request, then removes what it made.
///
/// # Errors
/// The profile, the kept state or one of the places is not usable.
pub(crate) fn run(profile: Profile, places: &Places) -> Result<(), DaemonError> {
    let mut hardware = Hardware::build(profile, fresh_boot())?;
    let state = places.state.clone().map(StateFile::new);
    if let Some(saved) = state.as_ref().map(StateFile::read).transpose()?.flatten() {
        hardware.restore(saved)?;
    }
    let listener = listen(&places.socket)?;
    let mut shown = Shown {
        nodes: NodeDir::open(&places.dev_dir)?,
        state,
        boot_id: places.boot_id.clone().map(StateFile::new),
        vnpu_cfg: places.vnpu_cfg.clone().map(StateFile::new),
        sysfs: places.sysfs.clone().map(SysfsDir::new),
    };
    shown.show(&hardware)?;
    let (mut stopped, stop) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, stop.try_clone()?)?;
    }
    let daemon = Arc::new(Daemon {
        hardware: Mutex::new(hardware),
        changed: Condvar::new(),
        shown: Mutex::new(shown),
        open: AtomicUsize::new(0),
        next_connection: AtomicU64::new(0),
        stop,
    });
    let accepting = Arc::clone(&daemon);
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || accepting.accept(&listener))?;
    let ending = Arc::clone(&daemon);
    thread::Builder::new()
        .name("due".to_owned())
        .spawn(move || ending.end_what_is_due())?;
    announce(places)?;
    let mut byte = [0];
    let outcome = stopped.read_exact(&mut byte);
    daemon.shown().hide();
    match fs::remove_file(&places.socket) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => {
            return Err(DaemonError::Socket {
                path: places.socket.clone(),
                source,
            });
        }
    }
    Ok(outcome?)
}

impl Daemon {
    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Out of descriptors: the next connection that ends frees one.
                thread::sleep(std::time::Duration::from_millis(50));
                continue;
            };
            if self.open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                self.open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
            let daemon = Arc::clone(self);
            let spawned = thread::Builder::new()
                .name(format!("connection-{number}"))
                .stack_size(CONNECTION_STACK_BYTES)
                .spawn(move || {
                    Connection::serve(&daemon, number, &stream);
                    daemon.open.fetch_sub(1, Ordering::Relaxed);
                });
            if spawned.is_err() {
                self.open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// A thread that panicked cannot have left the machine half changed in a way that matters
    /// more than going on serving.
    fn hardware(&self) -> MutexGuard<'_, Hardware> {
        self.hardware.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a driver call that changes the machine, in the same order of locks as below. A
    /// change that the files of this host cannot show has happened all the same.
    fn change(&self, call: &Call, pid: i32) -> Result<Answer, Failure> {
        let mut shown = self.shown();
        let outcome = {
            let mut hardware = self.hardware();
            let now = clock::now();
            let outcome = hardware
                .admit(call, now)
                .and_then(|()| hardware.change(call, pid, now));
            let _shown: Result<(), DaemonError> = shown.show(&hardware);
            outcome
        };
        self.changed.notify_all();
        outcome
    }

    /// Carries out a request. The lock on what is shown is taken first and kept, so that files
    /// follow the machine in the order of its changes.
    fn control(&self, request: Control) -> Result<Option<Value>, RequestError> {
        let reads_only = matches!(
            request,
            Control::Status { .. } | Control::Calls { .. } | Control::Vdev(VdevControl::List)
        );
        if reads_only {
            return Ok(self
                .hardware()
                .control(request, String::new(), clock::now())?);
        }
        let ends = request == Control::Shutdown;
        let mut shown = self.shown();
        let data = {
            let mut hardware = self.hardware();
            let data = hardware.control(request, fresh_boot(), clock::now())?;
            shown.show(&hardware)?;
            data
        };
        self.changed.notify_all();
        if ends {
            (&self.stop).write_all(&[1]).map_err(DaemonError::Process)?;
        }
        Ok(data)
    }
}

impl Shown {
    fn show(&mut self, hardware: &Hardware) -> Result<(), DaemonError> {
        self.nodes.show(&hardware.nodes())?;
        if let Some(state) = &self.state {
            state.write(&hardware.save())?;
        }
        if let Some(boot_id) = &self.boot_id {
            boot_id.write_text(&format!("{}\n", hardware.boot()))?;
        }
        if let Some(vnpu_cfg) = &self.vnpu_cfg {
            vnpu_cfg.write_text(&hardware.vnpu_config())?;
        }
        if let Some(sysfs) = &mut self.sysfs {
            sysfs.show(&hardware.pci_devices(), hardware.numa_cpus())?;
        }
        Ok(())
    }

    /// Removes everything made for the host to see, but keeps the state.
    fn hide(&mut self) {
        self.nodes.clear();
        if let Some(sysfs) = &mut self.sysfs {
            sysfs.clear();
        }
    }
}

fn listen(path: &PathBuf) -> Result<UnixListener, DaemonError> {
    let failed = |source| DaemonError::Socket {
        path: path.clone(),
        source,
    };
    if UnixStream::connect(path).is_ok() {
        return Err(DaemonError::Served(path.clone()));
    }
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(failed(source)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

fn announce(places: &Places) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "ready {}", places.socket.display())?;
    out.flush()
}

/// A new boot id. Without the kernel's generator the clock has to do.
fn fresh_boot() -> String {
    match fs::read_to_string(BOOT_ID_SOURCE) {
        Ok(id) => id.trim().to_owned(),
        Err(_) => format!("boot-{}", clock::now().unix_ms),
    }
}

/// An error and its causes on one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut causes = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.join(": ")
}
