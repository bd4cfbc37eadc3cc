//! Flipped, cut, surplus and missing bytes: a new store or the right content, never a panic and never
//! other holders.

use std::fs;
use std::path::Path;

use ascend_agent::domain::history::{HistoryEvent, HistoryRecord};
use ascend_agent::ports::{HistoryQuery, Journal, StoredState};
use ascend_agent::store::Rebuilt;

use crate::fixtures::{chips, directory, grant, open, release, sorted, started};

struct Original {
    bytes: Vec<u8>,
    mark: Vec<u8>,
    state: StoredState,
    history: Vec<HistoryRecord>,
}

fn all() -> HistoryQuery {
    HistoryQuery {
        limit: 1000,
        ..HistoryQuery::default()
    }
}

/// A store with content in every table, closed in order or copied while open.
async fn original(closed: bool) -> Original {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.commit(started()).await.unwrap();
    store
        .commit(chips(&(0..16).collect::<Vec<_>>()))
        .await
        .unwrap();
    for number in 0..40 {
        store.commit(grant(&[number])).await.unwrap();
        if number.is_multiple_of(3) {
            store.commit(release(number)).await.unwrap();
        }
    }
    let state = sorted(store.load().await.unwrap());
    let history = store.history(all()).await.unwrap();
    let file = directory.join("state.redb");
    let open_bytes = fs::read(&file).unwrap();
    store.close().await;
    let bytes = if closed {
        fs::read(&file).unwrap()
    } else {
        open_bytes
    };
    let mark = fs::read(directory.join("last-commit")).unwrap();
    Original {
        bytes,
        mark,
        state,
        history,
    }
}

/// Opens a store of these bytes and holds it against the original.
async fn rebuilt_or_right(original: &Original, bytes: &[u8], context: &str) -> Option<Rebuilt> {
    let (_keep, directory) = directory();
    lay(&directory, bytes, &original.mark);
    let opened = open(&directory).unwrap_or_else(|error| panic!("{context}: {error}"));
    let history = opened.store.history(all()).await.unwrap();
    if let Some(rebuilt) = &opened.rebuilt {
        assert_eq!(sorted(opened.state), StoredState::default(), "{context}");
        let aside = rebuilt.set_aside.as_ref().unwrap();
        assert_eq!(fs::read(aside).unwrap().len(), bytes.len(), "{context}");
        assert_eq!(history.len(), 1, "{context}");
        let event = HistoryEvent::StoreRebuilt {
            set_aside: aside.display().to_string(),
            damage: rebuilt.damage.clone(),
        };
        assert_eq!(history[0].event, event, "{context}");
    } else {
        assert!(
            sorted(opened.state) == original.state,
            "{context}: other holders"
        );
        assert!(history == original.history, "{context}: other history");
    }
    opened.store.commit(grant(&[77])).await.unwrap();
    opened.store.close().await;
    opened.rebuilt
}

fn lay(directory: &Path, bytes: &[u8], mark: &[u8]) {
    fs::create_dir(directory).unwrap();
    fs::write(directory.join("state.redb"), bytes).unwrap();
    fs::write(directory.join("schema"), "1\n").unwrap();
    fs::write(directory.join("last-commit"), mark).unwrap();
}

async fn flip(closed: bool, places: impl Fn(usize) -> Vec<usize>) {
    let original = original(closed).await;
    let mut rebuilt = 0;
    let places = places(original.bytes.len());
    for place in &places {
        let mut bytes = original.bytes.clone();
        bytes[*place] ^= 0xFF;
        let context = format!("byte {place} of {}", bytes.len());
        rebuilt += usize::from(
            rebuilt_or_right(&original, &bytes, &context)
                .await
                .is_some(),
        );
    }
    assert!(rebuilt > 0, "no flip of {} was damage", places.len());
}

#[tokio::test]
async fn every_512th_byte_flipped_is_found_or_harmless_in_a_closed_file() {
    flip(true, |length| (0..length).step_by(512).collect()).await;
}

