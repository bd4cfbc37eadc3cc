//! How hosts live and end.

use super::*;

#[tokio::test]
async fn a_killed_host_is_noticed_at_once_and_back_within_a_second() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start(&sim);
    let before = node.inventory().await;
    let (_, mut pid) = node.host_started().await;
    for round in 2..=3 {
        let began = Instant::now();
        signal("-KILL", pid);
        let cause = ended(node.notice().await).unwrap();
        assert!(cause.contains("signal: 9"), "{cause}");
        let (epoch, next) = node.host_started().await;
        println!("ready again {:?} after the kill", began.elapsed());
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(epoch, round);
        pid = next;
        assert_eq!(node.inventory().await, before);
        assert_eq!(node.sample().await.len(), 8);
    }
}

#[tokio::test]
async fn a_second_host_waits_for_the_lock_and_takes_over_when_the_first_is_gone() {
    let sim = Sim::start("910b3-8x1");
    let mut first = start(&sim);
    first.inventory().await;
    let (_, pid) = first.host_started().await;
    let state = first.state.path().to_path_buf();
    let impatient = start_with(&sim, |config| {
        config.state_dir.clone_from(&state);
        config.lock_wait = Duration::from_millis(100);
    });
    let Err(HardwareError::Host(text)) = impatient.driver.inventory(false).await else {
        panic!("two hosts at once");
    };
    assert!(text.contains("another driver host still holds"), "{text}");
    assert!(is_running(pid));
    let patient = start_with(&sim, |config| config.state_dir.clone_from(&state));
    let (taken_over, ()) = tokio::join!(patient.inventory(), first.driver.close());
    assert!(taken_over.is_complete());
    assert!(!is_running(pid));
}

#[tokio::test]
async fn close_ends_the_host_and_later_requests_say_so() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start(&sim);
    node.inventory().await;
    let (_, pid) = node.host_started().await;
    let began = Instant::now();
    node.driver.close().await;
    assert!(
        !Path::new(&format!("/proc/{pid}")).exists(),
        "the host is not reaped"
    );
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(matches!(
        node.driver.inventory(false).await,
        Err(HardwareError::Host(_))
    ));
    node.driver.close().await;
}

#[tokio::test]
async fn close_kills_a_host_that_does_not_end_in_time() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start_with(&sim, |config| {
        config.close_deadline = Duration::from_millis(200);
    });
    node.inventory().await;
    let (_, pid) = node.host_started().await;
    signal("-STOP", pid);
    node.driver.close().await;
    assert!(
        !Path::new(&format!("/proc/{pid}")).exists(),
        "the host is not reaped"
    );
}

#[tokio::test]
async fn a_dropped_driver_takes_its_host_along() {
    let sim = Sim::start("910b3-8x1");
    let mut node = start(&sim);
    node.inventory().await;
    let (_, pid) = node.host_started().await;
    drop(node.driver);
    eventually("the host's end", async || !is_running(pid)).await;
}

#[tokio::test]
async fn a_host_that_hangs_in_the_driver_dies_with_its_agent_and_leaves_the_lock() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["hang", "dcmi_init"]);
    let state = tempfile::tempdir().unwrap();
    // A process of its own plays the agent, so that it can be killed.
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "life::plays_an_agent_for_another_test",
            "--ignored",
        ])
        .env("DRIVER_HOST_TEST_STATE", state.path())
        .env("ASCEND_SIM_SOCKET", sim.socket())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut host = None;
    eventually("the hang", async || {
        host = held_pid(&sim.ctl(&["calls", "--json"]));
        host.is_some()
    })
    .await;
    let host = host.unwrap();
    assert!(is_running(host));
    agent.kill().unwrap();
    agent.wait().unwrap();
    eventually("the orphan's end", async || !is_running(host)).await;
    sim.ctl(&["release"]);
    let next = start_with(&sim, |config| config.state_dir = state.path().to_path_buf());
    assert!(next.inventory().await.is_complete());
}

fn held_pid(calls: &str) -> Option<u32> {
    let calls: serde_json::Value = serde_json::from_str(calls).unwrap();
    u32::try_from(calls["held"][0]["pid"].as_u64()?).ok()
}

#[tokio::test]
#[ignore = "another test starts it as a process of its own"]
async fn plays_an_agent_for_another_test() {
    let state = std::env::var_os("DRIVER_HOST_TEST_STATE").unwrap();
    let mut config = DriverConfig::new(env!("CARGO_BIN_EXE_ascend-agent").into(), state.into());
    config.trusted_library = Some(sim::library());
    let (sender, _notices) = mpsc::channel(64);
    let driver = DriverHost::start(config, sender).unwrap();
    driver.inventory(false).await.unwrap();
}

/// Memory of its own; pages of an unoptimised program's file come and go with the machine.
const HOST_ANONYMOUS_MAX_KIB: u64 = 8 * 1024;

#[tokio::test]
async fn a_host_of_sixteen_chips_stays_small_and_sleeps_when_nothing_happens() {
    let sim = Sim::start_changed("910b3-8x1", &[("count = 8", "count = 16")]);
    let mut node = start(&sim);
    assert_eq!(node.inventory().await.chips.len(), 16);
    let (_, pid) = node.host_started().await;
    for _ in 0..50 {
        assert_eq!(node.driver.sample(true).await.unwrap().len(), 16);
    }
    let anonymous = status_kib(pid, "RssAnon:");
    assert!(anonymous < HOST_ANONYMOUS_MAX_KIB, "{anonymous} KiB");
    eventually(
        "a quarter of a second in which no thread wakes",
        async || {
            let before = wake_ups(pid);
            tokio::time::sleep(Duration::from_millis(250)).await;
            wake_ups(pid) == before
        },
    )
    .await;
}

fn status_kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn wake_ups(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let switches = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    threads.map(|thread| switches(thread.unwrap())).sum()
}
