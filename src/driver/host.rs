//! The child's side: `ascend-agent driver-host`.
//!
//! Order at start: take the channel and the lock, load and initialise the library while there is one
//! thread only, then serve. Threads: this one reads requests; `node` makes the calls for the whole
//! node, but for the multi-die policy, which has a thread of its own; `desk` owns the chips' threads
//! and their answers; `events` and `reports` pass on. The process ends when the agent closes the
//! channel or dies.

mod desk;
mod die_policy;
mod lane;
mod options;
mod setup;

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

pub use options::{HostOptions, OptionsError};

use self::desk::{Desk, DeskMessage};
use self::die_policy::DiePolicyDoor;
use self::lane::Context;
use super::protocol::{FrameError, HostFailure, Report, Request, read_frame, write_frame};
use crate::dcmi::call::Dcmi;
use crate::dcmi::code::CallError;
use crate::dcmi::subscription;
use crate::dcmi::{node, search};
use crate::domain::fault::FaultEvent;
use crate::domain::ids::CardId;

/// Reports that wait for the agent to read; a full queue holds the sender, not memory.
const REPORT_QUEUE: usize = 64;

/// Events that wait for the reports queue; more are counted and dropped.
const EVENT_QUEUE: usize = 1024;

/// Answers of chip threads that wait for the desk.
const DESK_QUEUE: usize = 256;

/// One request that runs and one that waits.
const NODE_QUEUE: usize = 1;

/// How long one card may take to say how many chips it has.
const CARD_DEADLINE: Duration = Duration::from_secs(1);

/// Every thread runs vendor code or little of ours; only pages touched count.
const STACK_BYTES: usize = 512 * 1024;

