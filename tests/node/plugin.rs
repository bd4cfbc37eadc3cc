//! Calls to the agent's own device-plugin socket, past kubelet: repeated and simultaneous ones, which
//! kubelet makes only when something goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use super::testbed::Node;

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
    include!(concat!(env!("OUT_DIR"), "/deviceplugin_v1beta1/v1beta1.rs"));
}

use api::device_plugin_client::DevicePluginClient;

/// What one container would get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) envs: BTreeMap<String, String>,
    /// Path on the host, path in the container, permissions.
    pub(crate) nodes: Vec<(String, String, String)>,
    pub(crate) mounts: usize,
}

/// One Allocate for one container.
pub(crate) fn allocate(node: &Node, ids: &[&str]) -> Result<Answer, (Code, String)> {
    let status = node.status();
    let socket = status["kubelet"][node.resource]["socket"]
        .as_str()
        .expect("a socket")
        .to_owned();
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    runtime().block_on(ask(&socket, ids))
}

/// One GetPreferredAllocation for one container.
pub(crate) fn preferred(
    node: &Node,
    available: &[String],
    must_include: &[String],
    size: u32,
) -> Vec<String> {
    let status = node.status();
    let socket = status["kubelet"][node.resource]["socket"]
        .as_str()
        .expect("a socket");
    let request = api::PreferredAllocationRequest {
        container_requests: vec![api::ContainerPreferredAllocationRequest {
            available_device_ids: available.to_vec(),
            must_include_device_ids: must_include.to_vec(),
            allocation_size: i32::try_from(size).expect("a small size"),
        }],
    };
    runtime().block_on(async {
        let mut client = DevicePluginClient::new(dial(socket).await);
        let answer = client.get_preferred_allocation(request).await;
        let answer = answer.expect("an answer").into_inner();
        let [container] = answer.container_responses.as_slice() else {
            panic!("not one container: {answer:?}");
        };
        container.device_ids.clone()
    })
}

/// The same Allocate from as many threads at once, each with its own connection.
pub(crate) fn allocate_at_once(
    node: &Node,
    requests: &[Vec<String>],
) -> Vec<Result<Answer, (Code, String)>> {
    let status = node.status();
    let socket = status["kubelet"][node.resource]["socket"]
        .as_str()
        .expect("a socket");
    std::thread::scope(|scope| {
        let threads: Vec<_> = requests
            .iter()
            .map(|ids| scope.spawn(|| runtime().block_on(ask(socket, ids.clone()))))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop")
}

async fn ask(socket: &str, devices_ids: Vec<String>) -> Result<Answer, (Code, String)> {
    let request = api::AllocateRequest {
        container_requests: vec![api::ContainerAllocateRequest {
            device_ids: devices_ids,
        }],
    };
    let mut client = DevicePluginClient::new(dial(socket).await);
    let answer = client
        .allocate(request)
        .await
        .map_err(|status| (status.code(), status.message().to_owned()))?
        .into_inner();
    let [container] = answer.container_responses.as_slice() else {
        panic!("not one container: {answer:?}");
    };
    Ok(Answer {
        envs: container.envs.clone().into_iter().collect(),
        nodes: container
            .devices
            .iter()
            .map(|node| {
                (
                    node.host_path.clone(),
                    node.container_path.clone(),
                    node.permissions.clone(),
                )
            })
            .collect(),
        mounts: container.mounts.len(),
    })
}

async fn dial(socket: &str) -> Channel {
    Endpoint::try_from(format!("unix:{socket}"))
        .expect("an address")
        .connect_timeout(Duration::from_secs(5))
        .connect()
        .await
        .expect("the plugin's socket")
}
