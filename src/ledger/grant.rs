//! Deciding on one container request, and applying the decision once it is durable.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::allocation::{Allocation, Origin, Owner, ReleaseCause, excludes};
use crate::domain::history::HistoryEvent;
use crate::domain::ids::{
    AllocationId, DieId, GrantId, PhyId, PluginDeviceId, ResourceName, ShareSlot,
};
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView, PodCensus};
use crate::domain::offer::{InvalidRequest, Refusal};
use crate::domain::time::{BootTime, Stamp};

use super::book::{ChipVerdict, Held, Ledger, Sighting};

/// Chips one container can be given, the vendor's limit.
const CHIPS_MAX: usize = 100;

/// What to do with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Make the plan durable, then apply it and answer.
    Grant(GrantPlan),
    /// An id's last holder is not proven gone: ask pod-resources, then decide again.
    AskKubelet,
    /// Pod-resources cannot tell, because it lists no ordinary init containers: have kubelet write its
    /// checkpoint anew, read it, then decide again.
    AskCheckpoint,
    /// Answer with the refusal.
    Refuse(Refusal),
}

/// What pod-resources said after the request arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// It was not asked yet.
    NotYet,
    /// It answered.
    Told(&'a PodCensus),
    /// It answered, and this checkpoint was written after the request arrived.
    ToldAndWritten(&'a PodCensus, &'a CheckpointView),
    /// It is there and did not answer, with the cause.
    Silent(String),
    /// The node never had it, so that kubelet's claim stands alone.
    NoSource,
}

/// What a granted request changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantPlan {
    /// One step per id, in the order of the request.
    pub steps: Vec<GrantStep>,
}

/// One chip of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantStep {
    /// Kubelet's id.
    pub id: PluginDeviceId,
    /// The chip.
    pub die: DieId,
    /// Its number.
    pub phy: PhyId,
    /// Record that ends because its id was granted again.
    pub supersedes: Option<AllocationId>,
    /// Record that is used again because its grant was never started.
    pub repeats: Option<AllocationId>,
}

impl Ledger {
    /// Decides on one container request.
    #[must_use]
    pub fn decide(
        &self,
        resource: &ResourceName,
        ids: &[PluginDeviceId],
        verdict: impl Fn(DieId) -> ChipVerdict,
        asked: &Asked<'_>,
    ) -> Decision {
        if ids.is_empty() {
            return Decision::Refuse(Refusal::Invalid(InvalidRequest::NoDevices));
        }
        let mut seen = BTreeSet::new();
        let mut used: BTreeMap<DieId, Vec<Option<ShareSlot>>> = BTreeMap::new();
        let mut steps = Vec::with_capacity(ids.len());
        let mut ask = None;
        for id in ids {
            if !seen.insert(id) {
                let duplicate = InvalidRequest::Duplicate { id: id.clone() };
                return Decision::Refuse(Refusal::Invalid(duplicate));
            }
            let unknown = || Refusal::UnknownDevice {
                id: id.as_str().to_owned(),
            };
            let unhealthy = |reason| Refusal::Unhealthy {
                id: id.clone(),
                reason,
            };
            let Some(place) = self.place(resource, id) else {
                return Decision::Refuse(unknown());
            };
            if let Some(reason) = self.fault(resource, id, place, &verdict) {
                return Decision::Refuse(unhealthy(reason));
            }
            let Some(entry) = place.die.and_then(|die| self.chips.get(&die)) else {
                return Decision::Refuse(unknown());
            };
            let slots = used.entry(entry.chip.die).or_default();
            if slots.iter().any(|slot| excludes(*slot, place.share)) {
                let reason = "another id of this request takes its chip".to_owned();
                return Decision::Refuse(unhealthy(reason));
            }
            slots.push(place.share);
            let mut step = GrantStep {
                id: id.clone(),
                die: entry.chip.die,
                phy: entry.chip.phy,
                supersedes: None,
                repeats: None,
            };
            if let Some(held) = self.holder(resource, id) {
                match self.contested(held, resource, asked) {
                    Contest::Ask(question) => ask = Some(question),
                    Contest::Lost(refusal) => return Decision::Refuse(refusal),
                    Contest::Won if held.record.confirmed => {
                        step.supersedes = Some(held.record.id);
                    }
                    Contest::Won => step.repeats = Some(held.record.id),
                }
            }
            steps.push(step);
        }
        if used.len() > CHIPS_MAX {
            let too_many = InvalidRequest::TooManyChips { count: used.len() };
            return Decision::Refuse(Refusal::Invalid(too_many));
        }
        match ask {
            Some(Question::PodResources) => Decision::AskKubelet,
            Some(Question::Checkpoint) => Decision::AskCheckpoint,
            None => Decision::Grant(GrantPlan { steps }),
        }
    }

    /// Applies a plan whose records are durable now.
    pub fn apply_grant(
        &mut self,
        plan: &GrantPlan,
        records: Vec<Allocation>,
        answered: BootTime,
        checkpoint_then: Option<CheckpointVersion>,
    ) {
        for step in &plan.steps {
            if let Some(old) = step.supersedes {
                self.held.remove(old);
            }
        }
        for record in records {
            let mut held = Held::new(record, answered, checkpoint_then);
            held.admission_over = false;
            self.held.insert(held);
        }
    }