/// Runs the driver host until the agent closes the channel. The options come from the agent that
/// started this process, and standard input is its socket.
#[must_use]
pub fn run(options: &HostOptions) -> ExitCode {
    let served = setup::adopt_channel()
        .map_err(StartError::Channel)
        .and_then(|channel| serve(options, &channel));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        // The agent was told and says it in its own log.
        Err(StartError::Failed(_)) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to be done when even this cannot be written.
            let _written = writeln!(io::stderr(), "driver host: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why the host ended early. What the agent must know was sent to it as well.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("standard input is not the agent's socket ({0}); the agent starts this command itself")]
    Channel(io::Error),
    #[error("{0}")]
    Orphan(setup::OrphanError),
    #[error("the agent does not listen: {0}")]
    Deaf(FrameError),
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Failed(HostFailure),
}

fn serve(options: &HostOptions, channel: &UnixStream) -> Result<(), StartError> {
    setup::die_with_parent(options.parent_pid).map_err(StartError::Orphan)?;
    let send = |report: &Report| write_frame(&mut &*channel, report).map_err(StartError::Deaf);
    send(&Report::Hello {
        pid: std::process::id(),
    })?;
    let failed = |failure: HostFailure| match send(&Report::Failed(failure.clone())) {
        Ok(()) => StartError::Failed(failure),
        Err(deaf) => deaf,
    };
    let note = |text: String| {
        // A parent that no longer listens is noticed at the next report.
        let _sent = send(&Report::Note(text));
    };
    let _lock = setup::take_lock(&options.state_dir, options.lock_wait, note)
        .map_err(|error| failed(HostFailure::Host(error.to_string())))?;
    let (context, notes) = load(options).map_err(failed)?;
    for text in notes {
        note(text);
    }
    start(options, channel, context).map_err(StartError::Thread)
}

/// Finds, loads and initialises the library. Forks shells, so no other thread exists yet.
fn load(options: &HostOptions) -> Result<(Context, Vec<String>), HostFailure> {
    let search = search::Search::of_system(
        options.ld_library_path.clone(),
        options.trusted_library.clone(),
    );
    let found = search::find(&search).map_err(|error| HostFailure::Library(error.to_string()))?;
    let dcmi = Dcmi::load(&found.path).map_err(|error| HostFailure::Library(error.to_string()))?;
    let api = node::probe(&dcmi).map_err(|error| HostFailure::Init(error.to_string()))?;
    let notes = found.refused.iter().map(ToString::to_string).collect();
    let context = Context {
        dcmi,
        api,
        library: found.path.to_string_lossy().into_owned(),
        sysfs: options.sysfs.clone(),
    };
    Ok((context, notes))
}

fn start(options: &HostOptions, channel: &UnixStream, context: Context) -> io::Result<()> {
    let context = Arc::new(context);
    let (reports, queued) = sync_channel(REPORT_QUEUE);
    let outgoing = channel.try_clone()?;
    let writer = spawn("reports", move || write_reports(&outgoing, &queued))?;
    let (to_desk, desk_inbox) = sync_channel(DESK_QUEUE);
    let desk = Desk::new(
        Arc::clone(&context),
        to_desk.clone(),
        reports.clone(),
        options.facts_deadline,
        options.stuck_bound,
    );
    spawn("desk", move || desk.run(&desk_inbox))?;
    let (to_node, asked) = sync_channel(NODE_QUEUE);
    let policy = DiePolicyDoor::new(Arc::clone(&context), reports.clone());
    let node = NodeThread {
        context,
        to_desk: to_desk.clone(),
        reports: reports.clone(),
    };
    spawn("node", move || node.run(&asked))?;
    let orderly = read_requests(channel, &to_node, &to_desk, &policy, &reports);
    if orderly && reports.send(Report::Closed).is_ok() {
        // The writer ends with this report; it cannot fail in a way that matters now.
        let _ended = writer.join();
    }
    Ok(())
}

fn spawn(
    name: impl Into<String>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new()
        .name(name.into())
        .stack_size(STACK_BYTES)
        .spawn(body)
}

/// True when the agent asked for the end, false when it went away.
fn read_requests(
    mut channel: &UnixStream,
    to_node: &SyncSender<u64>,
    to_desk: &SyncSender<DeskMessage>,
    policy: &DiePolicyDoor,
    reports: &SyncSender<Report>,
) -> bool {
    loop {
        match read_frame(&mut channel) {
            Ok(Some(Request::Inventory { id })) => {
                if to_node.try_send(id).is_err() {
                    let busy = "an earlier call for the whole node has not come back".to_owned();
                    let result = Err(HostFailure::Host(busy));
                    if reports.send(Report::Inventory { id, result }).is_err() {
                        return false;
                    }
                }
            }
            Ok(Some(Request::Sample {
                id,
                with_processes,
                deadline_ms,
                chips,
            })) => {
                let deadline = Duration::from_millis(deadline_ms);
                let sample = DeskMessage::Sample {
                    id,
                    with_processes,
                    deadline,
                    chips,
                };
                if to_desk.send(sample).is_err() {
                    return false;
                }
            }
            Ok(Some(Request::SetDiePolicy { id, policy: wanted })) => {
                if !policy.set(id, wanted) {
                    return false;
                }
            }
            Ok(Some(Request::Close)) => return true,
            Ok(None) | Err(_) => return false,
        }
    }
}

fn write_reports(mut channel: &UnixStream, queued: &Receiver<Report>) {
    for report in queued {
        if write_frame(&mut channel, &report).is_err() || report == Report::Closed {
            return;
        }
    }
}

/// Makes the calls that concern the whole node.
struct NodeThread {
    context: Arc<Context>,
    to_desk: SyncSender<DeskMessage>,
    reports: SyncSender<Report>,
}

impl NodeThread {
    fn run(self, asked: &Receiver<u64>) {
        // Events are asked for first, so that none falls between the first look and them.
        self.subscribe();
        for id in asked {
            let list = node::list(&self.context.dcmi, self.context.api, |card| {
                self.devices_on_card(card)
            });
            let sent = match list {
                Ok(listing) => self
                    .to_desk
                    .send(DeskMessage::Listed { id, listing })
                    .is_ok(),
                Err(error) => {
                    let result = Err(failure_of(&error));
                    self.reports.send(Report::Inventory { id, result }).is_ok()
                }
            };
            if !sent {
                return;
            }
        }
    }

    /// Asks on a thread of its own: a card that hangs keeps that thread, at most one per card of this
    /// process, and nothing else.
    fn devices_on_card(&self, card: CardId) -> Result<i32, String> {
        let (sender, answer) = sync_channel(1);
        let context = Arc::clone(&self.context);
        let asking = spawn("card", move || {
            // Nobody listens once the deadline passed.
            let _late = sender.send(context.dcmi.devices_on_card(card));
        });
        if let Err(error) = asking {
            return Err(error.to_string());
        }
        match answer.recv_timeout(CARD_DEADLINE) {
            Ok(devices) => devices.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    fn subscribe(&self) {
        let (queue, events) = sync_channel(EVENT_QUEUE);
        let reports = self.reports.clone();
        let passing = spawn("events", move || pass_on_events(&events, &reports));
        let subscribed = match passing {
            Err(error) => Err(error.to_string()),
            Ok(_thread) => subscription::subscribe(&self.context.dcmi, self.context.api, queue)
                .map_err(|error| error.to_string()),
        };
        if let Err(error) = subscribed {
            let text = format!("no fault events, faults are found by polling only: {error}");
            // A closed queue means that the process is ending.
            let _sent = self.reports.send(Report::Note(text));
        }
    }
}

fn pass_on_events(events: &Receiver<FaultEvent>, reports: &SyncSender<Report>) {
    for event in events {
        let dropped = subscription::take_dropped();
        let sent = reports.send(Report::Event(event)).is_ok()
            && (dropped == 0 || reports.send(Report::EventsDropped(dropped)).is_ok());
        if !sent {
            return;
        }
    }
}

fn failure_of(error: &CallError) -> HostFailure {
    match error.code() {
        Some(code) => HostFailure::Call {
            symbol: error.symbol().to_owned(),
            code: code.raw(),
            text: error.to_string(),
        },
        None => HostFailure::Init(error.to_string()),
    }
}
