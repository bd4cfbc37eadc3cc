//! Calls that do not come back.

use super::*;

#[tokio::test]
async fn a_chip_whose_first_reading_hangs_spoils_no_other() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["hang", "dcmi_get_device_board_info", "--chip", "4"]);
    let node = start_with(&sim, |config| {
        config.facts_deadline = Duration::from_secs(1);
    });
    let inventory = node.inventory().await;
    assert_eq!(inventory.chips.len(), 7);
    assert_eq!(inventory.problems, ["card 4 device 0: no answer in time"]);
}

#[tokio::test]
async fn a_hung_call_costs_its_own_chip_only_and_no_time() {
    let sim = Sim::start("910b3-8x1");
    let node = start_with(&sim, |config| {
        config.call_deadline = Duration::from_millis(400);
    });
    node.inventory().await;
    sim.ctl(&["hang", "dcmi_get_device_health", "--chip", "6"]);
    for round in 0..3 {
        let began = Instant::now();
        let samples = node.sample().await;
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "round {round}: {:?}",
            began.elapsed()
        );
        for sample in &samples {
            let normal = HealthReading::Level(HealthLevel::Normal);
            let expected = if sample.logic.0 == 6 {
                HealthReading::NoAnswer
            } else {
                normal
            };
            assert_eq!(
                sample.health, expected,
                "round {round}, chip {}",
                sample.logic
            );
        }
    }
    // The thread that hangs is given no further call.
    let held = sim.ctl(&["calls", "--json"]);
    assert_eq!(
        held.matches("\"symbol\":\"dcmi_get_device_health\"")
            .count(),
        1,
        "{held}"
    );
    sim.ctl(&["release"]);
    eventually("the chip's answer after the release", async || {
        health_of(&node.sample().await, 6) == HealthReading::Level(HealthLevel::Normal)
    })
    .await;
}

#[tokio::test]
async fn a_lasting_hang_costs_the_host_once_and_the_chip_recovers() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start_with(&sim, |config| {
        config.call_deadline = Duration::from_millis(200);
        config.stuck_patience = Duration::from_secs(1);
    });
    node.inventory().await;
    let (_, first) = node.host_started().await;
    sim.ctl(&["hang", "dcmi_get_device_health", "--chip", "0"]);
    eventually("the hang", async || {
        health_of(&node.sample().await, 0) == HealthReading::NoAnswer
    })
    .await;
    eventually("the replacement", async || {
        // While one host follows the other a sample may fail.
        let _sampled = node.driver.sample(false).await;
        !is_running(first)
    })
    .await;
    sim.ctl(&["release"]);
    let (epoch, _) = node.host_started().await;
    assert_eq!(epoch, 2);
    eventually("the recovery", async || {
        node.driver.sample(false).await.is_ok_and(|samples| {
            health_of(&samples, 0) == HealthReading::Level(HealthLevel::Normal)
        })
    })
    .await;
}

#[tokio::test]
async fn more_stuck_threads_than_the_bound_cost_the_host_at_once() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start_with(&sim, |config| {
        config.call_deadline = Duration::from_millis(200);
        config.stuck_bound = 2;
    });
    node.inventory().await;
    node.host_started().await;
    for chip in ["0", "1", "2"] {
        sim.ctl(&["hang", "dcmi_get_device_health", "--chip", chip]);
    }
    let mut cause = None;
    eventually("the host's end", async || {
        // While one host follows the other a sample may fail.
        let _sampled = node.driver.sample(false).await;
        cause = std::iter::from_fn(|| node.notices.try_recv().ok()).find_map(ended);
        cause.is_some()
    })
    .await;
    assert!(cause.unwrap().starts_with("3 calls hang"));
}

#[tokio::test]
async fn an_initialisation_that_hangs_ends_at_its_deadline_and_with_it_the_host() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["hang", "dcmi_init"]);
    let within = Duration::from_secs(1);
    let node = start_with(&sim, |config| config.init_deadline = within);
    assert_eq!(
        node.driver.inventory(false).await,
        Err(HardwareError::Deadline { within })
    );
    sim.ctl(&["release"]);
    let mended = start(&sim);
    assert!(mended.inventory().await.is_complete());
}

#[tokio::test]
async fn a_host_that_stands_still_is_replaced() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start(&sim);
    node.inventory().await;
    let (_, pid) = node.host_started().await;
    signal("-STOP", pid);
    assert!(matches!(
        node.driver.sample(false).await,
        Err(HardwareError::Host(_))
    ));
    let (epoch, _) = node.host_started().await;
    assert_eq!(epoch, 2);
    assert_eq!(node.sample().await.len(), 8);
}
