//! Kubelet ends and comes back: how long until it may give out chips again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::figures::{Figure, Series};
use super::kubelet::Pending;
use super::node::{CHIPS, Node, RESOURCE, eventually, running_pod};
use super::now;
use super::stage::Programs;

const RESTARTS: u32 = 10;

const ALLOCATABLE: Duration = Duration::from_secs(1);

const HOLDERS: [&str; 2] = ["first", "second"];

pub(crate) fn measure(programs: &Programs) -> Vec<Figure> {
    let mut node = Node::registered(programs, &[]);
    for name in HOLDERS {
        node.admit(name, 4);
    }
    let (mut listening, mut told, mut killed) =
        (Series::default(), Series::default(), Series::default());
    for _ in 0..RESTARTS {
        let old = registry(&node);
        let began = now();
        let request = json!({ "keep_checkpoint": true });
        let restart = node
            .stage
            .kubelet()
            .and_then(|it| it.begin("restart", request));
        let up = back(&node, old);
        told.add(began.elapsed());
        listening.add(up.elapsed());
        restart.and_then(Pending::wait).expect("a restart");
    }
    for _ in 0..RESTARTS {
        node.stage.kill_kubelet();
        let old = registry(&node);
        let pods: Vec<Value> = HOLDERS.iter().map(|name| running_pod(name, 4)).collect();
        let request = node.kubelet_start(&pods);
        let kubelet = node.stage.start_kubelet().expect("kubelet");
        let start = kubelet.begin("start", request);
        killed.add(back(&node, old).elapsed());
        start.and_then(Pending::wait).expect("a start");
    }
    let target = |what: &str, series: &Series| {
        Figure::of(what, series).should("below 1 s", series.max() < ALLOCATABLE)
    };
    vec![
        target(
            "kubelet restarts: its registry socket is there to allocatable",
            &listening,
        ),
        target("kubelet restarts: its end begins to allocatable", &told),
        target(
            "SIGKILL and a new kubelet: its registry socket is there to allocatable",
            &killed,
        ),
    ]
}

/// The registry socket's identity; none while there is no such file.
fn registry(node: &Node) -> Option<(u64, i64, i64)> {
    let meta = fs::symlink_metadata(node.stage.path("dp/kubelet.sock")).ok()?;
    Some((meta.ino(), meta.ctime(), meta.ctime_nsec()))
}

/// Waits for another registry socket, then for the chips; gives the moment of the socket.
fn back(node: &Node, old: Option<(u64, i64, i64)>) -> Instant {
    let up = eventually("kubelet's registry socket", || {
        registry(node)
            .filter(|new| Some(*new) != old)
            .map(|_| now())
    });
    // A process that starts is asked before it is told to start, which it refuses.
    let request = json!({ "resource": RESOURCE, "count": CHIPS, "timeout_ms": 30_000 });
    node.call("wait_allocatable", request);
    up
}
