//! Two agents and one store: waiting, taking over, and kill -9 in the middle of a commit.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use ascend_agent::ports::Journal;
use ascend_agent::store::{OpenError, Settings, open_waiting};

use crate::fixtures::{allocation, clock, directory, grant, model, open, sorted};

/// Another process that opens the store and commits for ever, printing what was acknowledged.
struct Rival {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Rival {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "processes::rival", "--nocapture"])
            .env("PLACE", directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut rival = Self { child, lines };
        rival
            .acknowledged()
            .expect("the rival never opened the store");
        rival
    }

    /// The next acknowledged number; `None` once its output ended.
    fn acknowledged(&mut self) -> Option<u32> {
        self.lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
    }

    fn kill(mut self) -> Option<u32> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.acknowledged()).last()
    }
}

#[tokio::test]
#[ignore = "the other process of the tests in this file"]
async fn rival() {
    let directory = PathBuf::from(std::env::var_os("PLACE").expect("run by its parent test"));
    let store = open(&directory).unwrap().store;
    let first = u32::try_from(store.load().await.unwrap().allocations.len()).unwrap();
    for number in first.. {
        store.commit(grant(&[number])).await.unwrap();
        println!("acknowledged {number}");
    }
}

#[tokio::test]
async fn a_second_agent_waits_says_so_once_and_takes_over_when_the_first_is_killed() {
    let (_keep, directory) = directory();
    let rival = Rival::start(&directory);
    let pid = rival.child.id();
    assert!(matches!(open(&directory), Err(OpenError::InUse { .. })));
    let told = Mutex::new(Vec::new());
    let on_wait = |holder: &str| told.lock().unwrap().push(holder.to_owned());
    let waiting = open_waiting(
        Settings::new(directory.clone()),
        clock(),
        on_wait,
        std::future::pending(),
    );
    let killing = async {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while told.lock().unwrap().is_empty() {
            assert!(
                tokio::time::Instant::now() < deadline,
                "the second never said that it waits"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rival.kill()
    };
    let (opened, _) = tokio::join!(waiting, killing);
    let opened = opened.unwrap();
    assert_eq!(opened.rebuilt, None);
    assert_eq!(*told.lock().unwrap(), [format!("pid {pid}")]);
    opened.store.commit(grant(&[9_999])).await.unwrap();
}

#[tokio::test]
async fn a_disk_that_hangs_does_not_hold_the_end() {
    let (_keep, directory) = directory();
    drop(open(&directory).unwrap());
    let schema = directory.join("schema");
    std::fs::remove_file(&schema).unwrap();
    let made = Command::new("mkfifo").arg(&schema).status().unwrap();
    assert!(made.success());
    let settings = Settings::new(directory.clone());
    let opening = open_waiting(settings, clock(), |_| {}, std::future::ready(()));
    let ended = tokio::time::timeout(Duration::from_secs(30), opening).await;
    // Opened for writing, it lets the reader go on.
    drop(
        std::fs::OpenOptions::new()
            .write(true)
            .open(&schema)
            .unwrap(),
    );
    assert!(matches!(ended, Ok(Err(OpenError::Cancelled { .. }))));
}

#[tokio::test]
async fn waiting_can_be_cancelled() {
    let (_keep, directory) = directory();
    let _first = open(&directory).unwrap();
    let settings = Settings::new(directory.clone());
    let cancelled = open_waiting(settings, clock(), |_| {}, std::future::ready(())).await;
    assert!(matches!(cancelled, Err(OpenError::Cancelled { .. })));
}

#[tokio::test]
async fn a_store_let_go_in_order_is_taken_over() {
    let (_keep, directory) = directory();
    let first = open(&directory).unwrap().store;
    first.commit(grant(&[1])).await.unwrap();
    let settings = Settings::new(directory.clone());
    let waiting = open_waiting(settings, clock(), |_| {}, std::future::pending());
    let (second, ()) = tokio::join!(waiting, first.close());
    assert_eq!(sorted(second.unwrap().state), model(&[grant(&[1])]));
}

#[tokio::test]
async fn kill_9_between_commits_loses_nothing_acknowledged() {
    let (_keep, directory) = directory();
    for round in 0..12 {
        let mut rival = Rival::start(&directory);
        let mut last = None;
        for _ in 0..round * 3 {
            last = rival.acknowledged().or(last);
        }
        last = rival.kill().or(last);
        let opened = open(&directory).unwrap();
        assert_eq!(opened.rebuilt, None);
        let held = u32::try_from(opened.state.allocations.len()).unwrap();
        // The last one may be durable without having been acknowledged.
        assert!(
            last.is_none_or(|last| held == last + 1 || held == last + 2),
            "{held} of {last:?}"
        );
        let mut expected: Vec<_> = (0..held).map(allocation).collect();
        expected.sort_by_key(|held| held.id);
        assert_eq!(sorted(opened.state).allocations, expected);
        opened.store.close().await;
    }
}
