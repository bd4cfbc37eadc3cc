//! Fault events: one subscription for each process, with a thread of its own.
//!
//! Invariant: the first attempt that reaches the hardware decides. After it, failed or not, every
//! further one is answered with "occupied", as the real library does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::link::{CallError, Channel};
use super::session::session;
use super::tables::At;
use crate::wire::{Answer, Call, CallReply, EventFilter, EventRecord, Failure, Query, ReturnCode};

static ATTEMPTED: AtomicBool = AtomicBool::new(false);

const THREAD_NAME: &str = "fault_event";
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// Subscribes. `deliver` runs on the calling thread for events that are there already, and on
/// the subscription's thread for all others; never on both at one time.
pub(crate) fn subscribe(
    symbol: &'static str,
    at: At,
    filter: EventFilter,
    mut deliver: impl FnMut(&EventRecord) + Send + 'static,
) -> Result<(), Failure> {
    let present = session();
    let call = present.compose_at(symbol, at, Query::Subscribe(filter));
    if present.tables().is_none() {
        return Err(Failure(ReturnCode::INNER_ERROR));
    }
    if call.refuse.is_none() && ATTEMPTED.swap(true, Ordering::SeqCst) {
        // Counted and perhaps delayed, but the answer is certain.
        let _ignored: Result<Answer, Failure> = present.ask(symbol, at, Query::Pass);
        return Err(Failure(ReturnCode::OCCUPIED));
    }
    let (channel, early) = begin(&call).map_err(|error| match error {
        CallError::Refused(failure) => failure,
        CallError::Unreachable(_) => Failure(ReturnCode::INNER_ERROR),
    })?;
    early.iter().for_each(&mut deliver);
    thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .spawn(move || receive(channel, &call, deliver))
        .map(drop)
        .map_err(|_| Failure(ReturnCode::INNER_ERROR))
}

/// Waits for the next event of this process. Not together with a subscription.
pub(crate) fn read_event(
    symbol: &'static str,
    at: At,
    timeout_ms: i32,
    filter: EventFilter,
) -> Result<EventRecord, Failure> {
    let present = session();
    if ATTEMPTED.load(Ordering::SeqCst) {
        let _ignored: Result<Answer, Failure> = present.ask(symbol, at, Query::Pass);
        return Err(Failure(ReturnCode::OCCUPIED));
    }
    let answer = present.ask(symbol, at, Query::FaultEvent(timeout_ms, filter))?;
    let Answer::Event(event) = answer else {
        return Err(Failure(ReturnCode::INNER_ERROR));
    };
    Ok(event)
}

fn begin(call: &Call) -> Result<(Channel, Vec<EventRecord>), CallError> {
    let mut channel = session().link.open()?;
    let Answer::Events(early) = channel.ask(call)? else {
        return Err(Failure(ReturnCode::INNER_ERROR).into());
    };
    channel.wait_without_limit()?;
    Ok((channel, early))
}

/// Hands events over for as long as the boot lasts; a daemon that restarts is found again.
fn receive(mut channel: Channel, call: &Call, mut deliver: impl FnMut(&EventRecord)) {
    loop {
        while let Ok(reply) = channel.next() {
            if let CallReply::Event(event) = reply {
                deliver(&event);
            }
        }
        let mut pause = FIRST_RETRY;
        channel = loop {
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_RETRY);
            match begin(call) {
                Ok((channel, early)) => {
                    early.iter().for_each(&mut deliver);
                    break channel;
                }
                Err(CallError::Refused(_)) => return,
                Err(CallError::Unreachable(_)) => {}
            }
        };
    }
}
