//! Fault events.

use super::*;

#[tokio::test]
async fn events_arrive_with_chip_code_severity_and_assertion() {
    for profile in ["910b3-8x1", "a5-8x1"] {
        let sim = Sim::start(profile);
        let mut node = start(&sim);
        node.inventory().await;
        node.host_started().await;
        sim.ctl(&["event", "3", "0x80E01801", "--severity", "2"]);
        let HardwareNotice::Fault(event) = node.notice().await else {
            panic!("no fault event")
        };
        assert_eq!(event.logic, LogicId(3));
        assert_eq!(event.code, FaultCode(0x80E0_1801));
        assert_eq!(event.severity, Severity::MAJOR);
        assert_eq!(event.assertion, Assertion::Occurred);
    }
}

#[tokio::test]
async fn a_storm_of_events_is_delivered_or_counted_and_stops_nothing() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start(&sim);
    node.inventory().await;
    node.host_started().await;
    let storm = 5000;
    sim.ctl(&["event", "1", "0x80E01801", "--count", &storm.to_string()]);
    assert_eq!(node.sample().await.len(), 8);
    let mut seen = 0;
    while seen < storm {
        seen += match node.notice().await {
            HardwareNotice::Fault(_) => 1,
            HardwareNotice::FaultsDropped(count) => count,
            other @ (HardwareNotice::HostEnded { .. } | HardwareNotice::HostStarted { .. }) => {
                panic!("{other:?}")
            }
        };
    }
    assert_eq!(seen, storm);
}

#[tokio::test]
async fn a_refused_subscription_leaves_polling() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["return-code", "dcmi_subscribe_fault_event", "-8255"]);
    let node = start(&sim);
    assert!(node.inventory().await.is_complete());
    assert_eq!(node.sample().await.len(), 8);
}
