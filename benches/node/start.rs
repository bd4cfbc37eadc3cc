//! From the start of the process to a registered resource, with a long history in the store.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ascend_agent::clock::{RandomIds, SystemClock};
use ascend_agent::domain::history::HistoryEvent;
use ascend_agent::domain::ids::{DieId, PhyId, PluginDeviceId};
use ascend_agent::ports::{Batch, Clock, Ids, Journal};
use ascend_agent::store::{Settings, Store};
use chrono::{DateTime, Utc};
use tokio::runtime::Runtime;

use super::figures::{Figure, Series};
use super::footprint::of_memory;
use super::machine::{Memory, child_of, memory};
use super::node::{CHIPS, Node};
use super::stage::Programs;

const HISTORY_RECORDS: u32 = 100_000;
const PER_COMMIT: u32 = 1000;

/// Starts measured after each kind of end.
const STARTS: u32 = 10;

const REGISTERED: Duration = Duration::from_millis(500);

pub(crate) fn measure(programs: &Programs, runtime: &Runtime) -> Vec<Figure> {
    let mut node = Node::set(programs);
    fill(&node, runtime);
    node.start_kubelet(&[]);
    let orderly = Starts::after(&mut node, |node| {
        node.stage.stop_agent().expect("an orderly end");
    });
    let killed = Starts::after(&mut node, |node| node.stage.kill_agent());
    let target =
        |figure: Figure, series: &Series| figure.should("below 500 ms", series.max() < REGISTERED);
    vec![
        target(
            Figure::of(
                "driver answered to allocatable, orderly end before",
                &orderly.answered,
            ),
            &orderly.answered,
        ),
        target(
            Figure::of(
                "driver answered to allocatable, SIGKILL before",
                &killed.answered,
            ),
            &killed.answered,
        ),
        Figure::of(
            "process start to allocatable, orderly end before",
            &orderly.whole,
        ),
        Figure::of(
            "process start to allocatable, SIGKILL before",
            &killed.whole,
        ),
        of_memory("memory after an orderly start", orderly.memory),
        of_memory(
            "memory after a start that repaired the store",
            killed.memory,
        ),
    ]
}

/// Writes the history into the place where the agent will find it.
fn fill(node: &Node, runtime: &Runtime) {
    let clock = Arc::new(SystemClock::open().expect("a clock"));
    let shared: Arc<dyn Clock> = Arc::<SystemClock>::clone(&clock);
    let settings = Settings::new(node.stage.path("state"));
    let store = Store::open(settings, shared).expect("a store").store;
    for first in (0..HISTORY_RECORDS).step_by(PER_COMMIT as usize) {
        let event = |number: u32| {
            let phy = PhyId(number % CHIPS);
            let event = HistoryEvent::GrantRepeated {
                allocation: RandomIds.allocation(),
                plugin_device_id: PluginDeviceId::whole_chip("Ascend910", phy),
                die: DieId([phy.0, 1, 2, 3, 4]),
            };
            (clock.now(), event)
        };
        let batch = Batch {
            history: (first..first + PER_COMMIT).map(event).collect(),
            ..Batch::default()
        };
        runtime.block_on(store.commit(batch)).expect("a commit");
    }
    runtime.block_on(store.close());
}

#[derive(Default)]
struct Starts {
    whole: Series,
    answered: Series,
    memory: [Memory; 2],
}

impl Starts {
    /// Starts an agent so often, each time after the former one was ended by `end`.
    fn after(node: &mut Node, end: impl Fn(&mut Node)) -> Self {
        let mut starts = Self::default();
        node.stage.start_agent(&[]).expect("the agent");
        node.allocatable(CHIPS);
        for _ in 0..STARTS {
            end(node);
            node.allocatable(0);
            let logged = node.log_length();
            let began = wall();
            let agent = node.stage.start_agent(&[]).expect("the agent");
            node.allocatable(CHIPS);
            let ended = wall();
            let answered = logged_at(node, logged, "driver host started");
            starts.whole.add(between(began, ended));
            starts.answered.add(between(answered, ended));
            let host = child_of(agent).expect("a driver host");
            starts.memory = [memory(agent), memory(host)];
        }
        node.stage.kill_agent();
        node.allocatable(0);
        starts
    }
}

/// When the agent logged `words`, in the part of its log after `skip` bytes.
fn logged_at(node: &Node, skip: usize, words: &str) -> DateTime<Utc> {
    let log = node.stage.log_text("agent.log");
    let line = log
        .get(skip..)
        .and_then(|log| log.lines().find(|line| line.contains(words)))
        .expect("a line of the log");
    let stamp = line.split_whitespace().next().unwrap_or_default();
    DateTime::parse_from_rfc3339(stamp)
        .expect("a time stamp")
        .to_utc()
}

fn between(earlier: DateTime<Utc>, later: DateTime<Utc>) -> Duration {
    (later - earlier).to_std().expect("the clock went forward")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the log's times are of the wall clock"
)]
fn wall() -> DateTime<Utc> {
    SystemTime::now().into()
}
