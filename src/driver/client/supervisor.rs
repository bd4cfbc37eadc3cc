//! The supervising thread: one loop, one queue, one host at a time.
//!
//! Requests wait in lists with deadlines. A new host is asked for its inventory at once, so that a
//! replaced one is of use before anybody asks. Chips are told to a host by die, because numbers may
//! have moved since the inventory that the asker knows.

mod die_policy;
mod endings;
mod notify;
mod reports;

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use self::die_policy::PolicyState;
use self::notify::Notices;
use super::super::moment::Moment;
use super::super::protocol::{ChipKey, Report, Request};
use super::DriverConfig;
use super::pause::{Patience, Pauses};
use super::process::{Ending, HostProcess};
use crate::domain::chip::{Chip, ChipSample, DiePolicy, Inventory};
use crate::ports::{HardwareError, HardwareNotice};

/// What a sample may take beyond the chips' deadline: two crossings of the socket on a busy machine.
const SAMPLE_GRACE: Duration = Duration::from_millis(500);

/// How long an end is watched before it is left to later; then only a process that hangs inside the
/// kernel is left.
const REAP_PATIENCE: Duration = Duration::from_millis(200);

/// Requests of one kind that may wait.
const WAITING_MAX: usize = 64;

type Reply<T> = oneshot::Sender<Result<T, HardwareError>>;

/// What the supervisor is told.
#[derive(Debug)]
pub(super) enum Message {
    Inventory {
        fresh: bool,
        reply: Reply<Inventory>,
    },
    Sample {
        with_processes: bool,
        reply: Reply<Vec<ChipSample>>,
    },
    SetDiePolicy {
        policy: DiePolicy,
        reply: Reply<()>,
    },
    Report {
        epoch: u64,
        report: Report,
    },
    Ended {
        epoch: u64,
        cause: String,
    },
    Close(Option<oneshot::Sender<()>>),
}

/// A request and the moment by which it is answered in any case.
struct Waiting<T> {
    until: Moment,
    reply: Reply<T>,
}

/// The host in charge.
struct Host {
    epoch: u64,
    process: HostProcess,
    /// Its first complete answer makes it ready.
    current: Option<Inventory>,
    /// The inventory request that it is working on.
    enumeration: Option<Flight<()>>,
    /// The sample request that it is working on, and who wants the answer.
    sampling: Option<Flight<Vec<Reply<Vec<ChipSample>>>>>,
    die_policy: PolicyState,
}

#[derive(Debug)]
struct Flight<T> {
    id: u64,
    until: Moment,
    wanted_by: T,
}

pub(super) struct Supervisor {
    config: DriverConfig,
    inbox: Receiver<Message>,
    /// For the reading threads.
    sender: SyncSender<Message>,
    notices: Notices,
    host: Option<Host>,
    /// Whether a host shall run.
    wanted: bool,
    pauses: Pauses,
    patience: Patience,
    ending: Vec<Ending>,
    inventories: Vec<Waiting<Inventory>>,
    samples: Vec<Waiting<Vec<ChipSample>>>,
    samples_want_processes: bool,
    /// Why the last start came to nothing; none while a host is ready.
    failure: Option<HardwareError>,
    /// The inventory whose numbers the asker uses.
    told: Option<Inventory>,
    next_epoch: u64,
    next_id: u64,
}

impl Supervisor {
    pub(super) fn new(
        config: DriverConfig,
        inbox: Receiver<Message>,
        sender: SyncSender<Message>,
        notices: mpsc::Sender<HardwareNotice>,
    ) -> Self {
        let patience = Patience::new(config.stuck_patience);
        Self {
            config,
            inbox,
            sender,
            notices: Notices::new(notices),
            host: None,
            wanted: false,
            pauses: Pauses::default(),
            patience,
            ending: Vec::new(),
            inventories: Vec::new(),
            samples: Vec::new(),
            samples_want_processes: false,
            failure: None,
            told: None,
            next_epoch: 1,
            next_id: 1,
        }
    }

