//! Kubelet's side of the agent with more devices than any simulated node has: the room that serves
//! kubelet, here with a list of its own instead of a ledger, under the real kubelet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ascend_agent::clock::{RandomIds, SystemClock};
use ascend_agent::domain::ids::{CardId, PhyId, PluginDeviceId, ResourceName};
use ascend_agent::domain::offer::{Injection, Offer, OfferedDevice, Refusal};
use ascend_agent::domain::product::Product;
use ascend_agent::kubelet::{
    KubeletActivity, KubeletConfig, KubeletParts, KubeletStatus, SocketOwner, serve,
};
use ascend_agent::ports::{Allocations, Clock, GenerationCause, Ids};
use ascend_agent::topology::{Candidate, choose};
use rustix::process::{getgid, getuid};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api::deviceplugin::device_plugin_client::DevicePluginClient;
use super::api::deviceplugin::{ContainerPreferredAllocationRequest, PreferredAllocationRequest};
use super::figures::{Figure, Series};
use super::node::{Node, RESOURCE, connect, eventually};
use super::now;
use super::stage::Programs;

const LONG_LIST: u32 = 4096;
const SHARED: &str = "huawei.com/Ascend310P";
const SHARED_CHIPS: u32 = 64;
const LISTS: usize = 10;

const CHOICES: u32 = 1024;
const QUESTIONS: usize = 500;

/// Kubelet's calls other than Allocate are answered within this.
const ANSWERED: Duration = Duration::from_secs(1);

/// A preferred set among as many ids as a node can have.
const PREFERRED: Duration = Duration::from_millis(50);

pub(crate) fn measure(programs: &Programs, runtime: &Runtime) -> Vec<Figure> {
    let mut lists = Series::default();
    for _ in 0..LISTS {
        let mut node = Node::set(programs);
        node.start_kubelet(&[]);
        let began = now();
        let served = Served::start(&node, LONG_LIST, runtime);
        node.allocatable(LONG_LIST);
        lists.add(began.elapsed());
        served.end(runtime);
    }
    let mut node = Node::set(programs);
    node.start_kubelet(&[]);
    let served = Served::start(&node, CHOICES, runtime);
    node.allocatable(CHOICES);
    let preferred = served.questions(runtime);
    served.end(runtime);
    let shares = first_lists_of_shares(programs);
    vec![
        Figure::of("room started to 4,096 devices allocatable", &lists)
            .should("below 1 s", lists.max() < ANSWERED),
        Figure::of(
            "kubelet started to 4,096 shares of 64 chips allocatable, 864 of them held",
            &shares,
        )
        .should("below 1 s", shares.max() < ANSWERED),
        Figure::of("GetPreferredAllocation of 8 among 1,024", &preferred)
            .should("below 50 ms", preferred.max() < PREFERRED),
    ]
}

/// The whole agent with as many ids: kubelet is killed and started below two wide pods.
fn first_lists_of_shares(programs: &Programs) -> Series {
    let mut node = Node::like(
        programs,
        include_str!("../../sim/profiles/310p3-4x1.toml"),
        SHARED_CHIPS,
    );
    node.start_kubelet(&[]);
    let count = (LONG_LIST / SHARED_CHIPS).to_string();
    node.stage
        .start_agent(&["--share-count", &count])
        .expect("the agent");
    node.allocatable_of(SHARED, LONG_LIST);
    let pods = [("wide", 64), ("deep", 800)].map(|(name, ids)| {
        let pod = |running| sharing(name, ids, running);
        let verdict = node.call("admit", json!({ "pod": pod(false) }));
        let admitted = verdict.get("admitted").and_then(Value::as_bool);
        assert_eq!(admitted, Some(true), "{verdict}");
        pod(true)
    });
    let mut series = Series::default();
    for _ in 0..LISTS {
        node.stage.kill_kubelet();
        let began = now();
        node.start_kubelet(&pods);
        node.allocatable_of(SHARED, LONG_LIST);
        series.add(began.elapsed());
    }
    series
}

fn sharing(name: &str, ids: u32, running: bool) -> Value {
    json!({
        "name": name, "namespace": "bench", "uid": format!("uid-of-{name}"), "running": running,
        "containers": [{ "name": "main", "limits": { SHARED: ids.to_string() } }],
    })
}

/// A list that never changes, and the preferred devices of the agent.
#[derive(Clone)]
struct LongList {
    offers: watch::Receiver<Arc<Offer>>,
    chips: Arc<BTreeMap<PluginDeviceId, Candidate>>,
}

