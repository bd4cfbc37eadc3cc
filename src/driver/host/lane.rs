//! One thread for one chip, so that a call that hangs blocks its own chip only.
//!
//! Invariant: a thread whose call has overrun its deadline gets no further call until it came back.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::super::moment::Moment;
use super::desk::DeskMessage;
use crate::dcmi::call::{Address, Dcmi};
use crate::dcmi::code::{CallError, ReturnCode};
use crate::dcmi::node::{self, ChipFacts};
use crate::domain::chip::{DcmiApi, HealthReading};
use crate::domain::fault::FaultCode;

/// One job that runs and one that waits.
const JOB_QUEUE: usize = 1;

/// The number by which the vendor's own plugin reports a function that the library lacks.
const MISSING_FUNCTION: i32 = -99_998;

/// What every call needs.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) dcmi: Dcmi,
    pub(super) api: DcmiApi,
    pub(super) library: String,
    pub(super) sysfs: PathBuf,
}

/// Something to ask the chip; nobody waits for the answer once it expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) ticket: u64,
    pub(super) expires: Moment,
    pub(super) question: Question,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    Facts,
    Sample { with_processes: bool },
}

#[derive(Debug)]
pub(super) enum Answer {
    Facts(Result<ChipFacts, CallError>),
    Sample(Readings),
}

/// A sample without the chip's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Readings {
    pub(super) health: HealthReading,
    pub(super) codes: Vec<FaultCode>,
    pub(super) processes: Option<Vec<u32>>,
}

/// The desk's end of a chip's thread.
#[derive(Debug)]
pub(super) struct Lane {
    jobs: SyncSender<Job>,
    /// When the running job expires, in milliseconds; zero while none runs.
    running_until: Arc<AtomicU64>,
}

impl Lane {
    pub(super) fn start(
        at: Address,
        context: Arc<Context>,
        answers: SyncSender<DeskMessage>,
    ) -> io::Result<Self> {
        let (jobs, queued) = sync_channel(JOB_QUEUE);
        let running_until = Arc::new(AtomicU64::new(0));
        let thread = LaneThread {
            at,
            context,
            answers,
            running_until: Arc::clone(&running_until),
            codes_unsupported: false,
            processes_unsupported: false,
        };
        // The kernel cuts thread names at 15 bytes.
        let name = match at {
            Address::Card { card, device } => format!("chip {card}.{device}"),
            Address::Logic { device } => format!("chip {device}"),
        };
        super::spawn(name, move || thread.run(&queued))?;
        Ok(Self {
            jobs,
            running_until,
        })
    }

    /// False when the chip is stuck or has a job waiting already.
    pub(super) fn ask(&self, job: Job, now: Moment) -> bool {
        self.overdue(now).is_none() && self.jobs.try_send(job).is_ok()
    }

    /// How long the running call is past its deadline.
    pub(super) fn overdue(&self, now: Moment) -> Option<Duration> {
        match self.running_until.load(Ordering::Acquire) {
            0 => None,
            until => {
                let overdue = now.since(Moment::from_millis(until));
                (!overdue.is_zero()).then_some(overdue)
            }
        }
    }
}

struct LaneThread {
    at: Address,
    context: Arc<Context>,
    answers: SyncSender<DeskMessage>,
    running_until: Arc<AtomicU64>,
    // The library writes a log line for each unsupported call, so it is asked once.
    codes_unsupported: bool,
    processes_unsupported: bool,
}

impl LaneThread {
    fn run(mut self, queued: &Receiver<Job>) {
        for job in queued {
            if Moment::now() >= job.expires {
                continue;
            }
            self.running_until
                .store(job.expires.as_millis(), Ordering::Release);
            let answer = self.answer(job.question);
            self.running_until.store(0, Ordering::Release);
            let message = DeskMessage::Answered {
                ticket: job.ticket,
                at: self.at,
                answer,
            };
            if self.answers.send(message).is_err() {
                return;
            }
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        let Context {
            dcmi, api, sysfs, ..
        } = &*self.context;
        match question {
            Question::Facts => Answer::Facts(node::read_chip(dcmi, *api, self.at, sysfs)),
            Question::Sample { with_processes } => {
                let health = match dcmi.health(self.at) {
                    Ok(level) => HealthReading::Level(level),
                    Err(error) if node::means_lost(&error) => HealthReading::Lost,
                    Err(error) => HealthReading::Failed(
                        error.code().map_or(MISSING_FUNCTION, ReturnCode::raw),
                    ),
                };
                let codes = ask_once(&mut self.codes_unsupported, || dcmi.fault_codes(self.at));
                let processes = if with_processes {
                    let told =
                        ask_once(&mut self.processes_unsupported, || dcmi.processes(self.at));
                    // Where the driver has no such call, nothing will ever stand against a holder's end.
                    told.or_else(|| self.processes_unsupported.then(Vec::new))
                } else {
                    None
                };
                Answer::Sample(Readings {
                    health,
                    codes: codes.unwrap_or_default(),
                    processes,
                })
            }
        }
    }
}

fn ask_once<T>(unsupported: &mut bool, call: impl FnOnce() -> Result<T, CallError>) -> Option<T> {
    if *unsupported {
        return None;
    }
    let answer = call();
    *unsupported = answer.as_ref().is_err_and(CallError::is_unsupported);
    answer.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsupported_call_is_made_once_and_a_failing_one_again() {
        let failing = |code| move || Err::<(), _>(CallError::Returned { symbol: "f", code });
        let mut unsupported = false;
        assert_eq!(ask_once(&mut unsupported, failing(ReturnCode::Inner)), None);
        assert!(!unsupported);
        assert_eq!(
            ask_once(&mut unsupported, failing(ReturnCode::NotSupported)),
            None
        );
        assert_eq!(
            ask_once(&mut unsupported, || panic!("called again")),
            None::<()>
        );
    }
}