#[tokio::test]
async fn every_512th_byte_flipped_is_found_or_harmless_in_a_file_left_open() {
    flip(false, |length| (256..length).step_by(512).collect()).await;
}

#[tokio::test]
async fn every_byte_of_the_head_flipped_is_found_or_harmless_in_a_closed_file() {
    flip(true, |_| (0..320).collect()).await;
}

#[tokio::test]
async fn every_byte_of_the_head_flipped_is_found_or_harmless_in_a_file_left_open() {
    flip(false, |_| (0..320).collect()).await;
}

#[tokio::test]
async fn every_length_class_is_found_or_harmless() {
    let original = original(true).await;
    let full = original.bytes.len();
    let mut lengths = vec![0, 1, 9, 63, 64, 127, 128, 319, 320, 511, 512, 513, full - 1];
    for page in (4096..full).step_by(4096) {
        lengths.extend([page - 1, page, page + 1]);
    }
    for length in lengths {
        let context = format!("cut to {length} of {full}");
        rebuilt_or_right(&original, &original.bytes[..length], &context).await;
    }
}

#[tokio::test]
async fn surplus_bytes_are_found_or_harmless() {
    let original = original(true).await;
    for surplus in [1, 511, 4096, 1 << 20] {
        let mut bytes = original.bytes.clone();
        bytes.resize(bytes.len() + surplus, 0xFF);
        rebuilt_or_right(&original, &bytes, &format!("{surplus} bytes more")).await;
    }
}

#[tokio::test]
async fn an_empty_file_is_damage_and_not_an_empty_store() {
    let original = original(true).await;
    let rebuilt = rebuilt_or_right(&original, &[], "empty").await.unwrap();
    assert!(rebuilt.damage.contains("empty"), "{}", rebuilt.damage);
}

#[tokio::test]
async fn foreign_bytes_are_damage() {
    let original = original(true).await;
    for bytes in [vec![0; 8192], vec![0xFF; 8192], b"not a database".to_vec()] {
        assert!(
            rebuilt_or_right(&original, &bytes, "foreign")
                .await
                .is_some()
        );
    }
}

#[tokio::test]
async fn a_missing_file_where_a_store_was_is_told_and_no_first_start() {
    let (_keep, directory) = directory();
    assert_eq!(open(&directory).map(|opened| opened.rebuilt).unwrap(), None);
    crate::fixtures::eventually_unlocked(&directory).await;
    fs::remove_file(directory.join("state.redb")).unwrap();
    let rebuilt = open(&directory).unwrap().rebuilt.unwrap();
    assert_eq!(rebuilt.set_aside, None);
    assert!(rebuilt.damage.contains("missing"), "{}", rebuilt.damage);
}

#[tokio::test]
async fn repeated_damage_keeps_five_files_and_ends_no_start() {
    let (_keep, directory) = directory();
    for round in 0..8 {
        let opened = open(&directory).unwrap();
        assert_eq!(opened.rebuilt.is_some(), round > 0);
        opened.store.close().await;
        fs::write(directory.join("state.redb"), format!("damaged {round}")).unwrap();
    }
    let damaged = fs::read_dir(&directory).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("state.redb.damaged-")
    });
    assert_eq!(damaged.count(), 5);
}

#[tokio::test]
async fn an_older_copy_put_back_is_not_believed() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.commit(grant(&[1])).await.unwrap();
    let copy = directory.join("copy");
    store.backup(copy.clone()).await.unwrap();
    let last = store.commit(grant(&[2])).await.unwrap();
    store.close().await;
    fs::rename(copy, directory.join("state.redb")).unwrap();
    let opened = open(&directory).unwrap();
    let rebuilt = opened.rebuilt.unwrap();
    assert!(rebuilt.damage.contains("missing"), "{}", rebuilt.damage);
    // Numbers go on where they were, so that nobody who follows the history misses the rebuild.
    assert!(opened.state.last_sequence > Some(last));
}
