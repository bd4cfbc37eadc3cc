//! A stand-in for kubelet's device manager: serves the registry socket, dials back inside Register,
//! reads the list of every plugin. What it does was first seen on the real one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

#[expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
pub(crate) mod api {
    include!(concat!(env!("OUT_DIR"), "/deviceplugin_v1beta1/v1beta1.rs"));
}

use api::device_plugin_client::DevicePluginClient;
use api::registration_server::{Registration, RegistrationServer};
use api::{DevicePluginOptions, Empty, ListAndWatchResponse, RegisterRequest};

/// One ListAndWatch.
#[derive(Clone, Debug)]
pub(crate) struct StreamRecord {
    pub(crate) resource: String,
    pub(crate) lists: Vec<ListAndWatchResponse>,
    pub(crate) open: bool,
    cut: CancellationToken,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) requests: Vec<RegisterRequest>,
    pub(crate) options: Vec<DevicePluginOptions>,
    pub(crate) streams: Vec<StreamRecord>,
    pub(crate) clients: BTreeMap<String, DevicePluginClient<Channel>>,
    /// Registrations that came while the socket of the one before was still there.
    pub(crate) overlaps: usize,
    /// So many registrations are refused.
    pub(crate) refuse: usize,
    /// Registrations succeed, the list is never asked for.
    pub(crate) withhold_stream: bool,
    /// The end of any stream disconnects the resource's newest plugin (kubelet up to 1.35).
    pub(crate) stale_disconnect: bool,
    /// How much later than the end itself that happens.
    pub(crate) disconnect_lag: Duration,
    pub(crate) disconnects: usize,
}

impl Seen {
    fn disconnect(&mut self, resource: &str) {
        self.disconnects += 1;
        let newest = self.streams.iter().rev().find(|it| it.resource == resource);
        newest.unwrap().cut.cancel();
    }
}

#[derive(Clone)]
pub(crate) struct KubeletStub {
    dir: PathBuf,
    pub(crate) seen: Arc<Mutex<Seen>>,
    life: CancellationToken,
    tracker: TaskTracker,
}

