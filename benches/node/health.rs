//! From bad news in the hardware to kubelet's list, and from the end of the driver host to its
//! successor's first look at every chip.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::figures::{Figure, Series};
use super::machine::child_of;
use super::node::{CHIPS, Node, eventually};
use super::now;
use super::stage::Programs;

const FAULTS: u64 = 20;

/// Only the first death of a driver host costs no pause, so each is of another agent.
const KILLS: u32 = 10;

const CHIP: u32 = 3;

/// A code of the vendor's catalogue, and a severity that takes the chip off the list.
const CODE: u32 = 0x80E0_1801;
const SEVERITY: u8 = 3;

pub(crate) fn measure(programs: &Programs) -> Vec<Figure> {
    let node = Node::registered(programs, &["--hold-down-seconds", "0"]);
    let event = json!({
        "op": "code", "action": "add", "chip": CHIP, "code": CODE, "event": true,
        "severity": SEVERITY,
    });
    let events = faults(&node, &event);
    let polled = faults(&node, &json!({ "op": "health", "chip": CHIP, "level": 3 }));
    drop(node);
    let kills = kills(programs);
    vec![
        Figure::of("fault event to kubelet's list", &events)
            .should("below 1 s", events.max() < Duration::from_secs(1)),
        Figure::of(
            "health level to kubelet's list, by polling each second",
            &polled,
        )
        .should("below 5 s", polled.max() < Duration::from_secs(5)),
        Figure::of(
            "SIGKILL of the driver host to its successor's read of every chip",
            &kills,
        )
        .should("below 1 s", kills.max() < Duration::from_secs(1)),
    ]
}

fn faults(node: &Node, fault: &Value) -> Series {
    let mut series = Series::default();
    for turn in 0..FAULTS {
        // At another point between two polls each time.
        sleep(Duration::from_millis(turn * 370 % 1000));
        let began = now();
        node.hardware(fault);
        node.allocatable(CHIPS - 1);
        series.add(began.elapsed());
        node.hardware(&json!({ "op": "heal", "chip": CHIP }));
        node.allocatable(CHIPS);
    }
    series
}

fn kills(programs: &Programs) -> Series {
    let mut node = Node::set(programs);
    node.start_kubelet(&[]);
    let mut series = Series::default();
    for turn in 0..KILLS {
        let agent = node.stage.start_agent(&[]).expect("the agent");
        node.allocatable(CHIPS);
        sleep(Duration::from_millis(u64::from(turn) * 370 % 1000));
        let host = child_of(agent).expect("a driver host");
        let began = now();
        let pid = i32::try_from(host).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), Signal::KILL).expect("a host to kill");
        let before = reads(&node);
        eventually("every chip read again", || {
            (reads(&node) >= before + u64::from(CHIPS)).then_some(())
        });
        series.add(began.elapsed());
        node.stage.kill_agent();
        node.allocatable(0);
    }
    series
}

/// Health calls the simulated driver has answered so far.
fn reads(node: &Node) -> u64 {
    let calls = node.hardware(&json!({ "op": "calls" }));
    let health = calls.pointer("/symbols/dcmi_get_device_health");
    health.and_then(Value::as_u64).unwrap_or(0)
}
