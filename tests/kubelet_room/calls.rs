//! Allocate, GetPreferredAllocation, and callers that misbehave.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;

use crate::kubelet_stub::api::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    PreStartContainerRequest, PreferredAllocationRequest,
};
use crate::kubelet_stub::{KubeletStub, api, dial};
use crate::room::{
    ASCEND, HANGS, PANICS, Room, SLOW, UNKNOWN, config, eventually, offer, socket_folder, within,
};

const SOON: Duration = Duration::from_secs(2);

async fn registered() -> (tempfile::TempDir, KubeletStub, Room) {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let mut config = config(temp.path());
    config.times.allocate = Duration::from_millis(300);
    let room = Room::with(config, offer(1, &["Ascend910-0"]));
    eventually("registered", SOON, || stub.serves(&[ASCEND])).await;
    (temp, stub, room)
}

fn request(containers: &[&[&str]]) -> AllocateRequest {
    let container = |ids: &&[&str]| ContainerAllocateRequest {
        device_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    AllocateRequest {
        container_requests: containers.iter().map(container).collect(),
    }
}

#[tokio::test]
async fn ff_12_every_container_request_gets_its_own_answer_in_order() {
    let (_temp, stub, room) = registered().await;
    let asked = request(&[&["b", "a"], &["c"]]);
    let answer = stub
        .client(ASCEND)
        .allocate(asked)
        .await
        .unwrap()
        .into_inner();
    let ids: Vec<&str> = answer
        .container_responses
        .iter()
        .map(|it| it.envs["IDS"].as_str())
        .collect();
    assert_eq!(ids, ["b,a", "c"]);
    room.end().await;
}

#[tokio::test]
async fn malformed_requests_are_refused_before_the_ledger_is_asked() {
    let (_temp, stub, room) = registered().await;
    let many: Vec<String> = (0..801).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = "x".repeat(64);
    let cases: [(AllocateRequest, &str); 6] = [
        (request(&[]), "no container request"),
        (request(&[&["a"], &[]]), "names no device"),
        (request(&[&many]), "the devices can't bigger than 100"),
        (request(&[&[""]]), "length of device name 0 is invalid"),
        (request(&[&[&long]]), "length of device name 64 is invalid"),
        (request(&[&["a", "b", "a"]]), "device a is named twice"),
    ];
    for (asked, text) in cases {
        let status = stub.client(ASCEND).allocate(asked).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(text), "{status:?}");
    }
    assert!(room.script.allocated.lock().unwrap().is_empty());
    room.end().await;
}

