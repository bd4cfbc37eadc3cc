//! How hosts end: by themselves, replaced, or with the agent.

use std::sync::mpsc::RecvTimeoutError;

use tracing::warn;

use super::super::process::REAP_POLL;
use super::{REAP_PATIENCE, Supervisor, answer};
use crate::driver::moment::Moment;
use crate::ports::{HardwareError, HardwareNotice};

impl Supervisor {
    /// The host ended by itself.
    pub(super) fn bury(&mut self, cause: &str) {
        let began = Moment::now();
        let Some(mut host) = self.host.take() else {
            return;
        };
        let mut ending = host.process.kill();
        let mut status = None;
        while status.is_none() && Moment::now().since(began) < REAP_PATIENCE {
            status = ending.reaped(Moment::now());
            if status.is_none() {
                std::thread::sleep(REAP_POLL);
            }
        }
        let cause = status.unwrap_or_else(|| {
            self.ending.push(ending);
            cause.to_owned()
        });
        self.pauses.died(Moment::now());
        let error = HardwareError::Host(format!("it ended during the call ({cause})"));
        if host.current.is_none() {
            for waiting in self.inventories.drain(..) {
                answer(waiting.reply, Err(error.clone()));
            }
        } else {
            self.tell_end(host.epoch, &cause);
        }
        for reply in host
            .sampling
            .into_iter()
            .flat_map(|flight| flight.wanted_by)
        {
            answer(reply, Err(error.clone()));
        }
        host.die_policy.settle(Err(error));
    }

    /// Ends the host and starts another as soon as the loop comes round.
    pub(super) fn replace(&mut self, cause: &str, orderly: bool) {
        self.retire(cause, orderly);
        self.wanted = true;
    }

    pub(super) fn retire(&mut self, cause: &str, orderly: bool) {
        let Some(mut host) = self.host.take() else {
            return;
        };
        let kill_at = Moment::now().after(self.config.close_deadline);
        let process = host.process;
        self.ending.push(if orderly {
            process.close(kill_at)
        } else {
            process.kill()
        });
        if host.current.is_some() {
            self.tell_end(host.epoch, cause);
        }
        let error = HardwareError::Host(format!("it was replaced ({cause})"));
        for reply in host
            .sampling
            .into_iter()
            .flat_map(|flight| flight.wanted_by)
        {
            answer(reply, Err(error.clone()));
        }
        host.die_policy.settle(Err(error));
    }

    fn tell_end(&mut self, epoch: u64, cause: &str) {
        warn!(epoch, cause, "driver host ended");
        self.notices.push(HardwareNotice::HostEnded {
            cause: cause.to_owned(),
        });
    }

    /// Ends every host. One that hangs inside the kernel is left to it.
    pub(super) fn close(mut self) {
        self.retire("the agent closes", true);
        let limit = self.config.close_deadline.saturating_add(REAP_PATIENCE);
        let give_up = Moment::now().after(limit);
        while !self.ending.is_empty() && Moment::now() < give_up {
            let now = Moment::now();
            self.ending
                .retain_mut(|ending| ending.reaped(now).is_none());
            // The reading thread must not stand in the way of the host's last words.
            match self.inbox.recv_timeout(REAP_POLL) {
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }
}