    /// Works until it is told to close.
    pub(super) fn run(mut self) {
        let closed = loop {
            let now = Moment::now();
            self.expire(now);
            self.start_if_due(now);
            self.dispatch_samples(now);
            self.ending
                .retain_mut(|ending| ending.reaped(now).is_none());
            self.notices.flush();
            match self.next_message(now) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
                Ok(Message::Close(done)) => break done,
                Ok(message) => self.take(message),
            }
        };
        self.close();
        if let Some(done) = closed {
            // Whoever asked may have stopped waiting.
            let _told = done.send(());
        }
    }

    fn next_message(&self, now: Moment) -> Result<Message, RecvTimeoutError> {
        let flights = self.host.iter().flat_map(|host| {
            let enumeration = host.enumeration.as_ref().map(|flight| flight.until);
            let sampling = host.sampling.as_ref().map(|flight| flight.until);
            let policy = host.die_policy.until();
            enumeration.into_iter().chain(sampling).chain(policy)
        });
        let start = (self.host.is_none() && self.wanted).then(|| self.pauses.pending(now));
        let wake = flights
            .chain(self.inventories.iter().map(|waiting| waiting.until))
            .chain(self.samples.iter().map(|waiting| waiting.until))
            .chain(start.flatten())
            .chain(self.ending.iter().map(|ending| ending.look_again(now)))
            .chain(self.notices.retry_after().map(|wait| now.after(wait)))
            .min();
        match wake {
            None => self
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(moment) => self.inbox.recv_timeout(moment.since(now)),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Inventory { fresh, reply } => self.want_inventory(fresh, reply),
            Message::Sample {
                with_processes,
                reply,
            } => {
                let until = Moment::now().after(self.sample_deadline());
                self.wanted = true;
                self.samples_want_processes |= with_processes;
                wait_in(&mut self.samples, Waiting { until, reply });
            }
            Message::SetDiePolicy { policy, reply } => self.want_die_policy(policy, reply),
            Message::Report { epoch, report } => {
                if self.host.as_ref().is_some_and(|host| host.epoch == epoch) {
                    self.take_report(report);
                }
            }
            Message::Ended { epoch, cause } => {
                if self.host.as_ref().is_some_and(|host| host.epoch == epoch) {
                    self.bury(&cause);
                }
            }
            // Taken by the loop.
            Message::Close(_) => {}
        }
    }

    fn want_inventory(&mut self, fresh: bool, reply: Reply<Inventory>) {
        let now = Moment::now();
        self.wanted = true;
        if !wait_in(
            &mut self.inventories,
            Waiting {
                until: now.after(self.config.init_deadline),
                reply,
            },
        ) {
            return;
        }
        match &self.host {
            // A host that has not answered yet is as fresh as can be.
            Some(host) if host.current.is_none() => {}
            Some(_) if fresh => self.replace("a fresh inventory was asked for", true),
            Some(_) => self.enumerate(now),
            None => {}
        }
    }

    /// Asks the present host for its inventory unless it is at work on one.
    fn enumerate(&mut self, now: Moment) {
        let id = self.take_id();
        let Some(host) = &mut self.host else { return };
        if host.enumeration.is_some() {
            return;
        }
        let until = now.after(self.config.init_deadline);
        host.enumeration = Some(Flight {
            id,
            until,
            wanted_by: (),
        });
        // A broken channel is followed by word of the host's end.
        let _sent = host.process.send(&Request::Inventory { id });
    }

    fn start_if_due(&mut self, now: Moment) {
        if self.host.is_some() || !self.wanted || self.pauses.pending(now).is_some() {
            return;
        }
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        match HostProcess::start(&self.config, epoch, self.sender.clone()) {
            Ok(process) => {
                self.pauses.started(now);
                self.host = Some(Host {
                    epoch,
                    process,
                    current: None,
                    enumeration: None,
                    sampling: None,
                    die_policy: PolicyState::NeverAsked,
                });
                self.enumerate(now);
            }
            Err(error) => {
                let program = self.config.program.display();
                let text = format!("{program} could not be started ({error})");
                self.fail(&HardwareError::Host(text), now);
            }
        }
    }

    /// No host will come of this; whoever asks next starts another.
    fn fail(&mut self, error: &HardwareError, now: Moment) {
        self.pauses.died(now);
        self.wanted = false;
        self.failure = Some(error.clone());
        for waiting in self.inventories.drain(..) {
            answer(waiting.reply, Err(error.clone()));
        }
        for waiting in self.samples.drain(..) {
            answer(waiting.reply, Err(error.clone()));
        }
    }

    fn dispatch_samples(&mut self, now: Moment) {
        if self.samples.is_empty() {
            return;
        }
        let id = self.take_id();
        let Some(host) = &mut self.host else { return };
        let Some(current) = &host.current else { return };
        if host.sampling.is_some() {
            return;
        }
        let key = |chip: &Chip| ChipKey {
            die: chip.die,
            logic: chip.logic,
        };
        let chips = self
            .told
            .as_ref()
            .unwrap_or(current)
            .chips
            .iter()
            .map(key)
            .collect();
        let deadline = self.config.call_deadline;
        host.sampling = Some(Flight {
            id,
            until: now.after(deadline).after(SAMPLE_GRACE),
            wanted_by: self
                .samples
                .drain(..)
                .map(|waiting| waiting.reply)
                .collect(),
        });
        let sent = host.process.send(&Request::Sample {
            id,
            with_processes: std::mem::take(&mut self.samples_want_processes),
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            chips,
        });
        if let Err(error) = sent {
            warn!(%error, "a sample could not be asked for");
        }
    }

    /// Answers what is overdue. A host that overran a deadline of its own is killed: the chips'
    /// deadlines run inside it, so it is the process that hangs.
    fn expire(&mut self, now: Moment) {
        let within = self.config.init_deadline;
        for waiting in self
            .inventories
            .extract_if(.., |waiting| waiting.until <= now)
        {
            answer(waiting.reply, Err(HardwareError::Deadline { within }));
        }
        let within = self.sample_deadline();
        let failure = self.failure.clone();
        let why = failure.unwrap_or(HardwareError::Deadline { within });
        for waiting in self.samples.extract_if(.., |waiting| waiting.until <= now) {
            answer(waiting.reply, Err(why.clone()));
        }
        let Some(host) = &mut self.host else { return };
        host.die_policy.expire(now);
        if host
            .enumeration
            .as_ref()
            .is_some_and(|flight| flight.until <= now)
        {
            let within = self.config.init_deadline;
            self.retire(&format!("no inventory within {within:?}"), false);
            self.fail(&HardwareError::Deadline { within }, now);
        } else if host
            .sampling
            .as_ref()
            .is_some_and(|flight| flight.until <= now)
        {
            self.retire(&format!("no sample within {within:?}"), false);
            self.pauses.died(now);
        }
    }

    fn sample_deadline(&self) -> Duration {
        self.config.call_deadline.saturating_add(SAMPLE_GRACE)
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

fn wait_in<T>(list: &mut Vec<Waiting<T>>, waiting: Waiting<T>) -> bool {
    if list.len() >= WAITING_MAX {
        let text = "too many requests are waiting".to_owned();
        answer(waiting.reply, Err(HardwareError::Host(text)));
        return false;
    }
    list.push(waiting);
    true
}

/// Whoever asked may have stopped waiting.
fn answer<T>(reply: Reply<T>, result: Result<T, HardwareError>) {
    let _taken = reply.send(result);
}