#[tokio::test]
async fn a_request_above_the_message_limit_is_refused_and_the_stream_lives_on() {
    let (_temp, stub, room) = registered().await;
    let huge = "x".repeat(5 << 20);
    let status = stub
        .client(ASCEND)
        .allocate(request(&[&[&huge]]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert!(stub.serves(&[ASCEND]));
    assert_eq!(stub.registrations(), 1);
    room.end().await;
}

#[tokio::test]
async fn c_13_a_refusal_carries_its_text_and_one_refused_container_fails_the_call() {
    let (_temp, stub, room) = registered().await;
    let asked = request(&[&["a"], &[UNKNOWN]]);
    let status = stub.client(ASCEND).allocate(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains(UNKNOWN), "{status:?}");
    room.end().await;
}

#[tokio::test]
async fn a_panic_in_the_ledger_fails_that_call_and_nothing_else() {
    let (_temp, stub, room) = registered().await;
    let status = stub
        .client(ASCEND)
        .allocate(request(&[&[PANICS]]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    stub.client(ASCEND)
        .allocate(request(&[&["a"]]))
        .await
        .unwrap();
    assert!(stub.serves(&[ASCEND]));
    assert_eq!(stub.registrations(), 1);
    assert!(room.activity.quiet_since().is_some());
    room.end().await;
}

#[tokio::test]
async fn c_16_a_hanging_call_overruns_its_budget_and_delays_no_other() {
    let (_temp, stub, room) = registered().await;
    let (mut one, mut other) = (stub.client(ASCEND), stub.client(ASCEND));
    let hanging = one.allocate(request(&[&[HANGS]]));
    let quick = async {
        eventually("in flight", SOON, || room.activity.quiet_since().is_none()).await;
        other.allocate(request(&[&["a"]])).await.unwrap();
        assert!(room.activity.quiet_since().is_none());
    };
    let (hung, ()) = tokio::join!(hanging, quick);
    assert_eq!(hung.unwrap_err().code(), Code::DeadlineExceeded);
    assert!(room.activity.quiet_since().is_some());
    assert_eq!(room.activity.calls_begun(), 2);
    room.end().await;
}

#[tokio::test]
async fn a_call_in_flight_is_answered_before_a_registration_that_was_asked_for_or_the_end() {
    let (_temp, stub, room) = registered().await;
    let in_flight = || room.activity.quiet_since().is_none();
    let mut client = stub.client(ASCEND);
    let call = client.allocate(request(&[&[SLOW]]));
    let asking = async {
        eventually("in flight", SOON, in_flight).await;
        room.reregister.send(()).await.unwrap();
    };
    let (answer, ()) = tokio::join!(call, asking);
    answer.unwrap();
    eventually("again", SOON, || {
        stub.registrations() == 2 && stub.serves(&[ASCEND])
    })
    .await;
    let mut client = stub.client(ASCEND);
    let call = client.allocate(request(&[&[SLOW]]));
    let ending = async {
        eventually("in flight", SOON, in_flight).await;
        room.cancel.cancel();
    };
    let (answer, ()) = tokio::join!(call, ending);
    answer.unwrap();
    room.end().await;
}

#[tokio::test]
async fn c_30_a_caller_that_hangs_up_leaves_its_call_counted_until_it_has_ended() {
    let (_temp, stub, room) = registered().await;
    let mut client = stub.client(ASCEND);
    let gone = tokio::time::timeout(
        Duration::from_millis(100),
        client.allocate(request(&[&[HANGS]])),
    );
    assert!(gone.await.is_err());
    assert!(room.activity.quiet_since().is_none());
    eventually("ended", SOON, || room.activity.quiet_since().is_some()).await;
    room.end().await;
}

fn preference(available: &[&str], must_include: &[&str], size: i32) -> PreferredAllocationRequest {
    let texts = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    PreferredAllocationRequest {
        container_requests: vec![ContainerPreferredAllocationRequest {
            available_device_ids: texts(available),
            must_include_device_ids: texts(must_include),
            allocation_size: size,
        }],
    }
}

#[tokio::test]
async fn preferred_devices_are_passed_through_and_a_refusal_becomes_no_preference() {
    let (_temp, stub, room) = registered().await;
    let mut client = stub.client(ASCEND);
    let mut chosen = async |asked| {
        let answer = client
            .get_preferred_allocation(asked)
            .await
            .unwrap()
            .into_inner();
        answer.container_responses[0].device_ids.clone()
    };
    assert_eq!(
        chosen(preference(&["a", "b", "c"], &["c"], 2)).await,
        ["c", "a"]
    );
    assert!(chosen(preference(&["a", UNKNOWN], &[], 1)).await.is_empty());
    assert!(chosen(preference(&["a"], &[], -1)).await.is_empty());
    let ids: Vec<String> = (0..4096).map(|n| format!("Ascend910-{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(chosen(preference(&ids, &[], 16)).await.len(), 16);
    room.end().await;
}

#[tokio::test]
async fn pre_start_container_says_that_it_was_not_asked_for() {
    let (_temp, stub, room) = registered().await;
    let asked = PreStartContainerRequest::default();
    let status = stub
        .client(ASCEND)
        .pre_start_container(asked)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    room.end().await;
}

/// A literal header field without indexing, as HPACK writes it.
fn header(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        block.push(u8::try_from(text.len()).unwrap());
        block.extend_from_slice(text.as_bytes());
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn kubelet_before_1_26_with_a_path_as_authority_is_reset_and_harms_nobody() {
    let (_temp, stub, room) = registered().await;
    let mut old = tokio::net::UnixStream::connect(stub.endpoint())
        .await
        .unwrap();
    let mut block = Vec::new();
    let path = "/v1beta1.DevicePlugin/GetDevicePluginOptions";
    header(&mut block, ":method", "POST");
    header(&mut block, ":scheme", "http");
    header(&mut block, ":path", path);
    header(&mut block, ":authority", "%2Fvar%2Flib%2Fkubelet%2Fa.sock");
    header(&mut block, "content-type", "application/grpc");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(1, 4, 1, &block));
    old.write_all(&bytes).await.unwrap();
    let reset = async {
        loop {
            let mut head = [0_u8; 9];
            old.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            old.read_exact(&mut payload).await.unwrap();
            if head[3] == 3 {
                return payload;
            }
        }
    };
    let protocol_error = 1_u32.to_be_bytes();
    assert_eq!(within(SOON, reset).await, protocol_error);
    let mut new = dial(&stub.endpoint()).await.unwrap();
    new.get_device_plugin_options(api::Empty {}).await.unwrap();
    assert!(stub.serves(&[ASCEND]));
    room.end().await;
}
