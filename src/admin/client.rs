//! Asking a running agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use crate::domain::history::HistoryRecord;
use crate::domain::status::StatusDocument;
use crate::ports::HistoryQuery;

use super::api::admin_client::AdminClient as Stub;
use super::api::{BackupRequest, HistoryRequest, StatusRequest};

/// Largest answer: a status with some thousand shares, each with a holder, takes several MiB.
const ANSWER_MAX_BYTES: usize = 16 << 20;

const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(10);
/// Copying a store takes as long as its size takes.
const BACKUP: Duration = Duration::from_secs(120);

/// Why a running agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no agent answers on {socket}; is ascend-agent running, and are you root?")]
    NoAgent {
        /// Where it was looked for.
        socket: PathBuf,
        /// The transport's words.
        #[source]
        source: tonic::transport::Error,
    },
    /// The agent refused or failed.
    #[error("the agent answered: {message}")]
    Refused {
        /// Its words.
        message: String,
        /// Its code.
        code: Code,
    },
    /// The answer is not understood.
    #[error("the agent's answer is not understood; are agent and command of one version?")]
    Answer(#[source] serde_json::Error),
}

/// A connection to the admin socket.
#[derive(Clone, Debug)]
pub struct AdminClient {
    stub: Stub<Channel>,
}

impl AdminClient {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(socket: &Path) -> Result<Self, AskError> {
        let no_agent = |source| AskError::NoAgent {
            socket: socket.to_owned(),
            source,
        };
        let channel = Endpoint::from_shared(format!("unix://{}", socket.display()))
            .map_err(no_agent)?
            .connect_timeout(CONNECT)
            .connect()
            .await
            .map_err(no_agent)?;
        Ok(Self {
            stub: Stub::new(channel).max_decoding_message_size(ANSWER_MAX_BYTES),
        })
    }

    /// What the agent knows now.
    ///
    /// # Errors
    /// When it does not answer in 10 s.
    pub async fn status(&self) -> Result<StatusDocument, AskError> {
        let mut request = Request::new(StatusRequest {});
        request.set_timeout(ANSWER);
        let answer = self
            .stub
            .clone()
            .status(request)
            .await
            .map_err(|status| refused(&status))?;
        serde_json::from_str(&answer.into_inner().json).map_err(AskError::Answer)
    }

    /// A page of history, and whether more may follow.
    ///
    /// # Errors
    /// When it does not answer in 10 s.
    pub async fn history(
        &self,
        query: HistoryQuery,
    ) -> Result<(Vec<HistoryRecord>, bool), AskError> {
        let mut request = Request::new(HistoryRequest {
            after_sequence: query.after.map_or(0, |sequence| sequence.0),
            since_utc_ns: query.since_utc_ns.unwrap_or(0),
            until_utc_ns: query.until_utc_ns.unwrap_or(0),
            limit: u32::try_from(query.limit).unwrap_or(0),
        });
        request.set_timeout(ANSWER);
        let answer = self
            .stub
            .clone()
            .history(request)
            .await
            .map_err(|status| refused(&status))?;
        let page = answer.into_inner();
        let records = page
            .records_json
            .iter()
            .map(|json| serde_json::from_str(json))
            .collect::<Result<Vec<_>, _>>()
            .map_err(AskError::Answer)?;
        Ok((records, page.more))
    }

    /// Has the store copied; returns the copy's size in bytes.
    ///
    /// # Errors
    /// When the path exists, cannot be written or takes longer than two minutes.
    pub async fn backup(&self, to: &Path) -> Result<u64, AskError> {
        let mut request = Request::new(BackupRequest {
            path: to.display().to_string(),
        });
        request.set_timeout(BACKUP);
        let answer = self
            .stub
            .clone()
            .backup(request)
            .await
            .map_err(|status| refused(&status))?;
        Ok(answer.into_inner().size_bytes)
    }
}

fn refused(status: &tonic::Status) -> AskError {
    AskError::Refused {
        message: status.message().to_owned(),
        code: status.code(),
    }
}
