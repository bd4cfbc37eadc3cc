//! Pod-resources over a real socket.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascend_agent::domain::kubelet_view::RecordScope;
use ascend_agent::domain::time::BootTime;
use ascend_agent::kubelet::RecordsReader;
use ascend_agent::ports::{CensusError, KubeletRecords};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::room::{CountingClock, config, eventually, socket_folder};

#[expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
mod api {
    include!(concat!(env!("OUT_DIR"), "/podresources_v1/v1.rs"));
}

use api::pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer};
use api::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices,
    ContainerResources, GetPodResourcesRequest, GetPodResourcesResponse, ListPodResourcesRequest,
    ListPodResourcesResponse, PodResources,
};

type Answer = Arc<Mutex<Result<ListPodResourcesResponse, Status>>>;

struct Lister(Answer);

#[tonic::async_trait]
impl PodResourcesLister for Lister {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        self.0.lock().unwrap().clone().map(Response::new)
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        Ok(Response::new(AllocatableResourcesResponse::default()))
    }

    async fn get(
        &self,
        _: Request<GetPodResourcesRequest>,
    ) -> Result<Response<GetPodResourcesResponse>, Status> {
        Err(Status::unknown("pod not found"))
    }
}

/// Serves until the token is cancelled, from a new socket.
fn serve(path: &Path, answer: &Answer, tracker: &TaskTracker) -> CancellationToken {
    let _absent = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    let end = CancellationToken::new();
    let served = Server::builder()
        .add_service(PodResourcesListerServer::new(Lister(Arc::clone(answer))))
        .serve_with_incoming_shutdown(
            UnixListenerStream::new(listener),
            end.clone().cancelled_owned(),
        );
    tracker.spawn(served);
    end
}

fn node(pods: usize) -> ListPodResourcesResponse {
    let pod = |number: usize| PodResources {
        name: format!("pod-{number}"),
        namespace: "default".to_owned(),
        containers: vec![ContainerResources {
            name: "main".to_owned(),
            devices: vec![ContainerDevices {
                resource_name: "huawei.com/Ascend910".to_owned(),
                device_ids: vec![format!("Ascend910-{number}")],
            }],
        }],
    };
    ListPodResourcesResponse {
        pod_resources: (0..pods).map(pod).collect(),
    }
}

#[tokio::test]
async fn follows_a_replaced_socket_and_reads_more_than_four_mebibytes() {
    let temp = socket_folder();
    let config = config(temp.path());
    let clock = CountingClock::start();
    let mut slow = config.clone();
    slow.times.pod_resources = Duration::from_secs(10);
    let reader = RecordsReader::new(&slow, clock);
    let answer: Answer = Arc::new(Mutex::new(Ok(node(2))));
    let tracker = TaskTracker::new();
    let first = serve(&config.pod_resources_socket, &answer, &tracker);
    let census = reader
        .census(&RecordScope::domain("huawei.com"))
        .await
        .unwrap();
    assert_eq!((census.pods.len(), census.holdings.len()), (2, 2));
    first.cancel();
    eventually("first ended", Duration::from_secs(2), || tracker.is_empty()).await;
    let gone = reader.census(&RecordScope::domain("huawei.com")).await;
    assert!(matches!(gone, Err(CensusError::Unavailable(_))), "{gone:?}");
    let many = 70_000;
    *answer.lock().unwrap() = Ok(node(many));
    let second = serve(&config.pod_resources_socket, &answer, &tracker);
    let later = reader
        .census(&RecordScope::domain("huawei.com"))
        .await
        .unwrap();
    assert_eq!(later.holdings.len(), many);
    assert!(later.begun > census.begun && census.begun > BootTime(0));
    second.cancel();
}

#[tokio::test]
async fn c_19_a_rate_limited_list_is_no_view_and_keeps_kubelet_s_words() {
    let temp = socket_folder();
    let config = config(temp.path());
    let reader = RecordsReader::new(&config, CountingClock::start());
    let limited = Status::resource_exhausted("rejected by rate limit");
    let answer: Answer = Arc::new(Mutex::new(Err(limited)));
    let tracker = TaskTracker::new();
    let end = serve(&config.pod_resources_socket, &answer, &tracker);
    let census = reader.census(&RecordScope::domain("huawei.com")).await;
    let Err(CensusError::Unavailable(text)) = census else {
        panic!("{census:?}");
    };
    assert!(text.contains("rejected by rate limit"), "{text}");
    end.cancel();
}
