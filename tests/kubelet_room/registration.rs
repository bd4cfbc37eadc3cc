//! When and how a resource is registered, and registered again.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use ascend_agent::kubelet::{KubeletStatus, RegistrationPhase};
use ascend_agent::ports::GenerationCause;

use crate::kubelet_stub::{KubeletStub, Seen};
use crate::room::{ASCEND, Room, config, eventually, offer, socket_folder, within};

/// Registered again.
const T_REG: Duration = Duration::from_secs(2);

#[tokio::test]
async fn c_01_serves_before_it_registers_and_gives_the_same_options_twice() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    {
        let seen = stub.seen.lock().unwrap();
        let request = &seen.requests[0];
        assert_eq!(request.version, "v1beta1");
        assert_eq!(request.resource_name, ASCEND);
        assert_eq!(request.options.as_ref(), Some(&seen.options[0]));
        assert!(seen.options[0].get_preferred_allocation_available);
        assert!(!seen.options[0].pre_start_required);
    }
    assert_eq!(room.causes(), [GenerationCause::Start]);
    let mode = stub.endpoint().metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o600);
    room.end().await;
}

#[tokio::test]
async fn c_02_waits_for_a_late_registry_socket_without_ending() {
    let temp = socket_folder();
    let room = Room::start(temp.path());
    let mut status = room.status.clone();
    let waiting = |phase| phase == RegistrationPhase::WaitingForKubelet;
    status
        .wait_for(|it| it.resources.values().any(|it| waiting(it.phase)))
        .await
        .unwrap();
    assert!(!room.status.borrow().ready());
    let stub = KubeletStub::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    eventually("ready", T_REG, || room.status.borrow().ready()).await;
    room.end().await;
}

#[tokio::test]
async fn c_03_tries_again_after_refusals_and_reports_them() {
    let temp = socket_folder();
    let seen = Seen {
        refuse: 3,
        ..Seen::default()
    };
    let stub = KubeletStub::with(temp.path(), seen);
    let room = Room::start(temp.path());
    let mut status = room.status.clone();
    let refused = |text: &Option<String>| text.as_ref().is_some_and(|it| it.contains("refused by"));
    status
        .wait_for(|it| it.resources.values().any(|it| refused(&it.last_error)))
        .await
        .unwrap();
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    assert_eq!(room.sockets().len(), 1);
    room.end().await;
}

#[tokio::test]
async fn c_04_ff_03_a_restarted_kubelet_has_the_same_list_again_within_a_second() {
    let temp = socket_folder();
    let first = KubeletStub::start(temp.path());
    let room = Room::with(
        config(temp.path()),
        offer(1, &["Ascend910-0", "Ascend910-1"]),
    );
    eventually("registered", T_REG, || first.serves(&[ASCEND])).await;
    let (list, socket) = (first.last_list(ASCEND), first.endpoint());
    first.kill().await;
    let second = first.start_again();
    let second_limit = Duration::from_secs(1);
    eventually("again", second_limit, || second.serves(&[ASCEND])).await;
    assert_eq!(second.last_list(ASCEND), list);
    assert_ne!(second.endpoint(), socket);
    assert_eq!(room.causes().last(), Some(&GenerationCause::KubeletRestart));
    room.publish(offer(2, &["Ascend910-0"]));
    eventually("change", second_limit, || {
        second
            .last_list(ASCEND)
            .is_some_and(|it| it.devices.len() == 1)
    })
    .await;
    assert_eq!(first.seen.lock().unwrap().streams[0].lists.len(), 1);
    assert_eq!(room.sockets().len(), 1);
    room.end().await;
}

#[tokio::test]
async fn ff_03_an_old_stream_that_stays_open_gets_no_later_change() {
    let temp = socket_folder();
    let first = KubeletStub::start(temp.path());
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || first.serves(&[ASCEND])).await;
    // The old kubelet lives on behind its replaced socket.
    let second = first.start_again();
    eventually("again", T_REG, || second.serves(&[ASCEND])).await;
    assert!(first.open_streams().is_empty());
    room.publish(offer(2, &["Ascend910-0", "Ascend910-1"]));
    eventually("change", T_REG, || {
        second
            .last_list(ASCEND)
            .is_some_and(|it| it.devices.len() == 2)
    })
    .await;
    assert_eq!(first.seen.lock().unwrap().streams[0].lists.len(), 1);
    room.end().await;
}

