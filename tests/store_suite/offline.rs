//! Backups, checks and offline reading.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ascend_agent::ports::{HistoryQuery, Journal, JournalError};
use ascend_agent::store::{OpenError, check, open_copy};

use crate::fixtures::{directory, grant, model, open, script, sorted};

/// Every file of a directory and what is in it.
pub(crate) fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_backup_opens_as_a_store_with_the_same_content() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    for batch in script() {
        store.commit(batch).await.unwrap();
    }
    let query = HistoryQuery {
        limit: 1000,
        ..HistoryQuery::default()
    };
    let history = store.history(query).await.unwrap();
    let copy = directory.join("b").join("state.redb");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    let bytes = store.backup(copy.clone()).await.unwrap();
    let metadata = fs::metadata(&copy).unwrap();
    assert_eq!(metadata.len(), bytes);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let restored = open(copy.parent().unwrap()).unwrap();
    assert_eq!(restored.rebuilt, None);
    assert_eq!(sorted(restored.state), model(&script()));
    assert_eq!(restored.store.history(query).await.unwrap(), history);
}

#[tokio::test]
async fn a_backup_overwrites_nothing_and_needs_its_folder() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    let taken = directory.join("taken");
    fs::write(&taken, "mine").unwrap();
    for path in [taken.clone(), directory.join("no/folder")] {
        let refused = store.backup(path).await.unwrap_err();
        assert!(matches!(refused, JournalError::Request(_)), "{refused}");
    }
    assert_eq!(fs::read(taken).unwrap(), b"mine");
    store.commit(grant(&[1])).await.unwrap();
}

#[tokio::test]
async fn a_check_and_a_look_change_nothing_and_leave_nothing() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    for batch in script() {
        store.commit(batch).await.unwrap();
    }
    store.close().await;
    let before = content(&directory);
    let report = check(&directory).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(
        (report.schema, report.allocations, report.chips),
        (Some(1), 4, 5)
    );
    assert_eq!((report.history, report.outbox), (9, 0));
    let look = open_copy(&directory).unwrap();
    assert_eq!(sorted(look.state().clone()), model(&script()));
    let query = HistoryQuery {
        limit: 1000,
        ..HistoryQuery::default()
    };
    assert_eq!(look.history(query).unwrap().len(), 9);
    let copy = directory.parent().unwrap().join("copy");
    look.backup(&copy).unwrap();
    drop(look);
    assert_eq!(content(&directory), before);
}

#[tokio::test]
async fn a_check_reports_damage_and_leaves_the_file_for_the_agent() {
    let (_keep, directory) = directory();
    open(&directory).unwrap().store.close().await;
    fs::write(directory.join("state.redb"), vec![7; 5000]).unwrap();
    let before = content(&directory);
    let report = check(&directory).unwrap();
    assert!(!report.is_clean());
    assert_eq!(report.bytes, 5000);
    assert!(matches!(
        open_copy(&directory),
        Err(OpenError::Damaged { .. })
    ));
    assert_eq!(content(&directory), before);
}

#[tokio::test]
async fn an_offline_look_is_refused_while_an_agent_runs_and_without_a_store() {
    let (_keep, directory) = directory();
    assert!(matches!(
        open_copy(&directory),
        Err(OpenError::Missing { .. })
    ));
    let store = open(&directory).unwrap().store;
    assert!(matches!(check(&directory), Err(OpenError::InUse { .. })));
    store.close().await;
    check(&directory).unwrap();
}

#[tokio::test]
async fn an_agent_removes_the_copies_of_killed_readers_only() {
    let (_keep, directory) = directory();
    open(&directory).unwrap().store.close().await;
    let dead = directory.join("offline-copy-1-0");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("agent.lock"), "pid 1\n").unwrap();
    let look = open_copy(&directory).unwrap();
    let store = open(&directory).unwrap().store;
    assert!(!dead.exists());
    assert_eq!(
        look.history(HistoryQuery {
            limit: 9,
            ..HistoryQuery::default()
        }),
        Ok(Vec::new())
    );
    drop(look);
    store.close().await;
    assert_eq!(content(&directory).len(), 4);
}
