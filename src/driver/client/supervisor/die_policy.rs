//! The multi-die policy: asked of each host once, its outcome remembered with the host.

use std::time::Duration;

use super::{Flight, Reply, Supervisor, answer};
use crate::domain::chip::DiePolicy;
use crate::driver::moment::Moment;
use crate::driver::protocol::Request;
use crate::ports::HardwareError;

/// Far beyond any call of this library that answers at all and does not reset chips.
const DEADLINE: Duration = Duration::from_secs(5);

/// How far one host is with the policy.
#[derive(Debug)]
pub(super) enum PolicyState {
    NeverAsked,
    Asked {
        policy: DiePolicy,
        flight: Flight<Reply<()>>,
    },
    Answered {
        policy: DiePolicy,
        result: Result<(), HardwareError>,
    },
}

impl PolicyState {
    pub(super) fn until(&self) -> Option<Moment> {
        match self {
            Self::Asked { flight, .. } => Some(flight.until),
            Self::NeverAsked | Self::Answered { .. } => None,
        }
    }

    /// Answers what is overdue; a later answer of the host counts no more.
    pub(super) fn expire(&mut self, now: Moment) {
        if self.until().is_some_and(|until| until <= now) {
            self.settle(Err(HardwareError::Deadline { within: DEADLINE }));
        }
    }

    /// Ends a call under way, if there is one.
    pub(super) fn settle(&mut self, result: Result<(), HardwareError>) {
        let Self::Asked { policy, .. } = *self else {
            return;
        };
        let answered = Self::Answered {
            policy,
            result: result.clone(),
        };
        if let Self::Asked { flight, .. } = std::mem::replace(self, answered) {
            answer(flight.wanted_by, result);
        }
    }
}

impl Supervisor {
    pub(super) fn want_die_policy(&mut self, policy: DiePolicy, reply: Reply<()>) {
        let id = self.take_id();
        let ready = self.host.as_mut().filter(|host| host.current.is_some());
        let Some(host) = ready else {
            let text = "none is ready to set the multi-die policy".to_owned();
            return answer(reply, Err(HardwareError::Host(text)));
        };
        match &host.die_policy {
            PolicyState::Asked { .. } => {
                let text = "an earlier change has not come back".to_owned();
                return answer(reply, Err(HardwareError::DiePolicy(text)));
            }
            PolicyState::Answered {
                policy: known,
                result,
            } if *known == policy => return answer(reply, result.clone()),
            PolicyState::NeverAsked | PolicyState::Answered { .. } => {}
        }
        host.die_policy = PolicyState::Asked {
            policy,
            flight: Flight {
                id,
                until: Moment::now().after(DEADLINE),
                wanted_by: reply,
            },
        };
        // A broken channel is followed by word of the host's end.
        let _sent = host.process.send(&Request::SetDiePolicy { id, policy });
    }

    pub(super) fn take_die_policy(&mut self, id: u64, result: Result<(), String>) {
        let Some(host) = &mut self.host else { return };
        if matches!(&host.die_policy, PolicyState::Asked { flight, .. } if flight.id == id) {
            host.die_policy
                .settle(result.map_err(HardwareError::DiePolicy));
        }
    }
}