    /// A record by key.
    #[must_use]
    pub fn record(&self, id: AllocationId) -> Option<&Allocation> {
        self.held.get(id).map(|held| &held.record)
    }
}

enum Contest {
    Ask(Question),
    Won,
    Lost(Refusal),
}

enum Question {
    PodResources,
    Checkpoint,
}

impl Ledger {
    /// Whether a held id may be granted again, given what pod-resources says (rule L-1).
    fn contested(&self, held: &Held, resource: &ResourceName, asked: &Asked<'_>) -> Contest {
        let id = held.record.plugin_device_id.clone();
        let unproven = |cause: String| {
            Contest::Lost(Refusal::HolderUnproven {
                id: id.clone(),
                holder: held.record.owner.to_string(),
                cause,
            })
        };
        let (census, written) = match asked {
            Asked::NotYet => return Contest::Ask(Question::PodResources),
            Asked::NoSource => return Contest::Won,
            Asked::Silent(cause) => return unproven(cause.clone()),
            Asked::Told(census) => (census, None),
            Asked::ToldAndWritten(census, written) => (census, Some(written)),
        };
        // The pod being admitted is itself on the list, so a list without any pod is one that kubelet
        // gave before its sources were ready.
        if census.pods.is_empty() {
            return unproven("it lists no pod at all".to_owned());
        }
        let lists = census
            .holdings
            .iter()
            .find(|holding| holding.resource == *resource && holding.ids.contains(&id));
        match lists {
            Some(holding) => Contest::Lost(Refusal::Held {
                holder: format!(
                    "{}/{} container {}",
                    holding.pod.namespace, holding.pod.name, holding.container
                ),
                id,
            }),
            // This kubelet never showed the grant and lists the holder's pod: it lost its own records.
            None if held.sighting != Sighting::Shown && owner_listed(held, census) => {
                unproven("it lists the pod without its devices".to_owned())
            }
            // Only a file of maybe a former kubelet shows the grant, or only the file ever did: one
            // written now tells.
            None if !held.on_file_only() && !held.may_be_init_container() => Contest::Won,
            None => match written {
                None => Contest::Ask(Question::Checkpoint),
                Some(view) => match view.holder(resource, &id) {
                    Some(entry) => Contest::Lost(Refusal::Held {
                        holder: format!("pod uid {} container {}", entry.pod_uid, entry.container),
                        id,
                    }),
                    None if held.on_file_only()
                        && !self.oldest_shown(view).is_some_and(|oldest| {
                            oldest.is_no_later_than(&held.record.granted)
                        }) =>
                    {
                        unproven("kubelet lost its records".to_owned())
                    }
                    None => Contest::Won,
                },
            },
        }
    }
}

fn owner_listed(held: &Held, census: &PodCensus) -> bool {
    let owner = &held.record.owner;
    census.pods.iter().any(|pod| {
        Some(&pod.namespace) == owner.namespace.as_ref() && Some(&pod.name) == owner.pod.as_ref()
    })
}

impl GrantPlan {
    /// The records to store: new ones, and repeated ones with a fresh time so that only later views
    /// count as evidence about them.
    #[must_use]
    pub fn records(
        &self,
        ledger: &Ledger,
        resource: &ResourceName,
        grant: GrantId,
        mut new_id: impl FnMut() -> AllocationId,
        at: Stamp,
    ) -> Vec<Allocation> {
        self.steps
            .iter()
            .map(|step| {
                let repeated = step.repeats.and_then(|old| ledger.record(old));
                Allocation {
                    id: repeated.map_or_else(&mut new_id, |record| record.id),
                    grant,
                    resource: resource.clone(),
                    plugin_device_id: step.id.clone(),
                    die: step.die,
                    phy: step.phy,
                    origin: Origin::Granted,
                    granted: at,
                    confirmed: false,
                    owner: Owner::default(),
                }
            })
            .collect()
    }

    /// The history of the plan, and the records it ends.
    #[must_use]
    pub fn history(
        &self,
        ledger: &Ledger,
        records: &[Allocation],
    ) -> (Vec<HistoryEvent>, Vec<AllocationId>) {
        let mut events = Vec::new();
        let mut ended = Vec::new();
        for step in &self.steps {
            if let Some(old) = step.supersedes.and_then(|id| ledger.record(id)) {
                ended.push(old.id);
                events.push(HistoryEvent::Released {
                    allocation: old.clone(),
                    cause: ReleaseCause::GrantedAgain,
                });
            }
        }
        for (step, record) in self.steps.iter().zip(records) {
            events.push(if step.repeats.is_some() {
                HistoryEvent::GrantRepeated {
                    allocation: record.id,
                    plugin_device_id: record.plugin_device_id.clone(),
                    die: record.die,
                }
            } else {
                HistoryEvent::Granted {
                    allocation: record.clone(),
                }
            });
        }
        (events, ended)
    }
}
