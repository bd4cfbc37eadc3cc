//! One registration generation: its socket, its server, its Register call, its orderly end.

use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Server};
use tracing::warn;

use super::api::deviceplugin as wire;
use super::api::deviceplugin::device_plugin_client::DevicePluginClient;
use super::api::deviceplugin::device_plugin_server::DevicePluginServer;
use super::api::deviceplugin::registration_client::RegistrationClient;
use super::claim::ClaimError;
use super::connection;
use super::list_stream::StreamCounts;
use super::messages;
use super::pod_resources::dial;
use super::service::PluginService;
use super::socket_dir::{self, FileIdentity, SocketDirError};
use crate::domain::ids::ResourceName;
use crate::ports::Allocations;

/// Largest message either way, as kubelet's own client has it.
const MESSAGE_MAX_BYTES: usize = 4 << 20;

const STREAMS_MAX: u32 = 64;

/// Calls of one connection worked on at a time; kubelet makes one.
const CALLS_MAX: usize = 64;

/// The answer of our own server to ourselves.
const SELF_CHECK_DEADLINE: Duration = Duration::from_secs(1);

/// What ended streams and severed connections need to be noticed.
const END_DEADLINE: Duration = Duration::from_millis(500);

/// Why a generation could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Kubelet's socket does not answer.
    #[error("kubelet's registry socket {path} cannot be dialled")]
    Dial {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// A step took too long.
    #[error("{step} did not end within {within:?}")]
    Deadline {
        /// Which.
        step: &'static str,
        /// The deadline.
        within: Duration,
    },
    /// Another agent is there, or the folder cannot be locked.
    #[error("the folder is not ours")]
    Claim(#[from] ClaimError),
    /// Our own socket could not be made.
    #[error("own socket")]
    Socket(#[from] SocketDirError),
    /// The runtime did not take the listener.
    #[error("listen on {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Our own server does not answer.
    #[error("own server on {path} does not answer: {cause}")]
    SelfCheck {
        /// The socket.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// Kubelet said no.
    #[error("kubelet refused the registration of {resource}: {text}")]
    Refused {
        /// The resource.
        resource: ResourceName,
        /// Kubelet's words.
        text: String,
    },
    /// Kubelet's socket was replaced meanwhile, or the agent is stopping.
    #[error("kubelet was replaced, or the agent is stopping, during the registration")]
    Overtaken,
}

impl RegisterError {
    /// Whether a later try may succeed without anybody changing the agent.
    #[must_use]
    pub fn retryable(&self) -> bool {
        !matches!(self, Self::Socket(error) if !error.retryable())
    }

    /// Whether kubelet's socket has nobody behind it: a kubelet that was killed leaves it.
    pub(super) fn is_nobody_there(&self) -> bool {
        let Self::Dial { source, .. } = self else {
            return false;
        };
        let mut cause: Option<&(dyn Error + 'static)> = Some(source);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<std::io::Error>()
                && matches!(
                    io.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::NotFound
                )
            {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

/// A serving generation.
pub(super) struct Generation {
    socket: PathBuf,
    identity: FileIdentity,
    counts: watch::Receiver<StreamCounts>,
    ending: CancellationToken,
    stopping: CancellationToken,
    severing: CancellationToken,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
    accepting: JoinHandle<()>,
}

impl Generation {
    /// Binds, serves, checks itself. `build` makes the service around what counts and ends streams.
    pub(super) async fn open<A: Allocations>(
        socket: PathBuf,
        tracker: &TaskTracker,
        build: impl FnOnce(Arc<watch::Sender<StreamCounts>>, CancellationToken) -> PluginService<A>,
    ) -> Result<Self, RegisterError> {
        let (listener, identity) = socket_dir::bind(&socket)?;
        let listener = UnixListener::from_std(listener).map_err(|source| {
            let path = socket.clone();
            RegisterError::Listen { path, source }
        })?;
        let (counts, counted) = watch::channel(StreamCounts::default());
        let [ending, stopping, severing] = std::array::from_fn(|_| CancellationToken::new());
        let service = DevicePluginServer::new(build(Arc::new(counts), ending.clone()))
            .max_decoding_message_size(MESSAGE_MAX_BYTES)
            .max_encoding_message_size(MESSAGE_MAX_BYTES);
        let (accepted, incoming) = mpsc::channel(1);
        let accepting = tracker.spawn(connection::accept(
            listener,
            accepted,
            stopping.clone(),
            severing.clone(),
        ));
        let server = tracker.spawn(
            Server::builder()
                .max_concurrent_streams(STREAMS_MAX)
                .concurrency_limit_per_connection(CALLS_MAX)
                .add_service(service)
                .serve_with_incoming_shutdown(
                    ReceiverStream::new(incoming),
                    stopping.clone().cancelled_owned(),
                ),
        );
        let generation = Self {
            socket,
            identity,
            counts: counted,
            ending,
            stopping,
            severing,
            server,
            accepting,
        };
        if let Err(cause) = self_check(&generation.socket).await {
            let path = generation.socket.clone();
            generation.stop(Duration::ZERO).await;
            return Err(RegisterError::SelfCheck { path, cause });
        }
        Ok(generation)
    }

    pub(super) fn counts(&self) -> watch::Receiver<StreamCounts> {
        self.counts.clone()
    }

    /// Whether the name still leads to our socket.
    pub(super) fn is_reachable(&self) -> bool {
        FileIdentity::read(&self.socket).is_ok_and(|found| found == self.identity)
    }

    /// Whether the server ended by itself.
    pub(super) fn is_broken(&self) -> bool {
        self.server.is_finished() || self.accepting.is_finished()
    }

    /// Streams first, then the server, which may finish its calls for `drain`; then whatever peer
    /// is left is cut off. The socket file goes only if it is still ours.
    pub(super) async fn stop(mut self, drain: Duration) {
        self.ending.cancel();
        // A peer that does not read keeps its stream; the severing below ends it.
        let all_ended = |counts: &StreamCounts| counts.ended >= counts.opened;
        let ended = async { self.counts.wait_for(all_ended).await.is_ok() };
        let _all = tokio::time::timeout(END_DEADLINE, ended).await;
        self.stopping.cancel();
        if tokio::time::timeout(drain, &mut self.server).await.is_err() {
            self.severing.cancel();
            if tokio::time::timeout(END_DEADLINE, &mut self.server)
                .await
                .is_err()
            {
                warn!(socket = %self.socket.display(), "an old server does not end; dropped");
                self.server.abort();
            }
        }
        self.severing.cancel();
        if let Err(error) = socket_dir::remove_own(&self.socket, self.identity) {
            warn!(socket = %self.socket.display(), %error, "own socket not removed");
        }
    }
}

async fn self_check(socket: &Path) -> Result<(), String> {
    let check = async {
        let channel = dial(socket).await.map_err(|error| error.to_string())?;
        DevicePluginClient::new(channel)
            .get_device_plugin_options(wire::Empty {})
            .await
            .map_err(|status| status.message().to_owned())
    };
    match tokio::time::timeout(SELF_CHECK_DEADLINE, check).await {
        Ok(answer) => answer.map(|_| ()),
        Err(_) => Err(format!("nothing within {SELF_CHECK_DEADLINE:?}")),
    }
}

/// Connects to kubelet; returns what is left of the deadline.
pub(super) async fn dial_kubelet(
    path: &Path,
    within: Duration,
) -> Result<(Channel, Duration), RegisterError> {
    let begun = tokio::time::Instant::now();
    let step = "dialling kubelet";
    match tokio::time::timeout(within, dial(path)).await {
        Ok(Ok(channel)) => Ok((channel, within.saturating_sub(begun.elapsed()))),
        Ok(Err(source)) => {
            let path = path.to_owned();
            Err(RegisterError::Dial { path, source })
        }
        Err(_) => Err(RegisterError::Deadline { step, within }),
    }
}

/// Registers a serving generation. Kubelet dials back before it answers.
pub(super) async fn register(
    kubelet: Channel,
    resource: &ResourceName,
    socket: &Path,
    within: Duration,
) -> Result<(), RegisterError> {
    let endpoint = socket.file_name().unwrap_or_default();
    let request = wire::RegisterRequest {
        version: messages::API_VERSION.to_owned(),
        endpoint: endpoint.to_string_lossy().into_owned(),
        resource_name: resource.as_str().to_owned(),
        options: Some(messages::options()),
    };
    let mut client = RegistrationClient::new(kubelet);
    let step = "kubelet's Register";
    match tokio::time::timeout(within, client.register(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(status)) => Err(RegisterError::Refused {
            resource: resource.clone(),
            text: format!("{:?}: {}", status.code(), status.message()),
        }),
        Err(_) => Err(RegisterError::Deadline { step, within }),
    }
}
