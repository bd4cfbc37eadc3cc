//! The disk fails at every single operation of a workload, in every way.

use std::path::Path;

use ascend_agent::ports::{Journal, JournalError, StoredState};
use ascend_agent::store::{Opened, Settings, Store};

use crate::fixtures::{clock, directory, grant, model, open, script, sorted};
use crate::media::{Failure, Fate};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EROFS: i32 = 30;

/// Opens with a fate and commits until something fails; returns how many commits were acknowledged.
async fn run(directory: &Path, fate: &std::sync::Arc<Fate>) -> (usize, Option<Store>) {
    let mut settings = Settings::new(directory.to_path_buf());
    settings.medium = fate.medium();
    let Ok(Opened { store, .. }) = Store::open(settings, clock()) else {
        return (0, None);
    };
    let mut acknowledged = 0;
    for batch in script() {
        if store.commit(batch).await.is_err() {
            break;
        }
        acknowledged += 1;
    }
    (acknowledged, Some(store))
}

fn assert_whole_or_absent(state: StoredState, acknowledged: usize, context: &str) {
    let script = script();
    let state = sorted(state);
    let without = model(&script[..acknowledged]);
    let with = model(&script[..script.len().min(acknowledged + 1)]);
    assert!(
        state == without || state == with,
        "{context}: {acknowledged} acknowledged, {state:#?}"
    );
}

/// Every operation of the workload in turn, until one run is not struck at all.
async fn for_every_operation(failure: impl Fn(u64) -> Failure, heal: bool) {
    let mut struck_runs = 0;
    for at in 0.. {
        let (_keep, directory) = directory();
        let fate = Fate::new(failure(at), at);
        let (acknowledged, store) = run(&directory, &fate).await;
        let struck = fate.struck();
        let context = format!("operation {at}");
        let healed = heal && struck && store.is_some();
        if let Some(store) = store {
            if healed {
                fate.heal();
                let state = store.load().await.unwrap();
                assert_whole_or_absent(state, acknowledged, &context);
                for batch in script() {
                    store.commit(batch).await.unwrap();
                }
            }
            store.close().await;
        }
        let opened = open(&directory).unwrap();
        assert_eq!(opened.rebuilt, None, "{context}");
        if healed {
            assert_eq!(sorted(opened.state), model(&script()), "{context}");
        } else {
            assert_whole_or_absent(opened.state, acknowledged, &context);
        }
        opened.store.close().await;
        if !struck {
            assert_eq!(acknowledged, script().len());
            break;
        }
        struck_runs += 1;
    }
    assert!(
        struck_runs > 40,
        "the workload has only {struck_runs} operations"
    );
}

#[tokio::test]
async fn a_disk_that_fills_up_at_any_write_loses_no_acknowledged_commit() {
    for_every_operation(|_| Failure::Errno(ENOSPC), true).await;
}

#[tokio::test]
async fn a_disk_that_fails_at_any_write_loses_no_acknowledged_commit() {
    for_every_operation(|_| Failure::Errno(EIO), false).await;
}

#[tokio::test]
async fn a_power_cut_at_any_write_loses_no_acknowledged_commit() {
    for_every_operation(
        |at| Failure::PowerCut {
            seed: Some(at * 7919 + 1),
        },
        false,
    )
    .await;
}

#[tokio::test]
async fn a_power_cut_that_loses_every_unsynced_write_loses_no_acknowledged_commit() {
    for_every_operation(|_| Failure::PowerCut { seed: None }, false).await;
}

#[tokio::test]
async fn names_the_kind_of_failure_and_asks_for_a_reload_afterwards() {
    for (errno, expected) in [
        (ENOSPC, "no space left"),
        (EROFS, "cannot be written"),
        (EIO, "input/output"),
    ] {
        let (_keep, directory) = directory();
        let fate = Fate::new(Failure::Errno(errno), u64::MAX);
        let mut settings = Settings::new(directory.clone());
        settings.medium = fate.medium();
        let store = Store::open(settings.clone(), clock()).unwrap().store;
        store.commit(script().remove(0)).await.unwrap();
        store.close().await;

        let fate = Fate::new(Failure::Errno(errno), 60);
        settings.medium = fate.medium();
        let store = Store::open(settings, clock()).unwrap().store;
        let error = loop {
            if let Err(error) = store.commit(grant(&[1])).await {
                break error;
            }
        };
        assert!(error.retryable());
        let text = error.to_string().to_lowercase();
        assert!(text.contains(&expected.to_lowercase()), "{errno}: {text}");
        fate.heal();
        let refused = store.commit(grant(&[9])).await.unwrap_err();
        assert!(
            matches!(refused, JournalError::ReloadFirst { .. }),
            "{refused:?}"
        );
        store.load().await.unwrap();
        store.commit(grant(&[2])).await.unwrap();
        assert!(store.status().borrow().generation > 1);
        assert_eq!(store.status().borrow().failing, None);
        store.close().await;
    }
}
