//! Memory and idle processor time of the agent and its driver host together.

use std::thread::sleep;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::allocate::{PACE, SETTLED, allocate};
use super::figures::Figure;
use super::machine::{Memory, child_of, cpu, memory};
use super::node::{CHIPS, Node, chip_ids};
use super::stage::Programs;
use super::{now, progress};

const GRANTS: usize = 2000;

const IDLE: Duration = Duration::from_secs(60);

const MEMORY_KIB: u64 = 40 * 1024;

/// Of one core, in thousandths of a percent.
const CPU: u64 = 500;

pub(crate) fn measure(programs: &Programs, runtime: &Runtime) -> Vec<Figure> {
    let mut node = Node::set(programs);
    node.start_kubelet(&[]);
    let agent = node.stage.start_agent(&[]).expect("the agent");
    node.allocatable(CHIPS);
    let host = child_of(agent).expect("a driver host");
    let fresh = [memory(agent), memory(host)];
    node.admit("bystander", 0);
    sleep(SETTLED);
    let mut plugin = node.plugin(runtime);
    for id in chip_ids().iter().cycle().take(GRANTS) {
        sleep(PACE);
        allocate(&mut plugin, id, runtime);
    }
    progress("the node is left alone for a minute, twice");
    let after_grants = Watch::begin(agent, host).end_after(IDLE);
    let used = [memory(agent), memory(host)];
    for number in 0..CHIPS {
        node.admit(&format!("pod-{number}"), 1);
        sleep(PACE);
    }
    // The grants are confirmed by then.
    sleep(Duration::from_secs(15));
    let held = Watch::begin(agent, host).end_after(IDLE);
    let resident = |both: [Memory; 2]| both.map(|memory| memory.resident).iter().sum::<u64>();
    vec![
        of_memory("memory after the start", fresh),
        of_memory("memory after 2,000 grants and a minute", used).should(
            "resident below 40 MiB together",
            resident(used) < MEMORY_KIB,
        ),
        of_cpu("processor, 60 s with every chip held by a pod", held)
            .should("below 0.5 % of a core together", held.together() < CPU),
        of_cpu(
            "processor, 60 s after 2,000 grants unknown to kubelet",
            after_grants,
        ),
    ]
}

pub(crate) fn of_memory(what: &str, [agent, host]: [Memory; 2]) -> Figure {
    let kib = |read: fn(&Memory) -> u64| {
        let (agent, host) = (read(&agent), read(&host));
        format!("{} ({} + {})", mib(agent + host), mib(agent), mib(host))
    };
    Figure::text(
        what,
        format!(
            "resident {}, proportional {}, private {} MiB (agent + driver host)",
            kib(|memory| memory.resident),
            kib(|memory| memory.proportional),
            kib(|memory| memory.private)
        ),
    )
}

fn mib(kib: u64) -> String {
    format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024)
}

fn of_cpu(what: &str, used: Used) -> Figure {
    let percent =
        |thousandths: u64| format!("{}.{:02}", thousandths / 1000, thousandths % 1000 / 10);
    Figure::text(
        what,
        format!(
            "{} % of a core (agent {}, driver host {})",
            percent(used.together()),
            percent(used.agent),
            percent(used.host)
        ),
    )
}

/// Processor time of both processes from one moment on.
struct Watch {
    agent: u32,
    host: u32,
    before: [Duration; 2],
}

/// Shares of one core in thousandths of a percent.
#[derive(Clone, Copy)]
struct Used {
    agent: u64,
    host: u64,
}

impl Used {
    fn together(self) -> u64 {
        self.agent + self.host
    }
}

impl Watch {
    fn begin(agent: u32, host: u32) -> Self {
        let before = [cpu(agent), cpu(host)];
        Self {
            agent,
            host,
            before,
        }
    }

    fn end_after(self, time: Duration) -> Used {
        let began = now();
        sleep(time);
        let passed = began.elapsed();
        let [agent, host] = self.before;
        let share = |used: Duration| {
            let share = used.as_micros() * 100_000 / passed.as_micros();
            u64::try_from(share).expect("no more than all cores")
        };
        Used {
            agent: share(cpu(self.agent).saturating_sub(agent)),
            host: share(cpu(self.host).saturating_sub(host)),
        }
    }
}
