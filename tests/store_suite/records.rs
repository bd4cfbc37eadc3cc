//! What is written is what is read: every event, every field, pages, times, retention.

use ascend_agent::domain::allocation::{Owner, ReleaseCause};
use ascend_agent::domain::fault::FaultCode;
use ascend_agent::domain::history::HistoryEvent;
use ascend_agent::domain::ids::{CommitSequence, PhyId};
use ascend_agent::ports::{Batch, HISTORY_PAGE_MAX, HistoryQuery, Journal, JournalError};
use ascend_agent::store::{Retention, Settings, Store};

use crate::fixtures::{
    allocation, chips, clock, die, directory, grant, model, open, resource, script, sorted, stamp,
};

/// One event of each kind.
pub(crate) fn every_event() -> Vec<HistoryEvent> {
    let held = allocation(3);
    vec![
        HistoryEvent::AgentStarted {
            version: "0.1.0".to_owned(),
        },
        HistoryEvent::AgentStopped,
        HistoryEvent::Granted {
            allocation: held.clone(),
        },
        HistoryEvent::GrantRepeated {
            allocation: held.id,
            plugin_device_id: held.plugin_device_id.clone(),
            die: held.die,
        },
        HistoryEvent::Confirmed {
            allocation: held.id,
            die: held.die,
            owner: Owner {
                pod: None,
                namespace: Some("default".to_owned()),
                ..held.owner.clone()
            },
        },
        HistoryEvent::Adopted {
            allocation: held.clone(),
        },
        HistoryEvent::Released {
            allocation: held.clone(),
            cause: ReleaseCause::OwnerMoved,
        },
        HistoryEvent::Released {
            allocation: held.clone(),
            cause: ReleaseCause::GrantedAgain,
        },
        HistoryEvent::Released {
            allocation: held,
            cause: ReleaseCause::ProvenGone,
        },
        HistoryEvent::Refused {
            resource: resource(),
            ids: vec!["Ascend910-99".to_owned(), String::new()],
            reason: "plugin doesn't have device Ascend910-99".to_owned(),
        },
        HistoryEvent::ChipAppeared {
            die: die(1),
            phy: PhyId(1),
            chip_name: "910B3".to_owned(),
        },
        HistoryEvent::ChipMoved {
            die: die(1),
            from: PhyId(1),
            to: PhyId(2),
        },
        HistoryEvent::ChipVanished {
            die: die(1),
            phy: PhyId(2),
        },
        HistoryEvent::ChipHealth {
            die: die(2),
            phy: PhyId(2),
            healthy: false,
            reason: "critical".to_owned(),
            codes: vec![FaultCode(0x80E0_1801), FaultCode(0)],
        },
        HistoryEvent::StoreRebuilt {
            set_aside: "/x".to_owned(),
            damage: "y".to_owned(),
        },
    ]
}

fn events(number: u64) -> Batch {
    let event = |second| (stamp(second), HistoryEvent::AgentStopped);
    Batch {
        history: (0..number).map(event).collect(),
        ..Batch::default()
    }
}

fn limit(limit: usize) -> HistoryQuery {
    HistoryQuery {
        limit,
        ..HistoryQuery::default()
    }
}

#[tokio::test]
async fn every_event_reads_back_after_a_restart() {
    let (_keep, directory) = directory();
    let written: Vec<_> = (0..).map(stamp).zip(every_event()).collect();
    let store = open(&directory).unwrap().store;
    store
        .commit(Batch {
            history: written.clone(),
            ..Batch::default()
        })
        .await
        .unwrap();
    store.close().await;
    let store = open(&directory).unwrap().store;
    let read = store.history(limit(100)).await.unwrap();
    let sequences: Vec<_> = read.iter().map(|record| record.sequence.0).collect();
    assert_eq!(
        sequences,
        (1..=u64::try_from(written.len()).unwrap()).collect::<Vec<_>>()
    );
    let read: Vec<_> = read
        .into_iter()
        .map(|record| (record.at, record.event))
        .collect();
    assert_eq!(read, written);
}

