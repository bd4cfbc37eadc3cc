//! What happens to a store while it runs.

use std::fs;
use std::sync::Arc;

use ascend_agent::ports::{HistoryQuery, Journal, JournalError, StoredState};

use crate::fixtures::{directory, grant, model, open, sorted};

#[tokio::test]
async fn a_file_removed_while_in_use_is_told_and_begun_anew() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.commit(grant(&[1])).await.unwrap();
    fs::remove_file(directory.join("state.redb")).unwrap();
    let told = store.commit(grant(&[2])).await.unwrap_err();
    assert!(
        matches!(&told, JournalError::Damaged { cause } if cause.contains("removed")),
        "{told}"
    );
    let refused = store.commit(grant(&[2])).await.unwrap_err();
    assert!(
        matches!(refused, JournalError::ReloadFirst { .. }),
        "{refused}"
    );
    assert_eq!(sorted(store.load().await.unwrap()), StoredState::default());
    assert_eq!(
        store.status().borrow().rebuilt.as_ref().unwrap().set_aside,
        None
    );
    // The ledger writes what it knows; numbers go on where they were.
    let sequence = store.commit(grant(&[1, 2])).await.unwrap();
    assert!(sequence.0 > 2, "{sequence}");
    store.close().await;
    assert_eq!(
        sorted(open(&directory).unwrap().state),
        model(&[grant(&[1, 2])])
    );
}

#[tokio::test]
async fn a_file_replaced_while_in_use_is_set_aside_and_not_believed() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.commit(grant(&[1])).await.unwrap();
    let copy = directory.join("copy");
    store.backup(copy.clone()).await.unwrap();
    store.commit(grant(&[2])).await.unwrap();
    fs::rename(copy, directory.join("state.redb")).unwrap();
    let told = store.commit(grant(&[3])).await.unwrap_err();
    assert!(
        matches!(&told, JournalError::Damaged { cause } if cause.contains("replaced")),
        "{told}"
    );
    assert_eq!(sorted(store.load().await.unwrap()), StoredState::default());
    assert!(
        store
            .status()
            .borrow()
            .rebuilt
            .as_ref()
            .unwrap()
            .set_aside
            .is_some()
    );
}

#[tokio::test]
async fn a_commit_nobody_waited_for_fences_the_store_until_it_is_read() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    let mut refused = false;
    // Given up at once: it was either never begun, or became durable and fences what follows.
    for number in 0..200 {
        let given_up = store.commit(grant(&[number]));
        let waited = tokio::time::timeout(std::time::Duration::from_micros(300), given_up).await;
        if matches!(waited, Ok(Ok(_))) {
            continue;
        }
        match store.commit(grant(&[500])).await {
            Ok(_) => {}
            Err(JournalError::ReloadFirst { .. }) => {
                let state = store.load().await.unwrap();
                let id = crate::fixtures::allocation(number).id;
                assert!(
                    state.allocations.iter().any(|held| held.id == id),
                    "{number}"
                );
                refused = true;
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused, "no commit was given up in the middle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_and_a_backup_run_beside_commits() {
    let (_keep, directory) = directory();
    let store = Arc::new(open(&directory).unwrap().store);
    let query = HistoryQuery {
        limit: 1000,
        ..HistoryQuery::default()
    };
    let reading = async {
        let mut seen = 0;
        while seen < 300 {
            let page = store.history(query).await.unwrap();
            assert!(page.len() >= seen, "history shrank");
            seen = page.len();
        }
    };
    let copying = async {
        for turn in 0..5 {
            store
                .backup(directory.join(format!("copy-{turn}")))
                .await
                .unwrap();
        }
    };
    let committing = async {
        for number in 0..300 {
            store.commit(grant(&[number])).await.unwrap();
        }
    };
    tokio::join!(reading, copying, committing);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.close().await;
    assert_eq!(store.commit(grant(&[1])).await, Err(JournalError::Closed));
    assert_eq!(store.load().await, Err(JournalError::Closed));
    assert_eq!(
        store.history(HistoryQuery::default()).await,
        Err(JournalError::Closed)
    );
    open(&directory).unwrap();
}
