//! What ListAndWatch sends, and when.

use std::time::Duration;

use ascend_agent::domain::ids::ResourceName;
use ascend_agent::domain::offer::Offer;

use crate::kubelet_stub::{KubeletStub, api, dial};
use crate::room::{ASCEND, Room, config, device, eventually, offer, socket_folder, within};

const SOON: Duration = Duration::from_secs(2);

async fn registered(first: Offer) -> (tempfile::TempDir, KubeletStub, Room) {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::with(config(temp.path()), first);
    eventually("registered", SOON, || stub.serves(&[ASCEND])).await;
    (temp, stub, room)
}

fn lists(stub: &KubeletStub) -> Vec<api::ListAndWatchResponse> {
    stub.seen.lock().unwrap().streams[0].lists.clone()
}

#[tokio::test]
async fn c_09_every_list_is_complete_and_sorted_and_an_unchanged_one_is_not_sent() {
    let (_temp, stub, room) = registered(offer(1, &["Ascend910-1", "Ascend910-0"])).await;
    let mut other = offer(2, &["Ascend910-0", "Ascend910-1"]);
    let gpu = ResourceName::new("huawei.com/Ascend310P").unwrap();
    other.resources.insert(gpu, vec![]);
    other.resources.get_mut(&name()).unwrap().reverse();
    room.publish(other);
    let delivered = || room.script.delivered.lock().unwrap().clone();
    let second = (ASCEND.to_owned(), 2);
    eventually("version 2", SOON, || delivered().contains(&second)).await;
    let mut third = offer(3, &["Ascend910-0", "Ascend910-1"]);
    third.resources.get_mut(&name()).unwrap()[0].healthy = false;
    room.publish(third);
    eventually("version 3", SOON, || lists(&stub).len() == 2).await;
    let sent = lists(&stub);
    for list in &sent {
        let ids: Vec<&str> = list.devices.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["Ascend910-0", "Ascend910-1"]);
    }
    assert_eq!(sent[0].devices[0].health, "Healthy");
    assert_eq!(sent[1].devices[0].health, "Unhealthy");
    assert_eq!(sent[1].devices[0].topology.as_ref().unwrap().nodes[0].id, 0);
    room.end().await;
}

#[tokio::test]
async fn an_equal_list_is_sent_again_only_on_a_refresh() {
    let (_temp, stub, room) = registered(offer(1, &["Ascend910-0"])).await;
    let mut refreshed = offer(2, &["Ascend910-0"]);
    refreshed.refresh = 1;
    room.publish(refreshed);
    eventually("sent again", SOON, || lists(&stub).len() == 2).await;
    let sent = lists(&stub);
    assert_eq!(sent[0], sent[1]);
    room.end().await;
}

#[tokio::test]
async fn the_status_names_the_version_that_was_handed_over() {
    let (_temp, _stub, room) = registered(offer(7, &["Ascend910-0"])).await;
    let delivered = |version| {
        let status = room.status.borrow();
        status
            .resources
            .values()
            .all(|it| it.delivered_version == Some(version))
    };
    eventually("version 7", SOON, || delivered(7)).await;
    room.publish(offer(8, &["Ascend910-0", "Ascend910-1"]));
    eventually("version 8", SOON, || delivered(8)).await;
    assert!(room.status.borrow().resources[&name()].registered());
    room.end().await;
}

#[tokio::test]
async fn a_slow_reader_gets_the_newest_list_and_no_backlog() {
    let ids: Vec<String> = (0..4096).map(|n| format!("Ascend910-{n:04}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (_temp, stub, room) = registered(offer(1, &ids)).await;
    let mut client = dial(&stub.endpoint()).await.unwrap();
    let mut slow = client
        .list_and_watch(api::Empty {})
        .await
        .unwrap()
        .into_inner();
    for version in 2..=200 {
        let sick = version == 200;
        let mut next = offer(version, &ids);
        let devices = next.resources.get_mut(&name()).unwrap();
        devices[0].healthy = version % 2 == 1;
        devices[1] = device(ids[1], !sick);
        room.publish(next);
        tokio::task::yield_now().await;
    }
    let mut read = 0;
    loop {
        let list = within(SOON, slow.message()).await.unwrap().unwrap();
        read += 1;
        if list.devices[1].health == "Unhealthy" {
            break;
        }
    }
    assert!(
        read < 50,
        "{read} lists were queued for a reader that did not read"
    );
    room.end().await;
}

#[tokio::test]
async fn a_reader_that_never_reads_does_not_delay_the_end() {
    let (_temp, stub, room) = registered(offer(1, &["Ascend910-0"])).await;
    let mut client = dial(&stub.endpoint()).await.unwrap();
    let silent = client.list_and_watch(api::Empty {}).await.unwrap();
    room.end().await;
    drop(silent);
}

#[tokio::test]
async fn c_33_4096_ids_fit_one_message_and_arrive_within_a_second() {
    let ids: Vec<String> = (0..4096)
        .map(|n| format!("{:a>56}-{n:04}", "Ascend910"))
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::with(config(temp.path()), offer(1, &ids));
    eventually("list", Duration::from_secs(1), || stub.serves(&[ASCEND])).await;
    let list = stub.last_list(ASCEND).unwrap();
    assert_eq!(list.devices.len(), 4096);
    assert!(prost::Message::encoded_len(&list) < 4 << 20);
    room.end().await;
}

fn name() -> ResourceName {
    ResourceName::new(ASCEND).unwrap()
}
