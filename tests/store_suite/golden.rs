//! A database of each released schema is read exactly, for ever.

use std::fs;
use std::path::{Path, PathBuf};

use ascend_agent::ports::{Batch, HistoryQuery, Journal};

use crate::fixtures::{directory, model, open, script, sorted, stamp};
use crate::records::every_event;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/golden/v1.redb")
}

fn events() -> Batch {
    Batch {
        history: (100..).map(stamp).zip(every_event()).collect(),
        ..Batch::default()
    }
}

#[tokio::test]
async fn a_database_of_schema_1_is_read_exactly() {
    let (_keep, directory) = directory();
    fs::create_dir(&directory).unwrap();
    fs::copy(golden(), directory.join("state.redb")).unwrap();
    let opened = open(&directory).unwrap();
    assert_eq!(opened.rebuilt, None);
    assert_eq!(opened.migrated, None);
    assert_eq!(sorted(opened.state), model(&script()));
    let query = HistoryQuery {
        limit: 1000,
        ..HistoryQuery::default()
    };
    let history = opened.store.history(query).await.unwrap();
    let read: Vec<_> = history
        .into_iter()
        .map(|record| (record.at, record.event))
        .collect();
    let mut written: Vec<_> = script()
        .into_iter()
        .flat_map(|batch| batch.history)
        .collect();
    written.extend(events().history);
    assert_eq!(read, written);
}

#[tokio::test]
#[ignore = "writes migrations/golden/v1.redb; run once per schema, never after its release"]
async fn write_the_golden_database() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    for batch in script().into_iter().chain([events()]) {
        store.commit(batch).await.unwrap();
    }
    store.backup(golden()).await.unwrap();
}
