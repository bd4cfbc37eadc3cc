//! A kubelet that may grant anything twice, crash and lag, but whose records follow its own rules, and
//! containers that really run. What must hold: no chip, or share of one, in two running containers and no running
//! container without its record at any time, and, once every container has ended, every chip is free
//! and offered again after a while.

use std::collections::BTreeSet;
use std::time::Duration;

use ascend_agent::domain::ids::{DieId, PluginDeviceId};
use ascend_agent::domain::kubelet_view::{
    CheckpointEntry, CheckpointVersion, CheckpointView, Holding, PodCensus, PodName,
};
use ascend_agent::domain::time::BootTime;
use ascend_agent::ledger::{Asked, ChipVerdict, Decision};

use super::node::{Fate, Node, Offered, clash, resource};

/// Looks until every chip must be free again, five seconds apart: the proof time, the pause before a
/// second request for a new checkpoint, and room.
const LAST_LOOKS: u32 = 30;

struct Container {
    number: u32,
    chips: Vec<(PluginDeviceId, DieId)>,
}

struct World {
    node: Node,
    running: Vec<Container>,
    /// Kubelet's own memory: entries of ended pods stay until it writes its file.
    entries: Vec<CheckpointEntry>,
    file: CheckpointView,
    /// False from a start without checkpoint until kubelet writes one.
    has_file: bool,
    /// Pods whose devices kubelet forgot with its checkpoint: listed without any.
    forgotten: BTreeSet<u32>,
    /// Pods that a restarted kubelet has not been handed yet; it lists the others only.
    not_handed_over: BTreeSet<u32>,
    last_pod: u32,
}

pub(crate) fn run(steps: &[[u8; 4]], offered: Offered) {
    let mut world = World::new(offered);
    for step in steps {
        world.perform(*step);
        world.node.check();
        world.check_no_holder_is_lost();
    }
    world.end_and_expect_all_free();
}

impl World {
    fn new(offered: Offered) -> Self {
        Self {
            node: Node::new(offered),
            running: Vec::new(),
            entries: Vec::new(),
            file: CheckpointView {
                version: CheckpointVersion {
                    inode: 1,
                    modified_ns: 0,
                    size_bytes: 0,
                },
                read: BootTime(0),
                entries: Vec::new(),
            },
            has_file: true,
            forgotten: BTreeSet::new(),
            not_handed_over: BTreeSet::new(),
            last_pod: 0,
        }
    }

    fn perform(&mut self, [kind, first, second, third]: [u8; 4]) {
        match kind % 8 {
            0..=2 => self.admit(first, second, third),
            3 => self.look(first % 2 == 0, second % 2 == 0, Fate::of(third)),
            4 => self.end_container(first),
            5 => self.pass(Duration::from_secs(u64::from(first % 40))),
            6 if second % 4 == 0 => self.restart_kubelet_without_checkpoint(first),
            6 => self.restart_kubelet(first),
            _ if first % 2 == 0 => self.restart_agent(second),
            _ => self.write_file(),
        }
    }

    /// Kubelet claims the ids of `wanted`, free or not. Older pods are handed over before a new one.
    fn admit(&mut self, wanted: u8, course: u8, fate: u8) {
        self.not_handed_over.clear();
        self.last_pod += 1;
        let (pod, ids) = (self.last_pod, self.node.ids_of(wanted));
        let mut decision = self.node.decide(&ids, &Asked::NotYet);
        if decision == Decision::AskKubelet {
            let census = self.census(Some(pod));
            let asked = if course % 8 == 7 {
                Asked::Silent("no answer".to_owned())
            } else {
                Asked::Told(&census)
            };
            decision = self.node.decide(&ids, &asked);
            if decision == Decision::AskCheckpoint {
                // Kubelet writes it upon the list it is sent.
                self.write_file();
                let asked = Asked::ToldAndWritten(&census, &self.file);
                decision = self.node.decide(&ids, &asked);
            }
        }
        let Decision::Grant(plan) = decision else {
            return;
        };
        let version = self.file_version();
        if self.node.grant(&plan, version, Fate::of(fate)).is_err() {
            return;
        }
        let chips: Vec<_> = plan
            .steps
            .iter()
            .map(|step| (step.id.clone(), step.die))
            .collect();
        match (course / 8) % 8 {
            // Kubelet died before it had our answer.
            0 => self.restart_kubelet(course),
            // Kubelet took the answer, and the pod was rejected for another reason.
            1 => {
                self.entries.push(entry_of(pod, &chips));
                self.write_file_as_it_is();
            }
            // The agent died right after its answer.
            2 => {
                self.start(pod, chips);
                self.restart_agent(fate);
            }
            _ => self.start(pod, chips),
        }
    }

    fn start(&mut self, pod: u32, chips: Vec<(PluginDeviceId, DieId)>) {
        for (id, die) in &chips {
            let clashes = |other: &Container| {
                let mut used = other.chips.iter();
                used.any(|(other, used)| clash((other, *used), (id, *die)))
            };
            let user = self.running.iter().find(|other| clashes(other));
            assert!(
                user.is_none(),
                "{id} of chip {die} runs in pod {} and goes to pod {pod}",
                user.map_or(0, |other| other.number)
            );
        }
        self.entries.push(entry_of(pod, &chips));
        self.write_file_as_it_is();
        self.running.push(Container { number: pod, chips });
    }

