//! The one owner of the chips' threads: hands out jobs, collects answers up to a deadline, reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::super::moment::Moment;
use super::super::protocol::{ChipKey, Report, Stuck};
use super::lane::{Answer, Context, Job, Lane, Question, Readings};
use crate::dcmi::call::Address;
use crate::dcmi::node::{self, ChipError, ChipFacts, Listing};
use crate::domain::chip::{ChipSample, HealthReading};
use crate::domain::ids::DieId;

/// What the desk is told.
#[derive(Debug)]
pub(super) enum DeskMessage {
    /// The node's chips were listed; read each and report.
    Listed { id: u64, listing: Listing },
    /// Sample these chips and report.
    Sample {
        id: u64,
        with_processes: bool,
        deadline: Duration,
        chips: Vec<ChipKey>,
    },
    /// A chip's thread is done.
    Answered {
        ticket: u64,
        at: Address,
        answer: Answer,
    },
}

pub(super) struct Desk {
    context: Arc<Context>,
    /// For the chips' threads.
    answers: SyncSender<DeskMessage>,
    reports: SyncSender<Report>,
    facts_deadline: Duration,
    stuck_bound: usize,
    lanes: BTreeMap<Address, Lane>,
    /// Where each die of the last inventory is asked.
    places: BTreeMap<DieId, Address>,
    open: BTreeMap<u64, Collection>,
    next_ticket: u64,
}

/// Answers gathered for one report.
struct Collection {
    deadline: Moment,
    waiting: BTreeSet<Address>,
    purpose: Purpose,
}

enum Purpose {
    Inventory {
        id: u64,
        listing: Listing,
        read: BTreeMap<Address, Result<ChipFacts, ChipError>>,
    },
    Samples {
        id: u64,
        chips: Vec<(ChipKey, Option<Address>)>,
        read: BTreeMap<Address, Readings>,
    },
}

impl Desk {
    pub(super) fn new(
        context: Arc<Context>,
        answers: SyncSender<DeskMessage>,
        reports: SyncSender<Report>,
        facts_deadline: Duration,
        stuck_bound: usize,
    ) -> Self {
        Self {
            context,
            answers,
            reports,
            facts_deadline,
            stuck_bound,
            lanes: BTreeMap::new(),
            places: BTreeMap::new(),
            open: BTreeMap::new(),
            next_ticket: 0,
        }
    }

