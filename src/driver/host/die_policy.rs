//! The multi-die policy is set on a thread of its own: nobody knows how long the firmware takes, and
//! a call that hangs must hold up no enumeration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use super::lane::Context;
use crate::domain::chip::DiePolicy;
use crate::driver::protocol::Report;

/// Invariant: at most one call is under way.
pub(super) struct DiePolicyDoor {
    context: Arc<Context>,
    reports: SyncSender<Report>,
    calling: Arc<AtomicBool>,
}

impl DiePolicyDoor {
    pub(super) fn new(context: Arc<Context>, reports: SyncSender<Report>) -> Self {
        Self {
            context,
            reports,
            calling: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The outcome becomes a report. False when nobody takes reports any more.
    pub(super) fn set(&self, id: u64, policy: DiePolicy) -> bool {
        if self.calling.swap(true, Ordering::AcqRel) {
            return self.refuse(id, "an earlier call has not come back".to_owned());
        }
        let (context, reports) = (Arc::clone(&self.context), self.reports.clone());
        let calling = Arc::clone(&self.calling);
        let started = super::spawn("die policy", move || {
            let result = context.dcmi.set_die_policy(policy);
            let result = result.map_err(|error| error.to_string());
            // Before the report, so that whoever has read it can ask again.
            calling.store(false, Ordering::Release);
            // A closed queue means that the process is ending.
            let _sent = reports.send(Report::DiePolicySet { id, result });
        });
        match started {
            Ok(_thread) => true,
            Err(error) => {
                self.calling.store(false, Ordering::Release);
                self.refuse(id, error.to_string())
            }
        }
    }

    fn refuse(&self, id: u64, why: String) -> bool {
        let result = Err(why);
        self.reports
            .send(Report::DiePolicySet { id, result })
            .is_ok()
    }
}