impl KubeletStub {
    /// Takes the place of whatever is at the registry socket.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::with(dir, Seen::default())
    }

    pub(crate) fn with(dir: &Path, seen: Seen) -> Self {
        let socket = dir.join("kubelet.sock");
        let _absent = std::fs::remove_file(&socket);
        let stub = Self {
            dir: dir.to_owned(),
            seen: Arc::new(Mutex::new(seen)),
            life: CancellationToken::new(),
            tracker: TaskTracker::new(),
        };
        let listener = UnixListener::bind(socket).unwrap();
        let served = Server::builder()
            .add_service(RegistrationServer::new(stub.clone()))
            .serve_with_incoming(UnixListenerStream::new(listener));
        let life = stub.life.clone();
        stub.tracker.spawn(async move {
            tokio::select! {
                () = life.cancelled() => {}
                served = served => served.unwrap(),
            }
        });
        stub
    }

    /// Dies as kubelet does on a kill: connections end, socket files stay.
    pub(crate) async fn kill(&self) {
        self.life.cancel();
        for stream in &self.seen.lock().unwrap().streams {
            stream.cut.cancel();
        }
        self.seen.lock().unwrap().clients.clear();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Starts after a kill: wipes what is not the checkpoint, then listens.
    pub(crate) fn start_again(&self) -> Self {
        for entry in std::fs::read_dir(&self.dir).unwrap().flatten() {
            if !entry.path().is_dir() && entry.file_name() != "kubelet_internal_checkpoint" {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        Self::start(&self.dir)
    }

    /// Ends every open stream, with no trace in the directory.
    pub(crate) fn cut_streams(&self) {
        for stream in &self.seen.lock().unwrap().streams {
            stream.cut.cancel();
        }
    }

    pub(crate) fn open_streams(&self) -> Vec<StreamRecord> {
        let seen = self.seen.lock().unwrap();
        seen.streams.iter().filter(|it| it.open).cloned().collect()
    }

    pub(crate) fn registrations(&self) -> usize {
        self.seen.lock().unwrap().requests.len()
    }

    /// True when each resource of `wanted` has exactly one open stream with a list, and no other has.
    pub(crate) fn serves(&self, wanted: &[&str]) -> bool {
        let mut open: Vec<String> = self
            .open_streams()
            .into_iter()
            .filter(|it| !it.lists.is_empty())
            .map(|it| it.resource)
            .collect();
        open.sort();
        open == wanted && self.open_streams().len() == wanted.len()
    }

    pub(crate) fn last_list(&self, resource: &str) -> Option<ListAndWatchResponse> {
        let streams = self.open_streams();
        let newest = streams.iter().rev().find(|it| it.resource == resource)?;
        newest.lists.last().cloned()
    }

    /// The newest plugin of a resource.
    pub(crate) fn client(&self, resource: &str) -> DevicePluginClient<Channel> {
        self.seen.lock().unwrap().clients[resource].clone()
    }

    /// The newest plugin's socket.
    pub(crate) fn endpoint(&self) -> PathBuf {
        let seen = self.seen.lock().unwrap();
        self.dir.join(&seen.requests.last().unwrap().endpoint)
    }

    async fn read_list(self, index: usize, mut client: DevicePluginClient<Channel>) {
        let cut = self.seen.lock().unwrap().streams[index].cut.clone();
        let read = async {
            let mut stream = client.list_and_watch(Empty {}).await?.into_inner();
            while let Some(list) = stream.message().await? {
                self.seen.lock().unwrap().streams[index].lists.push(list);
            }
            Ok::<(), Status>(())
        };
        tokio::select! {
            () = cut.cancelled() => {}
            _ended = read => {}
        }
        let (resource, lag) = {
            let mut seen = self.seen.lock().unwrap();
            seen.streams[index].open = false;
            if !seen.stale_disconnect {
                return;
            }
            (seen.streams[index].resource.clone(), seen.disconnect_lag)
        };
        tokio::time::sleep(lag).await;
        self.seen.lock().unwrap().disconnect(&resource);
    }
}

#[tonic::async_trait]
impl Registration for KubeletStub {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let request = request.into_inner();
        {
            let mut seen = self.seen.lock().unwrap();
            if seen.refuse > 0 {
                seen.refuse -= 1;
                return Err(Status::unknown("refused by the test"));
            }
        }
        let path = self.dir.join(&request.endpoint);
        let mut client = dial(&path)
            .await
            .map_err(|error| Status::unknown(format!("failed to dial device plugin: {error}")))?;
        let options = client.get_device_plugin_options(Empty {}).await?;
        let resource = request.resource_name.clone();
        let mut seen = self.seen.lock().unwrap();
        let mut before = seen.requests.iter().rev();
        if let Some(before) = before.find(|it| it.resource_name == resource) {
            seen.overlaps += usize::from(self.dir.join(&before.endpoint).exists());
        }
        seen.requests.push(request);
        seen.options.push(options.into_inner());
        seen.clients.insert(resource.clone(), client.clone());
        if !seen.withhold_stream && !self.life.is_cancelled() {
            let index = seen.streams.len();
            seen.streams.push(StreamRecord {
                resource,
                lists: Vec::new(),
                open: true,
                cut: self.life.child_token(),
            });
            self.tracker.spawn(self.clone().read_list(index, client));
        }
        Ok(Response::new(Empty {}))
    }
}

/// Dials as kubelet does since 1.26: with an authority that is a host name.
pub(crate) async fn dial(
    path: &Path,
) -> Result<DevicePluginClient<Channel>, tonic::transport::Error> {
    let channel = Endpoint::try_from(format!("unix:{}", path.display()))?
        .connect_timeout(Duration::from_secs(10))
        .connect()
        .await?;
    Ok(DevicePluginClient::new(channel).max_decoding_message_size(4 << 20))
}
