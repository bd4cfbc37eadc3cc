//! The multi-die policy of A3 nodes.

use super::beside::{A3, start_beside};
use super::*;

struct Policed {
    _sim: Sim,
    node: Node,
    log: tempfile::NamedTempFile,
}

async fn policed(mood: &str) -> Policed {
    let sim = Sim::start_changed("910b3-8x1", A3);
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap();
    let variables = [
        ("ASCEND_TEST_POLICY_LOG", path),
        ("ASCEND_TEST_POLICY", mood),
    ];
    let node = start_beside(&sim, &variables);
    assert!(node.inventory().await.is_complete());
    Policed {
        _sim: sim,
        node,
        log,
    }
}

impl Policed {
    async fn set(&self, policy: DiePolicy) -> Result<(), HardwareError> {
        timeout(PATIENCE, self.node.driver.set_die_policy(policy))
            .await
            .unwrap()
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn the_die_policy_is_set_and_read_back_once_per_driver_host() {
    let mut policed = policed("").await;
    for _ in 0..2 {
        assert_eq!(policed.set(DiePolicy::Independent).await, Ok(()));
    }
    assert_eq!(policed.calls(), ["set 1", "get 1"]);
    let (_, pid) = policed.node.host_started().await;
    signal("-KILL", pid);
    policed.node.host_started().await;
    assert_eq!(policed.set(DiePolicy::Independent).await, Ok(()));
    assert_eq!(policed.calls(), ["set 1", "get 1", "set 1", "get 1"]);
    assert_eq!(policed.set(DiePolicy::Union).await, Ok(()));
    assert_eq!(policed.calls()[4..], ["set 0", "get 0"]);
}

#[tokio::test]
async fn a_refused_die_policy_names_call_and_code_and_is_not_asked_again() {
    let policed = policed("refuse").await;
    for _ in 0..2 {
        let refused = policed.set(DiePolicy::Independent).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "multi-die policy: dcmi_set_multi_die_policy returned -8002 (not permitted)"
        );
    }
    assert_eq!(policed.calls(), ["set 1"]);
    assert_eq!(policed.node.sample().await.len(), 16);
}

#[tokio::test]
async fn a_die_policy_that_the_driver_takes_and_does_not_keep_is_an_error() {
    let policed = policed("keep").await;
    let kept = policed.set(DiePolicy::Independent).await.unwrap_err();
    assert_eq!(
        kept.to_string(),
        "multi-die policy: dcmi_get_multi_die_policy gave 0 as policy after another was set"
    );
}

#[tokio::test]
async fn a_die_policy_call_that_hangs_ends_at_its_deadline_and_delays_nothing_else() {
    let policed = policed("hang").await;
    let (hung, ()) = tokio::join!(policed.set(DiePolicy::Union), async {
        eventually("the call", async || !policed.calls().is_empty()).await;
        assert_eq!(policed.node.sample().await.len(), 16);
        assert!(policed.node.inventory().await.is_complete());
    });
    assert!(
        matches!(hung, Err(HardwareError::Deadline { .. })),
        "{hung:?}"
    );
    let again = policed.set(DiePolicy::Independent).await.unwrap_err();
    assert_eq!(
        again.to_string(),
        "multi-die policy: an earlier call has not come back"
    );
}

#[tokio::test]
async fn a_die_policy_call_ends_with_its_host() {
    let mut policed = policed("hang").await;
    let (_, pid) = policed.node.host_started().await;
    let (ended, ()) = tokio::join!(policed.set(DiePolicy::Union), async {
        eventually("the call", async || !policed.calls().is_empty()).await;
        signal("-KILL", pid);
    });
    assert!(matches!(ended, Err(HardwareError::Host(_))), "{ended:?}");
}

#[tokio::test]
async fn a_library_without_the_die_policy_is_named() {
    let sim = Sim::start("910b3-8x1");
    let dir = tempfile::tempdir().unwrap();
    let older = library_without(dir.path(), &["dcmi_set_multi_die_policy"]);
    let node = start_with(&sim, |config| config.trusted_library = Some(older));
    node.inventory().await;
    let refused = node.driver.set_die_policy(DiePolicy::Union).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "multi-die policy: the driver library lacks dcmi_set_multi_die_policy; \
         a newer driver may have it"
    );
}

#[tokio::test]
async fn a_driver_of_other_chips_refuses_a_die_policy() {
    let sim = Sim::start("910b3-8x1");
    let node = start(&sim);
    node.inventory().await;
    let refused = node.driver.set_die_policy(DiePolicy::Union).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "multi-die policy: dcmi_set_multi_die_policy returned -8255 (not supported)"
    );
}