    /// Works until the process ends.
    pub(super) fn run(mut self, inbox: &Receiver<DeskMessage>) {
        loop {
            let now = Moment::now();
            let due = |open: &Collection| open.waiting.is_empty() || open.deadline <= now;
            let done: Vec<u64> = self
                .open
                .iter()
                .filter(|(_, open)| due(open))
                .map(|(id, _)| *id)
                .collect();
            for ticket in done {
                if let Some(collection) = self.open.remove(&ticket) {
                    let report = self.finish(collection.purpose, now);
                    if self.reports.send(report).is_err() {
                        return;
                    }
                }
            }
            let message = match self.open.values().map(|open| open.deadline).min() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => inbox.recv_timeout(deadline.since(now)),
            };
            match message {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, message: DeskMessage) {
        match message {
            DeskMessage::Listed { id, listing } => {
                let asked: BTreeSet<Address> = listing.chips.iter().copied().collect();
                let purpose = Purpose::Inventory {
                    id,
                    listing,
                    read: BTreeMap::new(),
                };
                self.ask(asked, self.facts_deadline, Question::Facts, purpose);
            }
            DeskMessage::Sample {
                id,
                with_processes,
                deadline,
                chips,
            } => {
                let chips: Vec<_> = chips
                    .into_iter()
                    .map(|chip| (chip, self.places.get(&chip.die).copied()))
                    .collect();
                let asked = chips.iter().filter_map(|(_, place)| *place).collect();
                let purpose = Purpose::Samples {
                    id,
                    chips,
                    read: BTreeMap::new(),
                };
                self.ask(
                    asked,
                    deadline,
                    Question::Sample { with_processes },
                    purpose,
                );
            }
            DeskMessage::Answered { ticket, at, answer } => {
                if let Some(open) = self.open.get_mut(&ticket) {
                    open.waiting.remove(&at);
                    open.purpose.add(at, answer);
                }
            }
        }
    }

    fn ask(
        &mut self,
        asked: BTreeSet<Address>,
        wait: Duration,
        question: Question,
        purpose: Purpose,
    ) {
        let now = Moment::now();
        let deadline = now.after(wait);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let job = Job {
            ticket,
            expires: deadline,
            question,
        };
        let waiting = asked
            .into_iter()
            .filter(|at| self.hand_over(*at, job, now))
            .collect();
        self.open.insert(
            ticket,
            Collection {
                deadline,
                waiting,
                purpose,
            },
        );
    }

    /// A chip without a thread gets one; should that fail, the chip gives no answer and the next
    /// request tries again.
    fn hand_over(&mut self, at: Address, job: Job, now: Moment) -> bool {
        if !self.lanes.contains_key(&at) {
            let lane = Lane::start(at, Arc::clone(&self.context), self.answers.clone());
            if let Ok(lane) = lane {
                self.lanes.insert(at, lane);
            }
        }
        self.lanes.get(&at).is_some_and(|lane| lane.ask(job, now))
    }

    fn finish(&mut self, purpose: Purpose, now: Moment) -> Report {
        match purpose {
            Purpose::Inventory {
                id,
                listing,
                mut read,
            } => {
                let read: Vec<_> = listing
                    .chips
                    .iter()
                    .map(|at| (*at, read.remove(at).unwrap_or(Err(ChipError::NoAnswer))))
                    .collect();
                let key = |facts: &ChipFacts| (facts.die, facts.logic);
                let places: BTreeMap<_, Address> = read
                    .iter()
                    .filter_map(|(at, facts)| Some((key(facts.as_ref().ok()?), *at)))
                    .collect();
                let missing = self.context.dcmi.missing_symbols(self.context.api);
                let library = self.context.library.clone();
                let inventory = node::assemble(self.context.api, listing, read, library, missing);
                self.places = inventory
                    .chips
                    .iter()
                    .filter_map(|chip| Some((chip.die, *places.get(&(chip.die, chip.logic))?)))
                    .collect();
                Report::Inventory {
                    id,
                    result: Ok(inventory),
                }
            }
            Purpose::Samples {
                id,
                chips,
                mut read,
            } => {
                let sample = |(chip, place): (ChipKey, Option<Address>)| {
                    let readings = place.and_then(|at| read.remove(&at));
                    let readings = readings.unwrap_or(Readings {
                        health: HealthReading::NoAnswer,
                        codes: Vec::new(),
                        processes: None,
                    });
                    ChipSample {
                        logic: chip.logic,
                        health: readings.health,
                        codes: readings.codes,
                        processes: readings.processes,
                    }
                };
                let samples = chips.into_iter().map(sample).collect();
                Report::Samples {
                    id,
                    samples,
                    stuck: self.stuck(now),
                }
            }
        }
    }

    fn stuck(&self, now: Moment) -> Stuck {
        let overdue: Vec<Duration> = self
            .lanes
            .values()
            .filter_map(|lane| lane.overdue(now))
            .collect();
        let longest = overdue.iter().max().copied().unwrap_or_default();
        Stuck {
            threads: overdue.len(),
            longest_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
            over_bound: overdue.len() > self.stuck_bound,
        }
    }
}

impl Purpose {
    fn add(&mut self, at: Address, answer: Answer) {
        match (self, answer) {
            (Self::Inventory { read, .. }, Answer::Facts(facts)) => {
                read.insert(at, facts.map_err(ChipError::Call));
            }
            (Self::Samples { read, .. }, Answer::Sample(readings)) => {
                read.insert(at, readings);
            }
            // A ticket is given to jobs of one kind only.
            (Self::Inventory { .. }, Answer::Sample(_))
            | (Self::Samples { .. }, Answer::Facts(_)) => {}
        }
    }
}
