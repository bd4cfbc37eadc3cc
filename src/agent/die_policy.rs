//! The multi-die policy of A3 nodes: the configured one is in force under every driver host.

use crate::domain::chip::DiePolicy;
use crate::ports::{Hardware, HardwareError};

/// What is wanted, and what came of it so far.
#[derive(Debug)]
pub(super) struct WantedDiePolicy {
    policy: DiePolicy,
    /// Told in the log; the same outcome under the next driver host is no news.
    told: Option<Result<(), HardwareError>>,
    idle_told: bool,
}

impl WantedDiePolicy {
    pub(super) fn new(policy: DiePolicy) -> Self {
        Self {
            policy,
            told: None,
            idle_told: false,
        }
    }

    /// To be called after every enumeration: the driver is asked once per driver host, and only on
    /// a node with A3 chips.
    pub(super) async fn enforce<H: Hardware>(&mut self, hardware: &H, has_a3: bool) {
        if !has_a3 {
            if self.policy == DiePolicy::Independent && !self.idle_told {
                self.idle_told = true;
                tracing::warn!("single_die_mode has no effect: this node has no A3 chips");
            }
            return;
        }
        let outcome = hardware.set_die_policy(self.policy).await;
        if let Err(HardwareError::Host(cause)) = &outcome {
            // Its end is followed by another enumeration, and that by another try.
            tracing::debug!(cause, "no driver host to set the multi-die policy");
            return;
        }
        if self.told.as_ref() == Some(&outcome) {
            return;
        }
        match &outcome {
            Ok(()) => tracing::info!(policy = %self.policy, "multi-die policy set"),
            Err(error) => tracing::warn!(
                policy = %self.policy,
                %error,
                "the multi-die policy was not taken over: single_die_mode stays without effect"
            ),
        }
        self.told = Some(outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::domain::chip::{ChipSample, Inventory};

    /// Counts what it is asked, and answers the policy so.
    struct Asked {
        policies: Mutex<Vec<DiePolicy>>,
        answer: Result<(), HardwareError>,
    }

    impl Asked {
        fn answering(answer: Result<(), HardwareError>) -> Self {
            Self {
                policies: Mutex::default(),
                answer,
            }
        }

        fn policies(&self) -> Vec<DiePolicy> {
            self.policies.lock().unwrap().clone()
        }
    }

    impl Hardware for Asked {
        async fn inventory(&self, _fresh: bool) -> Result<Inventory, HardwareError> {
            panic!("enumerated")
        }

        async fn sample(&self, _with_processes: bool) -> Result<Vec<ChipSample>, HardwareError> {
            panic!("sampled")
        }

        async fn set_die_policy(&self, policy: DiePolicy) -> Result<(), HardwareError> {
            self.policies.lock().unwrap().push(policy);
            self.answer.clone()
        }
    }

    #[tokio::test]
    async fn a_node_without_a3_chips_is_asked_nothing() {
        let hardware = Asked::answering(Ok(()));
        for policy in [DiePolicy::Union, DiePolicy::Independent] {
            let mut wanted = WantedDiePolicy::new(policy);
            wanted.enforce(&hardware, false).await;
            wanted.enforce(&hardware, false).await;
            assert_eq!(wanted.idle_told, policy == DiePolicy::Independent);
        }
        assert_eq!(hardware.policies(), []);
    }

    #[tokio::test]
    async fn an_a3_node_gets_either_policy_and_a_failure_is_remembered_as_told() {
        for policy in [DiePolicy::Union, DiePolicy::Independent] {
            for answer in [Ok(()), Err(HardwareError::DiePolicy("-8002".to_owned()))] {
                let hardware = Asked::answering(answer.clone());
                let mut wanted = WantedDiePolicy::new(policy);
                wanted.enforce(&hardware, true).await;
                assert_eq!(hardware.policies(), [policy]);
                assert_eq!(wanted.told, Some(answer));
            }
        }
    }

    #[tokio::test]
    async fn a_driver_host_that_ended_meanwhile_says_nothing_about_the_policy() {
        let hardware = Asked::answering(Err(HardwareError::Host("it ended".to_owned())));
        let mut wanted = WantedDiePolicy::new(DiePolicy::Independent);
        wanted.enforce(&hardware, true).await;
        assert_eq!(wanted.told, None);
        assert_eq!(hardware.policies(), [DiePolicy::Independent]);
    }
}
