//! Allocate as kubelet sees it, beside what it is made of: one durable commit, one call of kubelet's
//! pod-resources, one empty call. Commits alone run between the grants, so that both meet the same
//! disk in the same mood.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use ascend_agent::clock::{RandomIds, SystemClock};
use ascend_agent::domain::allocation::{Allocation, Origin, Owner};
use ascend_agent::domain::history::HistoryEvent;
use ascend_agent::domain::ids::{AllocationId, DieId, PhyId, PluginDeviceId, ResourceName};
use ascend_agent::ports::{Batch, Clock, Ids, Journal};
use ascend_agent::store::{Settings, Store};
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use uuid::Uuid;

use super::api::deviceplugin::device_plugin_client::DevicePluginClient;
use super::api::deviceplugin::{AllocateRequest, ContainerAllocateRequest, Empty};
use super::api::podresources::ListPodResourcesRequest;
use super::api::podresources::pod_resources_lister_client::PodResourcesListerClient;
use super::figures::{Figure, Series, ms};
use super::node::{CHIPS, Node, RESOURCE, chip_ids, clear, connect};
use super::now;
use super::stage::Programs;

/// Agents begun anew, each of which grants every chip once.
const ROUNDS: u32 = 64;

/// Chips granted a second time and more, all by one agent.
const REPEATS: usize = 1000;

/// Kubelet answers 100 pod-resources calls a second and refuses the others.
pub(crate) const PACE: Duration = Duration::from_millis(12);

/// Kubelet and the agent have said what they say at each registration.
const REGISTERED: Duration = Duration::from_millis(300);

/// By then the agent has taken in what its own registration and the first pod changed in kubelet's
/// records. They never show grants made past kubelet, as here, and a chip that they lack is withheld.
pub(crate) const SETTLED: Duration = Duration::from_secs(2);

/// Pods admitted by kubelet, one after the other.
const PODS: u32 = 200;

const RAW_WRITES: usize = 1000;

/// What may come on top of a commit, 99 times of 100.
const BEYOND_COMMIT: Duration = Duration::from_millis(2);

pub(crate) fn measure(programs: &Programs, runtime: &Runtime) -> Vec<Figure> {
    let mut node = Node::set(programs);
    node.start_kubelet(&[]);
    let alone = Alone::open(&node);
    let mut commits = Series::default();
    let mut later_commits = Series::default();
    let mut firsts = Series::default();
    let mut earliest = Series::default();
    let mut empties = Series::default();
    for _ in 0..ROUNDS {
        start_anew(&mut node);
        let mut plugin = node.plugin(runtime);
        sleep(REGISTERED);
        for (phy, id) in (0..).zip(chip_ids()) {
            empties.add(empty_call(&mut plugin, runtime));
            let took = allocate(&mut plugin, &id, runtime);
            firsts.add(took);
            if phy == 0 {
                earliest.add(took);
            }
            commits.add(alone.commit(phy, runtime));
        }
    }
    start_anew(&mut node);
    node.admit("bystander", 0);
    sleep(SETTLED);
    let mut plugin = node.plugin(runtime);
    for id in chip_ids() {
        allocate(&mut plugin, &id, runtime);
    }
    let mut lists = Series::default();
    let mut repeats = Series::default();
    for (turn, id) in chip_ids().iter().cycle().take(REPEATS).enumerate() {
        sleep(PACE);
        if turn % 5 == 0 {
            lists.add(list_pods(&node, runtime));
            sleep(PACE);
        }
        repeats.add(allocate(&mut plugin, id, runtime));
        later_commits.add(alone.commit(u32::try_from(turn).expect("few") % CHIPS, runtime));
    }
    let admissions = admissions(programs);
    vec![
        Figure::of("Allocate of one free chip", &firsts),
        Figure::of("of these, the first one of each agent", &earliest),
        Figure::of("one durable commit alone, after each of them", &commits),
        beyond(
            "Allocate of one free chip beyond one commit, p99",
            &firsts,
            &[&commits],
        ),
        Figure::of(
            "Allocate of a chip granted before, kubelet asked first",
            &repeats,
        ),
        Figure::of(
            "one durable commit alone, after each of them",
            &later_commits,
        ),
        Figure::of(
            "one pod-resources List of kubelet alone, dialled anew",
            &lists,
        ),
        beyond(
            "that Allocate beyond one commit, p99",
            &repeats,
            &[&later_commits],
        ),
        beyond(
            "that Allocate beyond one commit and one List, p99",
            &repeats,
            &[&later_commits, &lists],
        ),
        Figure::of("an empty call on the same socket", &empties),
        Figure::of("write and fdatasync of 4 KiB", &raw_writes(&node)),
        Figure::of(
            "admission of a pod with one chip by kubelet, as a whole",
            &admissions,
        ),
    ]
}