#[tokio::test]
async fn c_05_makes_a_new_socket_when_its_own_is_deleted() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    std::fs::remove_file(stub.endpoint()).unwrap();
    eventually("again", T_REG, || {
        stub.registrations() == 2 && stub.serves(&[ASCEND]) && stub.endpoint().exists()
    })
    .await;
    assert_eq!(room.causes().last(), Some(&GenerationCause::StreamLost));
    room.end().await;
}

#[tokio::test]
async fn c_06_registers_again_when_the_stream_ends_without_a_file_event() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::start(temp.path());
    for round in 2..6 {
        eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
        stub.cut_streams();
        eventually("again", T_REG, || {
            stub.registrations() == round && stub.serves(&[ASCEND])
        })
        .await;
    }
    assert_eq!(room.causes().last(), Some(&GenerationCause::StreamLost));
    room.end().await;
}

#[tokio::test]
async fn c_07_a_second_instance_waits_and_survives_the_end_of_the_first() {
    let temp = socket_folder();
    let seen = Seen {
        stale_disconnect: true,
        ..Seen::default()
    };
    let stub = KubeletStub::with(temp.path(), seen);
    let first = Room::start(temp.path());
    eventually("first", T_REG, || stub.serves(&[ASCEND])).await;
    let second = Room::start(temp.path());
    eventually("it says why it waits", T_REG, || {
        let status = second.status.borrow();
        let mut errors = status.resources.values().flat_map(|it| &it.last_error);
        errors.any(|error| error.contains("another agent serves kubelet"))
    })
    .await;
    let before = stub.registrations();
    assert_eq!(before, 1, "the second one registered nothing");
    first.end().await;
    eventually("again", Duration::from_secs(5), || {
        stub.registrations() > before && stub.serves(&[ASCEND])
    })
    .await;
    assert_eq!(second.sockets().len(), 1);
    second.end().await;
}

#[tokio::test]
async fn c_08_ends_its_streams_and_removes_its_own_sockets_only() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let foreign = temp.path().join("Ascend910-00000001-1.sock");
    let _live = std::os::unix::net::UnixListener::bind(&foreign).unwrap();
    let dead = temp.path().join("Ascend910-00000002-1.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let gpu = temp.path().join("nvidia-gpu.sock");
    drop(std::os::unix::net::UnixListener::bind(&gpu).unwrap());
    let file = temp.path().join("kubelet_internal_checkpoint");
    std::fs::write(&file, "{}").unwrap();
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    let own = stub.endpoint();
    room.end().await;
    eventually("ended", T_REG, || stub.open_streams().is_empty()).await;
    assert!(!own.exists() && !dead.exists());
    assert!(foreign.exists() && gpu.exists() && file.exists());
    assert!(temp.path().join("kubelet.sock").exists());
}

#[tokio::test]
async fn c_32_a_resource_is_registered_with_its_first_device_and_stays_registered() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::with(config(temp.path()), offer(1, &[]));
    let mut status = room.status.clone();
    status.wait_for(|it| it.kubelet_seen).await.unwrap();
    assert_eq!(stub.registrations(), 0);
    room.publish(offer(2, &["Ascend910-0"]));
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    room.publish(offer(3, &[]));
    eventually("empty list", T_REG, || {
        stub.last_list(ASCEND)
            .is_some_and(|it| it.devices.is_empty())
    })
    .await;
    stub.cut_streams();
    eventually("again, empty", T_REG, || {
        stub.registrations() == 2 && stub.serves(&[ASCEND])
    })
    .await;
    room.end().await;
}

#[tokio::test]
async fn when_asked_it_registers_again_after_the_old_generation_is_gone() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    room.reregister.send(()).await.unwrap();
    eventually("again", T_REG, || {
        stub.registrations() == 2 && stub.serves(&[ASCEND])
    })
    .await;
    assert_eq!(room.causes().last(), Some(&GenerationCause::Asked));
    assert_eq!(stub.seen.lock().unwrap().overlaps, 0);
    assert_eq!(room.sockets().len(), 1);
    room.end().await;
}