#[tokio::test]
async fn state_reads_back_after_a_restart_and_a_repeated_batch_changes_nothing() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    let mut last = CommitSequence(0);
    for batch in script()
        .into_iter()
        .flat_map(|batch| [batch.clone(), batch])
    {
        let sequence = store.commit(batch).await.unwrap();
        assert!(sequence > last);
        last = sequence;
    }
    store.close().await;
    let opened = open(&directory).unwrap();
    assert_eq!(opened.state.last_sequence, Some(last));
    assert_eq!(opened.store.load().await.unwrap(), opened.state);
    assert_eq!(sorted(opened.state), model(&script()));
}

#[tokio::test]
async fn an_empty_batch_takes_no_number() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    assert_eq!(
        store.commit(Batch::default()).await.unwrap(),
        CommitSequence(0)
    );
    assert_eq!(store.commit(grant(&[1])).await.unwrap(), CommitSequence(1));
    assert_eq!(
        store.commit(Batch::default()).await.unwrap(),
        CommitSequence(1)
    );
    assert_eq!(store.commit(chips(&[1])).await.unwrap(), CommitSequence(2));
}

#[tokio::test]
async fn pages_follow_each_other_and_are_bounded() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.commit(events(2500)).await.unwrap();
    let mut query = limit(usize::MAX);
    let mut lengths = Vec::new();
    loop {
        let page = store.history(query).await.unwrap();
        lengths.push(page.len());
        let Some(last) = page.last() else { break };
        query.after = Some(last.sequence);
    }
    assert_eq!(lengths, [HISTORY_PAGE_MAX, HISTORY_PAGE_MAX, 500, 0]);
}

#[tokio::test]
async fn times_select_records_wherever_the_clock_jumped() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    for second in [10, 20, 5, 15] {
        let history = vec![(stamp(second), HistoryEvent::AgentStopped)];
        store
            .commit(Batch {
                history,
                ..Batch::default()
            })
            .await
            .unwrap();
    }
    let query = HistoryQuery {
        since_utc_ns: Some(stamp(10).utc_ns),
        until_utc_ns: Some(stamp(20).utc_ns),
        ..limit(10)
    };
    let read = store.history(query).await.unwrap();
    let sequences: Vec<_> = read.iter().map(|record| record.sequence.0).collect();
    assert_eq!(sequences, [1, 4]);
}

#[tokio::test]
async fn history_is_bounded_and_state_is_not_touched_by_it() {
    let (_keep, directory) = directory();
    let mut settings = Settings::new(directory);
    settings.retention = Retention { records: 300 };
    let store = Store::open(settings, clock()).unwrap().store;
    store.commit(grant(&[1, 2])).await.unwrap();
    let last = store.commit(events(900)).await.unwrap();
    // At once down to twice the bound, and from there a piece of 100 per idle moment until the hour's
    // share is used up: the clock of this test moves a second per look.
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let kept = store.history(limit(1000)).await.unwrap();
        assert!(kept.len() <= 600, "{}", kept.len());
        assert_eq!(kept.last().unwrap().sequence, last);
        if kept.len() == 500 {
            break;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "{} are still kept",
            kept.len()
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(
        sorted(store.load().await.unwrap()),
        model(&[grant(&[1, 2])])
    );
}

#[tokio::test]
async fn a_batch_with_an_oversized_record_is_refused_whole_and_the_store_goes_on() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    let mut batch = grant(&[1]);
    let version = "x".repeat(300 * 1024);
    batch
        .history
        .push((stamp(1), HistoryEvent::AgentStarted { version }));
    let refused = store.commit(batch).await.unwrap_err();
    assert!(matches!(refused, JournalError::Request(_)), "{refused:?}");
    assert!(!refused.retryable());
    assert_eq!(store.load().await.unwrap().allocations, []);
    store.commit(grant(&[1])).await.unwrap();
}

#[tokio::test]
async fn a_store_in_memory_says_so_and_copies_nothing() {
    let store = Store::volatile(clock()).unwrap().store;
    assert!(!store.is_durable());
    store.commit(grant(&[1])).await.unwrap();
    assert_eq!(sorted(store.load().await.unwrap()), model(&[grant(&[1])]));
    assert_eq!(store.history(limit(10)).await.unwrap().len(), 1);
    let (_keep, directory) = directory();
    assert!(matches!(
        store.backup(directory).await,
        Err(JournalError::Request(_))
    ));
}
