//! Single looks at kubelet, for `doctor`: nothing is registered, changed or kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Code, Status};
use uuid::Uuid;

use super::api::deviceplugin::Empty;
use super::api::deviceplugin::device_plugin_client::DevicePluginClient;
use super::api::podresources as records;
use super::config::SocketOwner;
use super::pod_resources::{ANSWER_MAX_BYTES, dial};
use super::socket_dir::{SocketDir, SocketDirError};

/// Kubelet answers in milliseconds.
const ANSWER: Duration = Duration::from_secs(2);

/// Why kubelet could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The socket or its folder is not what it must be.
    #[error(transparent)]
    Place(#[from] SocketDirError),
    /// Nobody listens.
    #[error("nobody listens on {socket}; is kubelet running?")]
    Dial {
        /// The socket.
        socket: PathBuf,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// Somebody listens and is silent.
    #[error("{socket} gave no answer within {} s", ANSWER.as_secs())]
    Deadline {
        /// The socket.
        socket: PathBuf,
    },
    /// It refused.
    #[error("{socket} answered {code:?}: {message}")]
    Answer {
        /// The socket.
        socket: PathBuf,
        /// Code.
        code: Code,
        /// Its words.
        message: String,
    },
}

/// What pod-resources told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordsLook {
    /// Pods listed.
    pub pods: usize,
    /// Whether it knows the call `Get`, which came with kubelet 1.27, switched off at first.
    pub knows_get: bool,
}

/// Whether the folder of device-plugin sockets may be trusted: a folder of root's, reached without
/// links.
///
/// # Errors
/// The first rule it breaks.
pub fn look_at_folder(folder: &Path) -> Result<(), SocketDirError> {
    of_root(folder).check()
}

/// Whether kubelet's registry socket may be trusted and answers. A call is made that it does not know,
/// so that nothing is registered; to refuse it, it must be alive.
///
/// # Errors
/// A rule the socket breaks, or how it failed to answer.
pub async fn look_at_registry(socket: &Path) -> Result<(), LookError> {
    of_root(socket.parent().unwrap_or(socket)).check_socket(socket)?;
    let ask = async |channel| {
        let mut client = DevicePluginClient::new(channel);
        match client.get_device_plugin_options(Empty {}).await {
            Err(status) if status.code() != Code::Unimplemented => Err(status),
            Ok(_) | Err(_) => Ok(()),
        }
    };
    within(socket, ask).await
}

/// Lists the pods, and tries the call `Get` with a pod that cannot exist.
///
/// # Errors
/// How it failed to answer.
pub async fn look_at_records(socket: &Path) -> Result<RecordsLook, LookError> {
    socket
        .symlink_metadata()
        .map_err(|_| SocketDirError::Missing {
            path: socket.to_path_buf(),
        })?;
    let ask = async |channel| {
        let mut client =
            records::pod_resources_lister_client::PodResourcesListerClient::new(channel)
                .max_decoding_message_size(ANSWER_MAX_BYTES);
        let listed = client.list(records::ListPodResourcesRequest {}).await?;
        let nobody = records::GetPodResourcesRequest::default();
        let got = client.get(nobody).await;
        Ok(RecordsLook {
            pods: listed.into_inner().pod_resources.len(),
            knows_get: !got.is_err_and(|status| status.code() == Code::Unimplemented),
        })
    };
    within(socket, ask).await
}

fn of_root(folder: &Path) -> SocketDir {
    let owner = SocketOwner { uid: 0, gid: 0 };
    SocketDir::new(folder.to_path_buf(), owner, Uuid::nil())
}

/// Dials and asks, both within the deadline.
async fn within<T>(
    socket: &Path,
    ask: impl AsyncFnOnce(Channel) -> Result<T, Status>,
) -> Result<T, LookError> {
    let socket = socket.to_path_buf();
    let asked = tokio::time::timeout(ANSWER, async {
        let channel = dial(&socket).await.map_err(|source| LookError::Dial {
            socket: socket.clone(),
            source,
        })?;
        ask(channel).await.map_err(|status| LookError::Answer {
            socket: socket.clone(),
            code: status.code(),
            message: status.message().to_owned(),
        })
    });
    match asked.await {
        Ok(answer) => answer,
        Err(_) => Err(LookError::Deadline { socket }),
    }
}