#[tokio::test]
async fn an_end_of_our_choice_is_taken_in_by_kubelet_before_the_next_registration() {
    let temp = socket_folder();
    let seen = Seen {
        stale_disconnect: true,
        disconnect_lag: Duration::from_millis(20),
        ..Seen::default()
    };
    let stub = KubeletStub::with(temp.path(), seen);
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    room.reregister.send(()).await.unwrap();
    eventually("again", T_REG, || {
        stub.registrations() == 2 && stub.serves(&[ASCEND])
    })
    .await;
    assert_eq!(stub.seen.lock().unwrap().disconnects, 1);
    assert_eq!(
        room.causes(),
        [GenerationCause::Start, GenerationCause::Asked]
    );
    room.end().await;
}

#[tokio::test]
async fn a_stream_that_is_never_opened_counts_as_lost() {
    let temp = socket_folder();
    let seen = Seen {
        withhold_stream: true,
        ..Seen::default()
    };
    let stub = KubeletStub::with(temp.path(), seen);
    let mut config = config(temp.path());
    config.times.stream_opens = Duration::from_millis(100);
    let room = Room::with(config, offer(1, &["Ascend910-0"]));
    eventually("tried again", T_REG, || stub.registrations() >= 2).await;
    assert!(!room.status.borrow().ready());
    stub.seen.lock().unwrap().withhold_stream = false;
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    room.end().await;
}

#[tokio::test]
async fn the_directory_may_come_late_and_be_made_anew() {
    let temp = socket_folder();
    let dir = temp.path().join("d");
    std::fs::create_dir(&dir).unwrap();
    let mut config = config(&dir);
    config.times.look = Duration::from_millis(50);
    std::fs::remove_dir(&dir).unwrap();
    let room = Room::with(config, offer(1, &["Ascend910-0"]));
    let mut status = room.status.clone();
    let missing = |it: &Option<String>| it.as_ref().is_some_and(|it| it.contains("does not exist"));
    status
        .wait_for(|it| missing(&it.directory_problem))
        .await
        .unwrap();
    std::fs::create_dir(&dir).unwrap();
    let first = KubeletStub::start(&dir);
    eventually("registered", T_REG, || first.serves(&[ASCEND])).await;
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::create_dir(&dir).unwrap();
    let second = KubeletStub::start(&dir);
    eventually("again", T_REG, || second.serves(&[ASCEND])).await;
    room.end().await;
}

#[tokio::test]
async fn a_socket_that_a_killed_kubelet_left_is_an_absent_kubelet() {
    let temp = socket_folder();
    let left = temp.path().join("kubelet.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    let room = Room::start(temp.path());
    let mut status = room.status.clone();
    let waits = |it: &KubeletStatus| {
        it.kubelet_seen
            && it.resources.values().any(|line| {
                line.phase == RegistrationPhase::WaitingForKubelet && line.last_error.is_some()
            })
    };
    within(T_REG, status.wait_for(waits)).await.unwrap();
    std::fs::remove_file(&left).unwrap();
    let stub = KubeletStub::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    room.end().await;
}

#[tokio::test]
async fn a_directory_of_somebody_else_is_reported_and_not_used() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let mut config = config(temp.path());
    config.owner.uid += 1;
    let room = Room::with(config, offer(1, &["Ascend910-0"]));
    let mut status = room.status.clone();
    let owned = |it: &Option<String>| it.as_ref().is_some_and(|it| it.contains("is owned by"));
    status
        .wait_for(|it| owned(&it.directory_problem))
        .await
        .unwrap();
    assert_eq!((stub.registrations(), room.sockets().len()), (0, 0));
    room.end().await;
}

#[tokio::test]
async fn a_checkpoint_that_kubelet_renames_into_place_is_passed_on() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let room = Room::start(temp.path());
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    let hints = || room.script.hints.load(std::sync::atomic::Ordering::Relaxed);
    let before = hints();
    let next = temp.path().join(".next");
    std::fs::write(&next, "{}").unwrap();
    std::fs::rename(&next, temp.path().join("kubelet_internal_checkpoint")).unwrap();
    eventually("hint", T_REG, || hints() > before).await;
    assert_eq!(stub.registrations(), 1);
    room.end().await;
}