impl LongList {
    fn of(length: u32) -> (Self, watch::Sender<Arc<Offer>>) {
        let chip = |number| {
            let candidate = Candidate {
                phy: PhyId(number),
                card: CardId(i32::try_from(number).expect("small")),
                product: Product::Ascend910B,
                numa_nodes: BTreeSet::from([number % 8]),
            };
            (
                PluginDeviceId::whole_chip("Ascend910", PhyId(number)),
                candidate,
            )
        };
        let chips: BTreeMap<_, _> = (0..length).map(chip).collect();
        let devices = chips.iter().map(|(id, chip)| OfferedDevice {
            id: id.clone(),
            healthy: true,
            numa_nodes: chip.numa_nodes.clone(),
            reason: String::new(),
        });
        let offer = Offer {
            version: 1,
            refresh: 0,
            resources: BTreeMap::from([(resource(), devices.collect())]),
        };
        let (sender, offers) = watch::channel(Arc::new(offer));
        let chips = Arc::new(chips);
        (Self { offers, chips }, sender)
    }
}

impl Allocations for LongList {
    fn offers(&self) -> watch::Receiver<Arc<Offer>> {
        self.offers.clone()
    }

    async fn begin_generation(&self, _: GenerationCause) {}

    async fn allocate(
        &self,
        _: ResourceName,
        _: Vec<PluginDeviceId>,
    ) -> Result<Injection, Refusal> {
        Err(Refusal::NotReady {
            cause: "nothing is granted here".to_owned(),
        })
    }

    async fn preferred(
        &self,
        _: ResourceName,
        available: Vec<PluginDeviceId>,
        _: Vec<PluginDeviceId>,
        size: usize,
    ) -> Result<Vec<PluginDeviceId>, Refusal> {
        let known: Vec<Candidate> = available
            .iter()
            .filter_map(|id| self.chips.get(id).cloned())
            .collect();
        let chosen = choose(&known, &BTreeSet::new(), size);
        let id = |phy| PluginDeviceId::whole_chip("Ascend910", phy);
        Ok(chosen.into_iter().map(id).collect())
    }

    fn checkpoint_changed(&self) {}

    fn list_delivered(&self, _: &ResourceName, _: u64) {}
}

/// The running room.
struct Served {
    cancel: CancellationToken,
    tracker: TaskTracker,
    status: watch::Receiver<KubeletStatus>,
    length: u32,
    /// Kept: a list that nobody can change any more ends its streams.
    _offers: watch::Sender<Arc<Offer>>,
}

impl Served {
    fn start(node: &Node, length: u32, runtime: &Runtime) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::open().expect("a clock"));
        let (allocations, offers) = LongList::of(length);
        let (sender, status) = watch::channel(KubeletStatus::default());
        let (_asked, reregister) = mpsc::channel(1);
        let (cancel, tracker) = (CancellationToken::new(), TaskTracker::new());
        let mut config = KubeletConfig::new(
            node.stage.path("dp"),
            node.stage.path("pr.sock"),
            RandomIds.grant().0,
        );
        config.owner = SocketOwner {
            uid: getuid().as_raw(),
            gid: getgid().as_raw(),
        };
        let parts = KubeletParts {
            config,
            allocations,
            activity: KubeletActivity::new(Arc::clone(&clock)),
            clock,
            reregister,
            status: sender,
            cancel: cancel.clone(),
            tracker: tracker.clone(),
        };
        tracker.spawn_on(serve(parts), runtime.handle());
        Self {
            cancel,
            tracker,
            status,
            length,
            _offers: offers,
        }
    }

    fn questions(&self, runtime: &Runtime) -> Series {
        let socket = eventually("a registered socket", || {
            let status = self.status.borrow();
            status.resources.get(&resource())?.socket.clone()
        });
        let mut plugin = DevicePluginClient::new(connect(&socket, runtime));
        let available: Vec<String> = (0..self.length)
            .map(|number| format!("Ascend910-{number}"))
            .collect();
        let mut series = Series::default();
        for _ in 0..QUESTIONS {
            let request = PreferredAllocationRequest {
                container_requests: vec![ContainerPreferredAllocationRequest {
                    available_device_ids: available.clone(),
                    must_include_device_ids: Vec::new(),
                    allocation_size: 8,
                }],
            };
            let began = now();
            let answer = runtime.block_on(plugin.get_preferred_allocation(request));
            series.add(began.elapsed());
            let answers = answer.expect("an answer").into_inner().container_responses;
            let chosen = answers.first().map(|answer| answer.device_ids.len());
            assert_eq!(chosen, Some(8), "eight devices are preferred");
        }
        series
    }

    fn end(self, runtime: &Runtime) {
        self.cancel.cancel();
        self.tracker.close();
        runtime.block_on(self.tracker.wait());
    }
}

fn resource() -> ResourceName {
    ResourceName::new(RESOURCE).expect("a valid name")
}