/// An agent that holds nothing.
fn start_anew(node: &mut Node) {
    node.stage.kill_agent();
    node.allocatable(0);
    clear(node.stage.path("state"));
    node.stage.start_agent(&[]).expect("the agent");
    node.allocatable(CHIPS);
}

fn beyond(what: &str, series: &Series, parts: &[&Series]) -> Figure {
    let parts: Duration = parts.iter().map(|part| part.p99()).sum();
    let rest = series.p99().saturating_sub(parts);
    Figure::time(what, rest).should(
        &format!("below {} ms", ms(BEYOND_COMMIT)),
        rest < BEYOND_COMMIT,
    )
}

pub(crate) fn allocate(
    plugin: &mut DevicePluginClient<Channel>,
    id: &str,
    runtime: &Runtime,
) -> Duration {
    let request = AllocateRequest {
        container_requests: vec![ContainerAllocateRequest {
            device_ids: vec![id.to_owned()],
        }],
    };
    let began = now();
    let answer = runtime.block_on(plugin.allocate(request));
    let took = began.elapsed();
    answer.expect("a grant");
    took
}

fn empty_call(plugin: &mut DevicePluginClient<Channel>, runtime: &Runtime) -> Duration {
    let began = now();
    let answer = runtime.block_on(plugin.get_device_plugin_options(Empty {}));
    let took = began.elapsed();
    answer.expect("options");
    took
}

/// As the agent does it: on a connection of its own.
fn list_pods(node: &Node, runtime: &Runtime) -> Duration {
    let began = now();
    let channel = connect(&node.stage.path("pr.sock"), runtime);
    let mut lister = PodResourcesListerClient::new(channel);
    let answer = runtime.block_on(lister.list(ListPodResourcesRequest {}));
    let took = began.elapsed();
    answer.expect("kubelet's list of pods");
    took
}

/// A store beside the agent's, which gets what the agent writes for one chip.
struct Alone {
    store: Store,
    clock: Arc<SystemClock>,
}

impl Alone {
    fn open(node: &Node) -> Self {
        let clock = Arc::new(SystemClock::open().expect("a clock"));
        let shared: Arc<dyn Clock> = Arc::<SystemClock>::clone(&clock);
        let settings = Settings::new(node.stage.path("alone"));
        let store = Store::open(settings, shared).expect("a store").store;
        Self { store, clock }
    }

    fn commit(&self, phy: u32, runtime: &Runtime) -> Duration {
        let granted = self.clock.now();
        let allocation = Allocation {
            id: AllocationId(Uuid::from_u128(u128::from(phy))),
            grant: RandomIds.grant(),
            resource: ResourceName::new(RESOURCE).expect("a valid name"),
            plugin_device_id: PluginDeviceId::whole_chip("Ascend910", PhyId(phy)),
            die: DieId([phy, 1, 2, 3, 4]),
            phy: PhyId(phy),
            origin: Origin::Granted,
            granted,
            confirmed: false,
            owner: Owner::default(),
        };
        let event = HistoryEvent::Granted {
            allocation: allocation.clone(),
        };
        let batch = Batch {
            put: vec![allocation],
            history: vec![(granted, event)],
            ..Batch::default()
        };
        let began = now();
        let committed = runtime.block_on(self.store.commit(batch));
        let took = began.elapsed();
        committed.expect("a commit");
        took
    }
}

fn raw_writes(node: &Node) -> Series {
    let file = File::create(node.stage.path("raw")).expect("a file");
    let page = [7; 4096];
    file.write_all_at(&page, 0).expect("a first page");
    file.sync_all().expect("a file on the disk");
    let mut series = Series::default();
    for _ in 0..RAW_WRITES {
        let began = now();
        file.write_all_at(&page, 0).expect("a page");
        file.sync_data().expect("a page on the disk");
        series.add(began.elapsed());
    }
    series
}

/// The whole of kubelet's admission: its topology hints, our preference and grant, its checkpoint.
fn admissions(programs: &Programs) -> Series {
    let node = Node::registered(programs, &[]);
    node.admit("bystander", 0);
    let mut series = Series::default();
    for number in 0..PODS {
        let name = format!("pod-{number}");
        let verdict = node.admit(&name, 1);
        let took = verdict
            .get("admission_us")
            .and_then(serde_json::Value::as_u64);
        series.add(Duration::from_micros(took.expect("a time")));
        node.remove(&name);
        sleep(PACE);
    }
    series
}
