//! One connection: control requests, driver calls, and the wait of held calls and subscribers.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv, sockopt};
use serde_json::Value;

use super::{Daemon, describe};
use crate::clock;
use crate::hardware::{Hardware, Inbox, ReadEvent};
use crate::wire::{
    Answer, Call, CallReply, Control, ControlReply, EventFilter, Failure, FrameError, LineReader,
    MAX_REQUEST_BYTES, Query, ReturnCode, SYMBOLS, Unit, write_line,
};

/// A waiting thread looks this often whether its peer is still there.
const TICK: Duration = Duration::from_millis(50);
/// A peer that does not read for so long is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Connection<'a> {
    daemon: &'a Daemon,
    number: u64,
    pid: i32,
    attached: bool,
    stream: &'a UnixStream,
}

impl<'a> Connection<'a> {
    /// Serves until the peer leaves, then takes every trace of it out of the machine.
    pub(super) fn serve(daemon: &'a Daemon, number: u64, stream: &'a UnixStream) {
        let Ok(credentials) = sockopt::socket_peercred(stream.as_fd()) else {
            return;
        };
        let pid = credentials.pid.as_raw_nonzero().get();
        let mut connection = Connection {
            daemon,
            number,
            pid,
            attached: false,
            stream,
        };
        // However it ended, what follows is the same.
        let _ended: Result<(), FrameError> = connection.exchange();
        let mut hardware = daemon.hardware();
        hardware.events.unsubscribe(number);
        if connection.attached && hardware.calls.detach(pid) {
            hardware.events.close_reader(pid);
            hardware.forget_process(pid);
        }
    }

    fn exchange(&mut self) -> Result<(), FrameError> {
        self.stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let mut lines = LineReader::new(self.stream, MAX_REQUEST_BYTES);
        loop {
            let line = lines.next_line()?;
            let request: Result<Value, _> = serde_json::from_slice(&line);
            match request {
                Ok(request) if request.get("call").is_some() => {
                    let call = request.get("call").cloned().unwrap_or_default();
                    self.call(&serde_json::from_value(call)?)?;
                }
                Ok(request) => self.control(serde_json::from_value(request))?,
                Err(error) => self.control(Err(error))?,
            }
        }
    }

    fn control(&self, request: Result<Control, serde_json::Error>) -> Result<(), FrameError> {
        let outcome = match request {
            Ok(request) => self
                .daemon
                .control(request)
                .map_err(|error| describe(&error)),
            Err(error) => Err(format!("not a control request: {error}")),
        };
        let reply = match outcome {
            Ok(data) => ControlReply {
                ok: true,
                error: None,
                data,
            },
            Err(error) => ControlReply {
                ok: false,
                error: Some(error),
                data: None,
            },
        };
        write_line(self.stream, &reply)
    }

    fn call(&mut self, call: &Call) -> Result<(), FrameError> {
        if !SYMBOLS.contains(&call.symbol.as_str()) {
            return self.done(Err(Failure(ReturnCode::NOT_SUPPORTED)));
        }
        {
            let mut hardware = self.daemon.hardware();
            if !self.attached {
                hardware.calls.attach(self.pid);
                self.attached = true;
            }
            hardware.calls.count(self.pid, &call.symbol);
        }
        let mut hardware = self.wait_for_release(call)?;
        if matches!(call.query, Query::Change(_)) {
            drop(hardware);
            let outcome = self.daemon.change(call, self.pid);
            return self.finish(call, outcome);
        }
        let now = clock::now();
        let admitted = hardware.admit(call, now);
        if let Err(failure) = admitted {
            drop(hardware);
            return self.finish(call, Err(failure));
        }
        match call.query {
            Query::Subscribe(filter) => {
                drop(hardware);
                self.subscribe(call, filter)
            }
            Query::FaultEvent(timeout_ms, filter) => {
                drop(hardware);
                self.read_event(call, timeout_ms, filter)
            }
            Query::Pass
            | Query::Init
            | Query::LibraryVersion
            | Query::DriverVersion
            | Query::ErrorText(_)
            | Query::Node(_)
            | Query::Change(_)
            | Query::Chip(_) => {
                let answer = hardware.answer(call, now);
                drop(hardware);
                self.finish(call, answer)
            }
        }
    }

    /// Not to be called with the machine locked.
    fn done(&self, outcome: Result<Answer, Failure>) -> Result<(), FrameError> {
        let (code, answer) = match outcome {
            Ok(answer) => (ReturnCode::OK, Some(answer)),
            Err(Failure(code)) => (code, None),
        };
        let quirks = self.daemon.hardware().quirks();
        let reply = CallReply::Done {
            code,
            answer,
            quirks,
        };
        write_line(self.stream, &reply)
    }

