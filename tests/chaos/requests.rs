//! Nonsense on the agent's sockets: neither a crash, nor a changed state, nor an unclear answer.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::node::{Node, PATIENCE, RESOURCE, registered};
use crate::seed::Seed;

#[expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code, of which the client is used"
)]
mod api {
    include!(concat!(env!("OUT_DIR"), "/deviceplugin_v1beta1/v1beta1.rs"));
}

use api::device_plugin_client::DevicePluginClient;
use api::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    PreStartContainerRequest, PreferredAllocationRequest,
};

fn plugin_socket(node: &Node) -> PathBuf {
    let status = node.status_when("registered", PATIENCE, registered);
    PathBuf::from(&status.kubelet[RESOURCE].socket)
}

fn asking(containers: Vec<Vec<String>>) -> AllocateRequest {
    let requests = containers.into_iter();
    AllocateRequest {
        container_requests: requests
            .map(|device_ids| ContainerAllocateRequest { device_ids })
            .collect(),
    }
}

async fn dial(socket: &Path) -> DevicePluginClient<Channel> {
    let endpoint = Endpoint::try_from(format!("unix:{}", socket.display())).unwrap();
    let channel = endpoint.timeout(PATIENCE).connect().await.unwrap();
    DevicePluginClient::new(channel).max_decoding_message_size(64 << 20)
}

#[test]
fn malformed_requests_get_a_clear_refusal_and_change_nothing() {
    let mut node = Node::running();
    let holder = node.grant("holder", 2);
    let before = node.status_when("the holder is on record", PATIENCE, |status| {
        let mut held = status.allocations.iter();
        held.all(|held| !held.pod.is_empty())
    });
    let socket = plugin_socket(&node);
    let id = |number: usize| format!("Ascend910-{number}");
    let held = holder.ids.iter().next().unwrap().clone();
    let cases: Vec<(&str, AllocateRequest, &str)> = vec![
        ("no container", asking(vec![]), "no container request given"),
        ("no device", asking(vec![vec![]]), "names no device"),
        (
            "an empty id",
            asking(vec![vec![String::new()]]),
            "length of device name 0 is invalid",
        ),
        (
            "a long id",
            asking(vec![vec!["x".repeat(100_000)]]),
            "length of device name 100000 is invalid",
        ),
        (
            "one id twice",
            asking(vec![vec![id(5), id(5)]]),
            "is named twice in one request",
        ),
        (
            "an unknown id",
            asking(vec![vec!["Ascend910-99".to_owned()]]),
            "plugin doesn't have device Ascend910-99",
        ),
        (
            "somebody's id",
            asking(vec![vec![held]]),
            "is still held by default/holder",
        ),
        (
            "a good id and a bad one",
            asking(vec![vec!["Ascend910-98".to_owned(), id(6)]]),
            "plugin doesn't have device Ascend910-98",
        ),
        (
            "many ids",
            asking(vec![(0..1000).map(id).collect()]),
            "the request names 1000",
        ),
        (
            "many containers",
            asking(vec![vec!["x".to_owned()]; 300_001]),
            "the number of container request 300001 exceeds the upper limit",
        ),
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut client = dial(&socket).await;
        for (what, request, words) in cases {
            let refused = client.allocate(request).await.unwrap_err();
            assert!(refused.message().contains(words), "{what}: {refused:?}");
        }
        // Too large for a message: refused by size, before anybody reads it.
        let huge = asking(vec![vec!["x".repeat(1 << 20); 40]]);
        let refused: Status = client.allocate(huge).await.unwrap_err();
        assert_ne!(refused.code(), Code::Ok);
        println!("{refused:?}");
        let mut client = dial(&socket).await;
        let strange = ContainerPreferredAllocationRequest {
            available_device_ids: vec!["x".to_owned(); 5],
            must_include_device_ids: vec!["y".to_owned()],
            allocation_size: i32::MIN,
        };
        let request = PreferredAllocationRequest {
            container_requests: vec![strange],
        };
        let answer = client.get_preferred_allocation(request).await.unwrap();
        assert!(
            answer.into_inner().container_responses[0]
                .device_ids
                .is_empty()
        );
        let request = PreStartContainerRequest::default();
        client.pre_start_container(request).await.unwrap_err();
    });
    let after = node.status().unwrap();
    assert_eq!(after.allocations, before.allocations);
    assert_eq!(after.chips, before.chips);
    assert_eq!(node.stage.agent_ended(), None);
    node.grant("next", 6);
    node.done();
}

#[test]
fn noise_on_the_sockets_disturbs_nobody() {
    let mut seed = Seed::of_this_run();
    println!("ASCEND_TEST_SEED={}", seed.start);
    let mut node = Node::running();
    node.grant("holder", 2);
    let before = node.status_when("the holder is on record", PATIENCE, |status| {
        let mut held = status.allocations.iter();
        held.all(|held| !held.pod.is_empty())
    });
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut noises: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        preface[..9].to_vec(),
        // A frame of 16 MiB announced, and none of it sent.
        [&preface[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
        // Headers for stream 0, which may not be.
        [&preface[..], &[0, 0, 4, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4]].concat(),
        // Settings again and again.
        [&preface[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0].repeat(5000)].concat(),
        // Pings without end.
        [
            &preface[..],
            &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(5000),
        ]
        .concat(),
    ];
    for _ in 0..40 {
        let length = 1 + seed.below(4096);
        let byte = |_| u8::try_from(seed.below(256)).unwrap();
        let random: Vec<u8> = (0..length).map(byte).collect();
        noises.push([&preface[..], &random].concat());
        noises.push(random);
    }
    let sockets = [plugin_socket(&node), node.stage.path("admin.sock")];
    let mut held_open = Vec::new();
    for socket in &sockets {
        for noise in &noises {
            let mut stream = UnixStream::connect(socket).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_millis(20)))
                .unwrap();
            stream
                .set_write_timeout(Some(Duration::from_secs(1)))
                .unwrap();
            // The agent may hang up at any byte.
            let _sent = stream.write_all(noise);
            let _answered = stream.read(&mut [0; 4096]);
            held_open.push(stream);
        }
    }
    let after = node.status_when("the agent answers", PATIENCE, |_| true);
    assert_eq!(after.allocations, before.allocations);
    assert_eq!(after.chips, before.chips);
    assert!(registered(&after));
    node.grant("next", 6);
    drop(held_open);
    assert_eq!(node.stage.agent_ended(), None);
    node.done();
}
