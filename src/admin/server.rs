//! Serving operators.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::domain::ids::CommitSequence;
use crate::ports::{
    Administration, AdministrationError, HISTORY_PAGE_MAX, HistoryQuery, JournalError,
};

use super::api::admin_server::{Admin, AdminServer};
use super::api::{
    BackupRequest, BackupResponse, HistoryRequest, HistoryResponse, StatusRequest, StatusResponse,
};

/// Operators at once; each may have a page of history in memory.
const CONCURRENT: usize = 8;

/// A connection that is not taken by then is not refused either: somebody is there.
const ANSWER: Duration = Duration::from_secs(1);

/// Why the admin socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The socket cannot be made.
    #[error(
        "admin socket {path} cannot be made; set admin_socket to a place this user may write to"
    )]
    Bind {
        /// Where.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// Another agent answers there.
    #[error("another agent serves {path}; stop it, or give this one an admin_socket of its own")]
    InUse {
        /// Where.
        path: PathBuf,
    },
}

/// Starts serving; ends with the token.
///
/// # Errors
/// When the socket cannot be made, or another agent serves it.
pub async fn serve(
    socket: &Path,
    administration: impl Administration,
    tracker: &TaskTracker,
    cancel: &CancellationToken,
) -> Result<(), AdminError> {
    // Who is killed leaves a socket on which nobody listens.
    if is_served(socket).await {
        return Err(AdminError::InUse {
            path: socket.to_owned(),
        });
    }
    let refused = |source| AdminError::Bind {
        path: socket.to_owned(),
        source,
    };
    let listener = bind(socket).map_err(refused)?;
    let own = place(socket).map_err(refused)?;
    let socket = socket.to_owned();
    let cancel = cancel.clone();
    tracker.spawn(async move {
        let served = Server::builder()
            .concurrency_limit_per_connection(CONCURRENT)
            .add_service(AdminServer::new(Desk { administration }))
            .serve_with_incoming_shutdown(UnixListenerStream::new(listener), cancel.cancelled())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the admin socket is not served any more");
        }
        if place(&socket).is_ok_and(|now| now == own) {
            // What is left is removed by the next agent.
            let _ = fs::remove_file(&socket);
        }
    });
    Ok(())
}

/// Whether somebody listens there; one who is too busy to take the connection does.
async fn is_served(socket: &Path) -> bool {
    match timeout(ANSWER, UnixStream::connect(socket)).await {
        Ok(Ok(_)) | Err(_) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Which file it is: another agent may have put its own there.
fn place(socket: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(socket)?;
    Ok((meta.dev(), meta.ino()))
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = socket.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::symlink_metadata(socket) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(socket)?,
        Ok(_) => return Err(io::Error::other("something else than a socket lies there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

struct Desk<A> {
    administration: A,
}

#[tonic::async_trait]
impl<A: Administration> Admin for Desk<A> {
    async fn status(
        &self,
        _request: Request<StatusRequest>,
    ) -> Result<Response<StatusResponse>, Status> {
        let document = self
            .administration
            .status()
            .await
            .map_err(|error| status_of(&error))?;
        let json = serde_json::to_string(&document).map_err(|error| unprintable(&error))?;
        Ok(Response::new(StatusResponse { json }))
    }

    async fn history(
        &self,
        request: Request<HistoryRequest>,
    ) -> Result<Response<HistoryResponse>, Status> {
        let asked = request.into_inner();
        let limit = usize::try_from(asked.limit).unwrap_or(HISTORY_PAGE_MAX);
        let limit = if limit == 0 {
            HISTORY_PAGE_MAX
        } else {
            limit.min(HISTORY_PAGE_MAX)
        };
        let query = HistoryQuery {
            after: (asked.after_sequence > 0).then_some(CommitSequence(asked.after_sequence)),
            since_utc_ns: (asked.since_utc_ns != 0).then_some(asked.since_utc_ns),
            until_utc_ns: (asked.until_utc_ns != 0).then_some(asked.until_utc_ns),
            limit,
        };
        let records = self
            .administration
            .history(query)
            .await
            .map_err(|error| status_of(&error))?;
        let more = records.len() >= limit;
        let records_json = records
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unprintable(&error))?;
        Ok(Response::new(HistoryResponse { records_json, more }))
    }

    async fn backup(
        &self,
        request: Request<BackupRequest>,
    ) -> Result<Response<BackupResponse>, Status> {
        let path = request.into_inner().path;
        if !Path::new(&path).is_absolute() {
            return Err(Status::invalid_argument(format!(
                "{path:?} is not an absolute path"
            )));
        }
        let size_bytes = self
            .administration
            .backup(PathBuf::from(&path))
            .await
            .map_err(|error| status_of(&error))?;
        Ok(Response::new(BackupResponse { path, size_bytes }))
    }
}

fn status_of(error: &AdministrationError) -> Status {
    let text = error.to_string();
    match error {
        AdministrationError::NoAnswer { .. } => Status::deadline_exceeded(text),
        AdministrationError::Journal(JournalError::Request(_)) => Status::invalid_argument(text),
        AdministrationError::Journal(_) => Status::unavailable(text),
    }
}

fn unprintable(error: &serde_json::Error) -> Status {
    Status::internal(format!("the answer cannot be written as JSON: {error}"))
}