    /// Waits while a hang or latency rule covers the call. Rules are looked at anew each time,
    /// so a release or a shorter latency takes effect on calls already waiting.
    fn wait_for_release(&self, call: &Call) -> Result<MutexGuard<'a, Hardware>, FrameError> {
        let begun = clock::now().instant;
        self.wait_while(call, |hardware| waiting_time(hardware, call, begun))
    }

    /// Answers a call that was carried out, once no rule holds the answer.
    fn finish(&self, call: &Call, outcome: Result<Answer, Failure>) -> Result<(), FrameError> {
        let wait = |hardware: &Hardware| {
            if hardware.is_answer_held(call) {
                TICK
            } else {
                Duration::ZERO
            }
        };
        drop(self.wait_while(call, wait)?);
        self.done(outcome)
    }

    fn wait_while(
        &self,
        call: &Call,
        waiting_time: impl Fn(&Hardware) -> Duration,
    ) -> Result<MutexGuard<'a, Hardware>, FrameError> {
        let mut hardware = self.daemon.hardware();
        if waiting_time(&hardware).is_zero() {
            return Ok(hardware);
        }
        let held = hardware.calls.begin_hold(self.pid, &call.symbol);
        drop(hardware);
        let told = write_line(self.stream, &CallReply::Hold);
        hardware = self.daemon.hardware();
        let mut outcome = told;
        while outcome.is_ok() {
            let wait = waiting_time(&hardware);
            if wait.is_zero() {
                break;
            }
            hardware = self.pause(hardware, wait.min(TICK));
            if self.peer_left() {
                outcome = Err(FrameError::Closed);
            }
        }
        hardware.calls.end_hold(held);
        outcome.map(|()| hardware)
    }

    fn pause(
        &self,
        hardware: MutexGuard<'a, Hardware>,
        wait: Duration,
    ) -> MutexGuard<'a, Hardware> {
        let woken = self.daemon.changed.wait_timeout(hardware, wait);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn subscribe(&self, call: &Call, filter: EventFilter) -> Result<(), FrameError> {
        let inbox = Inbox::new(self.pid, filter, slot_of(call.unit));
        let early = self.daemon.hardware().events.subscribe(self.number, inbox);
        let Some(early) = early else {
            return self.finish(call, Err(Failure(ReturnCode::OCCUPIED)));
        };
        self.finish(call, Ok(Answer::Events(early)))?;
        let mut hardware = self.daemon.hardware();
        loop {
            let Some(events) = hardware.events.take(self.number) else {
                return Err(FrameError::Closed);
            };
            if events.is_empty() {
                hardware = self.pause(hardware, TICK);
                if self.peer_left() {
                    return Err(FrameError::Closed);
                }
                continue;
            }
            drop(hardware);
            for event in events {
                write_line(self.stream, &CallReply::Event(event))?;
            }
            hardware = self.daemon.hardware();
        }
    }

    fn read_event(
        &self,
        call: &Call,
        timeout_ms: i32,
        filter: EventFilter,
    ) -> Result<(), FrameError> {
        let begun = clock::now().instant;
        // A negative limit means none.
        let limit = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        write_line(self.stream, &CallReply::Hold)?;
        let mut hardware = self.daemon.hardware();
        hardware.events.open_reader(self.pid);
        let outcome = loop {
            match hardware.events.read(self.pid, filter, slot_of(call.unit)) {
                ReadEvent::Closed => break Err(Failure(ReturnCode::INNER_ERROR)),
                ReadEvent::Waiting(event) => break Ok(Answer::Event(event)),
                ReadEvent::Empty => {}
            }
            let passed = clock::now().instant.saturating_duration_since(begun);
            let left = limit.map_or(TICK, |limit| limit.saturating_sub(passed));
            if left.is_zero() {
                break Err(Failure(ReturnCode::TIMEOUT));
            }
            hardware = self.pause(hardware, left.min(TICK));
            if self.peer_left() {
                return Err(FrameError::Closed);
            }
        };
        drop(hardware);
        self.finish(call, outcome)
    }

    fn peer_left(&self) -> bool {
        let mut byte = [0_u8; 1];
        match recv(
            self.stream,
            &mut byte,
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        ) {
            Ok((length, _)) => length == 0,
            Err(error) => error != rustix::io::Errno::AGAIN && error != rustix::io::Errno::INTR,
        }
    }
}

/// How long the call still has to wait, zero when it may go on.
fn waiting_time(hardware: &Hardware, call: &Call, begun: Instant) -> Duration {
    if hardware.is_held(call) {
        return TICK;
    }
    let passed = clock::now().instant.saturating_duration_since(begun);
    hardware
        .delay(call)
        .unwrap_or_default()
        .saturating_sub(passed)
}

fn slot_of(unit: Option<Unit>) -> Option<usize> {
    match unit {
        Some(Unit::Chip(slot)) => Some(slot),
        Some(Unit::Card(_) | Unit::Mcu(_)) | None => None,
    }
}
