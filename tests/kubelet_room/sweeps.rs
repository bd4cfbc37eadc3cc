//! The same thing many times, at every moment.

use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::kubelet_stub::KubeletStub;
use crate::room::{ASCEND, Room, config, eventually, offer, socket_folder};

const T_REG: Duration = Duration::from_secs(2);

/// Kubelet's socket comes, goes and comes again, while the room starts `phase` after the first.
async fn socket_twice(phase: Duration) {
    let temp = socket_folder();
    let pause = Duration::from_millis(20);
    let dir = temp.path().to_owned();
    let kubelet = async move {
        let lost = KubeletStub::start(&dir);
        tokio::time::sleep(pause).await;
        lost.kill().await;
        std::fs::remove_file(dir.join("kubelet.sock")).unwrap();
        tokio::time::sleep(pause).await;
        KubeletStub::start(&dir)
    };
    let agent = async {
        tokio::time::sleep(phase).await;
        Room::start(temp.path())
    };
    let (stub, room) = tokio::join!(kubelet, agent);
    eventually("ready", T_REG, || {
        stub.serves(&[ASCEND]) && room.status.borrow().ready()
    })
    .await;
    assert_eq!(room.sockets().len(), 1);
    room.end().await;
}

#[tokio::test]
async fn ff_01_one_live_registration_whenever_the_socket_shows_up_late_or_twice() {
    let mut runs = JoinSet::new();
    for run in 0..200_u64 {
        runs.spawn(socket_twice(Duration::from_micros(run * 300)));
        if runs.len() >= 8 {
            runs.join_next().await.unwrap().unwrap();
        }
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

/// Sockets bound or accepted under a path, as the kernel lists them: what a leaked connection is.
fn open_sockets(dir: &Path) -> usize {
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap();
    let dir = format!("{}/Ascend910-", dir.canonicalize().unwrap().display());
    listed.lines().filter(|line| line.contains(&dir)).count()
}

#[tokio::test]
async fn ff_02_a_hundred_lost_streams_leave_no_task_and_no_socket_behind() {
    let temp = socket_folder();
    let stub = KubeletStub::start(temp.path());
    let mut config = config(temp.path());
    config.times.retry_first = Duration::from_millis(5);
    config.times.lost_stream_cap = Duration::from_millis(10);
    let room = Room::with(config, offer(1, &["Ascend910-0"]));
    eventually("registered", T_REG, || stub.serves(&[ASCEND])).await;
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let (tracked, alive) = (room.tracker.len(), tasks());
    let sockets = open_sockets(temp.path());
    for round in 0..100_u64 {
        stub.cut_streams();
        if round % 2 == 0 {
            let mut next = offer(round + 2, &["Ascend910-0"]);
            let devices = next.resources.values_mut().next().unwrap();
            devices[0].healthy = round % 4 == 0;
            room.publish(next);
        }
        let registered = usize::try_from(round).unwrap() + 2;
        eventually("again", T_REG, || {
            stub.registrations() == registered && stub.serves(&[ASCEND])
        })
        .await;
    }
    assert_eq!(stub.seen.lock().unwrap().overlaps, 0);
    eventually("last state", T_REG, || {
        stub.last_list(ASCEND)
            .is_some_and(|it| it.devices[0].health == "Unhealthy")
    })
    .await;
    eventually("as many tasks", T_REG, || {
        room.tracker.len() == tracked && tasks() <= alive
    })
    .await;
    eventually("as many sockets", T_REG, || {
        open_sockets(temp.path()) == sockets
    })
    .await;
    assert_eq!(room.sockets().len(), 1);
    room.end().await;
}
