//! Fault events of the library's own thread.
//!
//! The callback runs on a thread this program did not make: it copies, tries to queue, counts what
//! does not fit, and returns. There is one subscription in a process and no way to end it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use super::call::Dcmi;
use super::code::CallError;
use super::layout::{DmsFaultEvent, EVENT_TYPE_DMS_FAULT, Event};
use crate::domain::chip::DcmiApi;
use crate::domain::fault::{Assertion, FaultCode, FaultEvent, Severity};
use crate::domain::ids::LogicId;

static QUEUE: OnceLock<SyncSender<FaultEvent>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Why no events will come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// This process tried before; the library would hide the true cause behind -8020.
    #[error("this process has subscribed already; only a new driver host can try again")]
    Again,
    /// The driver refused.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Subscribes to the events of all chips. Events can arrive in `queue` before this returns.
///
/// # Errors
/// It was tried before in this process, or the driver refused.
pub fn subscribe(
    dcmi: &Dcmi,
    api: DcmiApi,
    queue: SyncSender<FaultEvent>,
) -> Result<(), SubscribeError> {
    QUEUE.set(queue).map_err(|_| SubscribeError::Again)?;
    Ok(dcmi.subscribe(api)?)
}

/// Events that did not fit into the queue since the last call of this function.
#[must_use]
pub fn take_dropped() -> u64 {
    DROPPED.swap(0, Ordering::Relaxed)
}

/// What the library calls. A null pointer and kinds other than faults are ignored.
pub(super) extern "C" fn on_event(event: *mut Event) {
    // Unwinding into the vendor's code would abort the process.
    let _ended = catch_unwind(AssertUnwindSafe(|| {
        if event.is_null() {
            return;
        }
        // SAFETY: the pointer is not null and points to the library's event buffer, which is valid
        // and unchanged until this function returns; every bit pattern is a valid `Event`.
        let event = unsafe { event.read_unaligned() };
        let Some(fault) = fault_of(&event) else {
            return;
        };
        let queued = QUEUE
            .get()
            .is_some_and(|queue| queue.try_send(fault).is_ok());
        if !queued {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }));
}

fn fault_of(event: &Event) -> Option<FaultEvent> {
    let DmsFaultEvent {
        event_id,
        device_id,
        severity,
        assertion,
        ..
    } = event.fault;
    // Code 0 is meaningless by the vendor's own rule.
    (event.kind == EVENT_TYPE_DMS_FAULT && event_id != 0).then(|| FaultEvent {
        logic: LogicId(device_id.into()),
        code: FaultCode(event_id),
        severity: Severity(severity),
        assertion: Assertion::from(assertion),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, event_id: u32) -> Event {
        Event {
            kind,
            fault: DmsFaultEvent {
                event_id,
                device_id: 5,
                node_type: 0,
                node_id: 0,
                sub_node_type: 0,
                sub_node_id: 0,
                severity: 2,
                assertion: 1,
                event_serial: 0,
                notify_serial: 0,
                raised_time: 0,
                event_name: [0; 256],
                additional: [0; 32],
                reserved: [0; 32],
            },
        }
    }

    #[test]
    fn an_event_keeps_chip_code_severity_and_assertion() {
        let fault = fault_of(&event(0, 0x80E0_1801)).unwrap();
        assert_eq!(fault.logic, LogicId(5));
        assert_eq!(fault.code, FaultCode(0x80E0_1801));
        assert_eq!(fault.severity, Severity::MAJOR);
        assert_eq!(fault.assertion, Assertion::Occurred);
    }

    #[test]
    fn code_zero_and_unknown_kinds_are_ignored() {
        assert_eq!(fault_of(&event(0, 0)), None);
        assert_eq!(fault_of(&event(9, 1)), None);
        on_event(std::ptr::null_mut());
    }
}
