//! The running agent, which answers for the driver, kubelet and the store.

use std::path::Path;

use crate::admin::{AdminClient, AskError};
use crate::domain::status::StatusDocument;

use super::finding::Finding;

const WHAT: &str = "agent";

/// What the admin socket said.
#[derive(Clone, Debug)]
pub(super) enum Agent {
    Running(Box<StatusDocument>),
    /// Nobody listens.
    Absent,
    /// Somebody listens and gives no good answer.
    Mute(String),
}

impl Agent {
    pub(super) fn status(&self) -> Option<&StatusDocument> {
        match self {
            Self::Running(status) => Some(status),
            Self::Absent | Self::Mute(_) => None,
        }
    }
}

pub(super) fn ask(socket: &Path) -> Agent {
    let answer = block_on(async { AdminClient::connect(socket).await?.status().await });
    match answer {
        Ok(Ok(status)) => Agent::Running(Box::new(status)),
        Ok(Err(AskError::NoAgent { .. })) => Agent::Absent,
        Ok(Err(error)) => Agent::Mute(error.to_string()),
        Err(cause) => Agent::Mute(cause),
    }
}

/// Runs a question to its end on the calling thread.
pub(super) fn block_on<T>(question: impl Future<Output = T>) -> Result<T, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map(|runtime| runtime.block_on(question))
        .map_err(|error| format!("no event loop can be had: {error}"))
}

pub(super) fn judge(agent: &Agent) -> Finding {
    match agent {
        Agent::Running(status) if status.ready => Finding::ok(
            WHAT,
            format!("version {} runs and is ready", status.version),
        ),
        Agent::Running(status) => Finding::warn(
            WHAT,
            format!(
                "version {} runs and is not ready: {}",
                status.version,
                status.shortcomings.join("; ")
            ),
            "see the findings below and `ascend-agent status`",
        ),
        Agent::Absent => Finding::warn(
            WHAT,
            "none answers on the admin socket",
            "start it when nothing below fails; when it runs, give doctor its configuration and be root",
        ),
        Agent::Mute(cause) => Finding::fail(
            WHAT,
            cause.clone(),
            "see its log; it is stopped or hangs, or is of another version than this program",
        ),
    }
}
