//! Answering kubelet's requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::domain::history::HistoryEvent;
use crate::domain::ids::{LogicId, PhyId, PluginDeviceId, ResourceName};
use crate::domain::offer::{Injection, Refusal};
use crate::domain::time::BootTime;
use crate::injection::{Assigned, InjectionRequest, inject};
use crate::ledger::{Asked, Decision, GrantPlan};
use crate::offering::{FreeShare, spread};
use crate::ports::{Batch, CensusError, Clock, Ids, Journal, KubeletRecords};
use crate::topology::{Candidate, choose};

use super::super::command::Evidence;
use super::super::host_paths::look;
use super::{AllocateReply, Owner};

/// Ids kept of a refused request.
const REFUSED_IDS_MAX: usize = 64;

/// The same refusal is written to the history once in this time: a controller recreates a refused
/// pod at once, and would fill the history.
const REFUSAL_PAUSE: Duration = Duration::from_secs(10);

/// Different refusals remembered for that; beyond it the history simply gets a record more.
const REFUSALS_REMEMBERED: usize = 64;

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    pub(super) async fn allocate(
        &mut self,
        resource: &ResourceName,
        ids: &[PluginDeviceId],
        evidence: &Evidence,
    ) -> AllocateReply {
        let asked = match (&evidence.census, &evidence.written) {
            (None, _) => Asked::NotYet,
            (Some(Err(CensusError::NeverSeen { .. })), _) => Asked::NoSource,
            (Some(Err(error)), _) => Asked::Silent(error.to_string()),
            (Some(Ok(census)), None) => Asked::Told(census),
            (Some(Ok(census)), Some(Ok(written))) => Asked::ToldAndWritten(census, written),
            (Some(Ok(_)), Some(Err(cause))) => Asked::Silent(cause.clone()),
        };
        match self
            .ledger
            .decide(resource, ids, |die| self.verdict(die), &asked)
        {
            Decision::AskKubelet => AllocateReply::AskKubelet,
            Decision::AskCheckpoint => {
                self.refresh += 1;
                AllocateReply::AskCheckpoint
            }
            Decision::Refuse(refusal) => {
                AllocateReply::Done(Err(self.refuse(resource, ids, refusal).await))
            }
            Decision::Grant(plan) => {
                let granted = self.grant(resource, &plan).await;
                AllocateReply::Done(match granted {
                    Ok(injection) => Ok(injection),
                    Err(refusal) => Err(self.refuse(resource, ids, refusal).await),
                })
            }
        }
    }

    async fn grant(
        &mut self,
        resource: &ResourceName,
        plan: &GrantPlan,
    ) -> Result<Injection, Refusal> {
        let injection = self.injection(plan)?;
        let at = self.clock.now();
        let grant = self.ids.grant();
        let records = plan.records(&self.ledger, resource, grant, || self.ids.allocation(), at);
        let (events, remove) = plan.history(&self.ledger, &records);
        let batch = Batch {
            put: records.clone(),
            remove,
            history: events.into_iter().map(|event| (at, event)).collect(),
            ..Batch::default()
        };
        self.commit(batch)
            .await
            .map_err(|cause| Refusal::StoreUnavailable { cause })?;
        let checkpoint = self.checkpoint_version();
        let answered = self.now();
        for record in &records {
            tracing::info!(
                allocation_id = %record.id,
                plugin_device_id = %record.plugin_device_id,
                die_id = %record.die,
                "chip granted"
            );
        }
        self.ledger.apply_grant(plan, records, answered, checkpoint);
        Ok(injection)
    }

    fn injection(&self, plan: &GrantPlan) -> Result<Injection, Refusal> {
        if let Some(trouble) = self.cdi_trouble() {
            return Err(Refusal::Injection(trouble.to_owned()));
        }
        let mut chips: Vec<(PhyId, LogicId)> = Vec::with_capacity(plan.steps.len());
        let mut kind = None;
        for step in &plan.steps {
            let Some(entry) = self.ledger.chips().get(&step.die) else {
                return Err(Refusal::UnknownDevice {
                    id: step.id.to_string(),
                });
            };
            let chip = &entry.chip;
            kind.get_or_insert((chip.product, chip.super_pod_type));
            chips.push((chip.phy, chip.logic));
        }
        let Some((product, super_pod_type)) = kind else {
            return Err(Refusal::NotReady {
                cause: "no chip is known yet".to_owned(),
            });
        };
        let request = InjectionRequest {
            product,
            super_pod_type,
            assigned: Assigned::Chips(&chips),
            node: &self.settings.delivery,
            hccl_dir: None,
        };
        inject(&request, &look(&request.wanted()))
            .map_err(|error| Refusal::Injection(error.to_string()))
    }

    async fn refuse(
        &mut self,
        resource: &ResourceName,
        ids: &[PluginDeviceId],
        refusal: Refusal,
    ) -> Refusal {
        let reason = refusal.to_string();
        tracing::warn!(%resource, ids = ids.len(), reason, "request refused");
        if self.refused.is_new(&reason, self.now()) {
            let ids = ids
                .iter()
                .take(REFUSED_IDS_MAX)
                .map(ToString::to_string)
                .collect();
            self.note(HistoryEvent::Refused {
                resource: resource.clone(),
                ids,
                reason,
            })
            .await;
        }
        refusal
    }

    pub(super) fn preferred(
        &self,
        resource: &ResourceName,
        available: &[PluginDeviceId],
        must_include: &[PluginDeviceId],
        size: usize,
    ) -> Vec<PluginDeviceId> {
        let mut known = Vec::with_capacity(available.len());
        let mut by_phy: BTreeMap<PhyId, &PluginDeviceId> = BTreeMap::new();
        let mut shares = Vec::new();
        for id in available {
            let Some(place) = self.ledger.place(resource, id) else {
                // An id kubelet still has from an older list takes part in no preference.
                continue;
            };
            let chip = place.die.and_then(|die| self.ledger.chips().get(&die));
            let Some(entry) = chip else { continue };
            let chip = &entry.chip;
            if let Some(slot) = place.share {
                shares.push(FreeShare {
                    phy: chip.phy,
                    slot,
                    id: id.clone(),
                });
                continue;
            }
            by_phy.insert(chip.phy, id);
            known.push(Candidate {
                phy: chip.phy,
                card: chip.card,
                product: chip.product,
                numa_nodes: chip.numa_nodes.clone(),
            });
        }
        if !shares.is_empty() {
            return spread(&shares, must_include, size);
        }
        let phys: BTreeMap<&PluginDeviceId, PhyId> =
            by_phy.iter().map(|(phy, id)| (*id, *phy)).collect();
        let must: Option<BTreeSet<PhyId>> = must_include
            .iter()
            .map(|id| phys.get(id).copied())
            .collect();
        let Some(must) = must else { return Vec::new() };
        let chosen = choose(&known, &must, size);
        chosen
            .iter()
            .filter_map(|phy| by_phy.get(phy).map(|id| (*id).clone()))
            .collect()
    }
}

/// Refusals already in the history.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    noted: BTreeMap<String, BootTime>,
}

impl RefusalLog {
    fn is_new(&mut self, reason: &str, now: BootTime) -> bool {
        self.noted.retain(|_, at| now.since(*at) < REFUSAL_PAUSE);
        if self.noted.contains_key(reason) {
            return false;
        }
        if self.noted.len() < REFUSALS_REMEMBERED {
            self.noted.insert(reason.to_owned(), now);
        }
        true
    }
}
