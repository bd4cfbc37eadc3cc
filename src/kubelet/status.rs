//! The one place where a gRPC status is made.

use std::time::Duration;

use tonic::Status;

use crate::domain::offer::Refusal;

/// Longest text sent to kubelet, in characters: it ends up in the pod's status.
const STATUS_TEXT_MAX_CHARS: usize = 1024;

/// Why a call of kubelet was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallFailure {
    /// The answer is no.
    #[error("{0}")]
    Refused(Refusal),
    /// Our own budget ran out.
    #[error("no answer within {budget:?}; recreate the pod")]
    Overran {
        /// The budget.
        budget: Duration,
    },
    /// The code that answers broke.
    #[error("internal fault while answering; see the agent's log")]
    Broke,
    /// Kubelet called what it was told not to call.
    #[error("{call} was not asked for at registration")]
    NotAskedFor {
        /// The method.
        call: &'static str,
    },
    /// The generation this call came in on has ended.
    #[error("this registration has ended")]
    Ended,
}

impl From<Refusal> for CallFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<CallFailure> for Status {
    fn from(failure: CallFailure) -> Self {
        let text: String = failure
            .to_string()
            .chars()
            .take(STATUS_TEXT_MAX_CHARS)
            .collect();
        match failure {
            CallFailure::Refused(refusal) => match refusal {
                Refusal::Invalid(_) | Refusal::UnknownDevice { .. } => Self::invalid_argument(text),
                Refusal::Unhealthy { .. }
                | Refusal::Held { .. }
                | Refusal::HolderUnproven { .. }
                | Refusal::Injection(_) => Self::failed_precondition(text),
                Refusal::StoreUnavailable { .. } | Refusal::NotReady { .. } => {
                    Self::unavailable(text)
                }
            },
            CallFailure::Overran { .. } => Self::deadline_exceeded(text),
            CallFailure::Broke => Self::internal(text),
            CallFailure::NotAskedFor { .. } => Self::unimplemented(text),
            CallFailure::Ended => Self::unavailable(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::domain::ids::PluginDeviceId;
    use crate::domain::offer::InvalidRequest;

    #[test]
    fn every_refusal_has_its_code_and_keeps_its_text() {
        let id = PluginDeviceId::new("Ascend910-3").unwrap();
        let holder = "default/a container b".to_owned();
        let cause = "x".to_owned();
        let cases = [
            (
                Refusal::Invalid(InvalidRequest::NoContainer),
                Code::InvalidArgument,
            ),
            (
                Refusal::UnknownDevice { id: "q".into() },
                Code::InvalidArgument,
            ),
            (
                Refusal::Unhealthy {
                    id: id.clone(),
                    reason: "lost".into(),
                },
                Code::FailedPrecondition,
            ),
            (
                Refusal::Held {
                    id: id.clone(),
                    holder: holder.clone(),
                },
                Code::FailedPrecondition,
            ),
            (
                Refusal::HolderUnproven {
                    id,
                    holder,
                    cause: cause.clone(),
                },
                Code::FailedPrecondition,
            ),
            (
                Refusal::Injection("no node".into()),
                Code::FailedPrecondition,
            ),
            (
                Refusal::StoreUnavailable {
                    cause: cause.clone(),
                },
                Code::Unavailable,
            ),
            (Refusal::NotReady { cause }, Code::Unavailable),
        ];
        for (refusal, code) in cases {
            let text = refusal.to_string();
            let status = Status::from(CallFailure::from(refusal));
            assert_eq!((status.code(), status.message()), (code, text.as_str()));
        }
    }

    #[test]
    fn an_overrun_reads_deadline_exceeded() {
        let budget = Duration::from_secs(10);
        let status = Status::from(CallFailure::Overran { budget });
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }

    #[test]
    fn a_very_long_text_is_cut() {
        let status = Status::from(CallFailure::from(Refusal::Injection("x".repeat(100_000))));
        assert_eq!(status.message().len(), STATUS_TEXT_MAX_CHARS);
    }
}