    fn end_container(&mut self, which: u8) {
        if !self.running.is_empty() {
            let ended = self.running.remove(usize::from(which) % self.running.len());
            self.not_handed_over.remove(&ended.number);
        }
    }

    fn pass(&mut self, time: Duration) {
        // Pods are handed over within seconds; longer than a proof would not be truthful.
        self.not_handed_over.clear();
        self.node.pass(time);
    }

    /// The agent looks before it registers.
    fn restart_agent(&mut self, which: u8) {
        self.node.restart_agent();
        self.look(which & 1 == 0, which & 2 == 0, Fate::of(which / 4));
    }

    /// With its checkpoint; the pods come one by one. The agent looks before it registers.
    fn restart_kubelet(&mut self, which: u8) {
        self.entries.clone_from(&self.file.entries);
        self.begin_kubelet_life(which);
    }

    /// The agent follows kubelet's file and had seen every container before it vanished.
    fn restart_kubelet_without_checkpoint(&mut self, which: u8) {
        self.not_handed_over.clear();
        self.look(true, false, Fate::Durable);
        self.entries.clear();
        self.file.entries.clear();
        self.has_file = false;
        self.forgotten = self
            .running
            .iter()
            .map(|container| container.number)
            .collect();
        self.begin_kubelet_life(which);
    }

    fn begin_kubelet_life(&mut self, which: u8) {
        self.not_handed_over = self
            .running
            .iter()
            .map(|container| container.number)
            .filter(|number| (u32::from(which) + number).is_multiple_of(2))
            .collect();
        self.node.ledger.kubelet_restarted();
        self.look(which & 16 == 0, which & 32 == 0, Fate::of(which / 32));
    }

    /// Kubelet forgets ended pods and writes its file, as it does upon every list it is sent. While
    /// pods are still handed over it forgets nobody.
    fn write_file(&mut self) {
        if self.not_handed_over.is_empty() {
            let uids: BTreeSet<String> = self
                .running
                .iter()
                .map(|container| uid_of(container.number))
                .collect();
            self.entries.retain(|entry| uids.contains(&entry.pod_uid));
        }
        self.write_file_as_it_is();
    }

    fn write_file_as_it_is(&mut self) {
        self.has_file = true;
        self.file.version.inode += 1;
        self.file.entries.clone_from(&self.entries);
    }

    /// A pod without devices is always there, as on any node; and the one being admitted.
    fn census(&mut self, admitted: Option<u32>) -> PodCensus {
        let listed = || {
            let handed = |container: &&Container| !self.not_handed_over.contains(&container.number);
            self.running.iter().filter(handed)
        };
        let known = listed().filter(|container| !self.forgotten.contains(&container.number));
        let holdings = known.map(|container| Holding {
            pod: pod_of(container.number),
            container: "main".to_owned(),
            resource: resource(),
            ids: container.chips.iter().map(|(id, _)| id.clone()).collect(),
        });
        let holdings = holdings.collect();
        let pods = listed()
            .map(|container| container.number)
            .chain(admitted)
            .chain([0])
            .map(pod_of)
            .collect();
        PodCensus {
            begun: self.node.now(),
            pods,
            holdings,
        }
    }

    fn look(&mut self, list_answers: bool, processes_seen: bool, fate: Fate) {
        let before = self.file_version();
        let census = list_answers.then(|| self.census(None));
        if processes_seen {
            let chips = self.running.iter().flat_map(|it| &it.chips);
            let occupied: BTreeSet<DieId> = chips.map(|(_, die)| *die).collect();
            self.node.read_processes(&occupied);
        }
        let file = self.has_file.then(|| self.file.clone());
        let checkpoint = Some(file.as_ref());
        let findings = self.node.look(census.as_ref(), checkpoint, before, fate);
        if findings.refresh {
            self.write_file();
        }
    }

    fn file_version(&self) -> Option<CheckpointVersion> {
        self.has_file.then_some(self.file.version)
    }

    fn check_no_holder_is_lost(&self) {
        for container in &self.running {
            for (id, die) in &container.chips {
                let mut held = self.node.ledger.holders_of_die(*die);
                assert!(
                    held.any(|held| held.record.plugin_device_id == *id),
                    "pod {} runs on {id} and has no record",
                    container.number
                );
            }
        }
    }

    fn end_and_expect_all_free(&mut self) {
        self.running.clear();
        for _ in 0..LAST_LOOKS {
            self.pass(Duration::from_secs(5));
            self.look(true, true, Fate::Durable);
            self.node.check();
        }
        let held: Vec<_> = self.node.ledger.held().values().collect();
        assert!(held.is_empty(), "held without end: {held:?}");
        let offer = self.node.ledger.offer(|_| ChipVerdict::Healthy);
        let withheld: Vec<_> = offer
            .values()
            .flatten()
            .filter(|device| !device.healthy)
            .collect();
        assert!(withheld.is_empty(), "free and not offered: {withheld:?}");
    }
}

fn entry_of(pod: u32, chips: &[(PluginDeviceId, DieId)]) -> CheckpointEntry {
    CheckpointEntry {
        pod_uid: uid_of(pod),
        container: "main".to_owned(),
        resource: resource(),
        ids: chips.iter().map(|(id, _)| id.clone()).collect(),
        device_nodes: BTreeSet::new(),
        visible_devices: None,
    }
}

fn uid_of(pod: u32) -> String {
    format!("uid-{pod}")
}

fn pod_of(pod: u32) -> PodName {
    PodName {
        namespace: "default".to_owned(),
        name: format!("pod-{pod}"),
    }
}
