//! Kubelet's records, indexed for one comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::allocation::{Allocation, Owner};
use crate::domain::ids::{PhyId, PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{
    CheckpointEntry, CheckpointVersion, Holding, PodCensus, PodName,
};
use crate::domain::time::Stamp;

use super::super::book::{Held, Ledger};
use super::ObserveContext;

pub(super) type HolderKey<'a> = (&'a ResourceName, &'a PluginDeviceId);

/// Kubelet's records, indexed.
pub(super) struct Sights<'a> {
    census: Option<&'a PodCensus>,
    /// When the oldest grant was made that the checkpoint shows with the holder the ledger knows:
    /// kubelet has its records since then, and what is younger and not shown it has released.
    oldest: Option<Stamp>,
    listed: BTreeMap<HolderKey<'a>, &'a Holding>,
    checkpointed: BTreeMap<HolderKey<'a>, (&'a CheckpointEntry, CheckpointVersion)>,
}

/// Where kubelet's records show one grant.
pub(super) struct Sight<'a> {
    pub(super) listed: Option<&'a Holding>,
    pub(super) checkpointed: Option<(&'a CheckpointEntry, CheckpointVersion)>,
}

impl Sight<'_> {
    pub(super) fn is_shown(&self) -> bool {
        self.listed.is_some() || self.checkpointed.is_some()
    }

    pub(super) fn owner(&self, known: &Owner) -> Owner {
        let mut owner = known.clone();
        if let Some(holding) = self.listed {
            owner.namespace = Some(holding.pod.namespace.clone());
            owner.pod = Some(holding.pod.name.clone());
            owner.container = Some(holding.container.clone());
        }
        if let Some((entry, _)) = self.checkpointed {
            owner.pod_uid = Some(entry.pod_uid.clone());
            if self.listed.is_none() && owner.container.is_none() {
                owner.container = Some(entry.container.clone());
            }
        }
        owner
    }
}

impl<'a> Sights<'a> {
    pub(super) fn of(context: &ObserveContext<'a>, ledger: &Ledger) -> Self {
        let mut sights = Self {
            census: context.census,
            oldest: context
                .checkpoint
                .flatten()
                .and_then(|view| ledger.oldest_shown(view)),
            listed: BTreeMap::new(),
            checkpointed: BTreeMap::new(),
        };
        for holding in context.census.iter().flat_map(|census| &census.holdings) {
            for id in &holding.ids {
                sights.listed.insert((&holding.resource, id), holding);
            }
        }
        if let Some(Some(view)) = context.checkpoint {
            for entry in &view.entries {
                for id in &entry.ids {
                    sights
                        .checkpointed
                        .insert((&entry.resource, id), (entry, view.version));
                }
            }
        }
        sights
    }

    /// Whether kubelet's records begin no later than this grant.
    pub(super) fn reach_back_to(&self, record: &Allocation) -> bool {
        self.oldest
            .is_some_and(|oldest| oldest.is_no_later_than(&record.granted))
    }

    /// Evidence about one grant; views older than its answer do not count.
    pub(super) fn sight(&self, held: &Held) -> Sight<'a> {
        let key = (&held.record.resource, &held.record.plugin_device_id);
        let fresh_list = self
            .census
            .is_some_and(|census| census.begun > held.answered);
        Sight {
            listed: self.listed.get(&key).copied().filter(|_| fresh_list),
            checkpointed: self
                .checkpointed
                .get(&key)
                .filter(|(_, version)| held.checkpoint_then != Some(*version))
                .copied(),
        }
    }

    /// Every id kubelet shows as held. Where pod-resources and the checkpoint both answered, the name
    /// comes from the first and the UID from the second.
    pub(super) fn holders(&self) -> BTreeMap<HolderKey<'a>, Owner> {
        let keys: BTreeSet<HolderKey<'a>> = self
            .listed
            .keys()
            .chain(self.checkpointed.keys())
            .copied()
            .collect();
        keys.into_iter()
            .map(|key| {
                let sight = Sight {
                    listed: self.listed.get(&key).copied(),
                    checkpointed: self.checkpointed.get(&key).copied(),
                };
                (key, sight.owner(&Owner::default()))
            })
            .collect()
    }

    /// The device node that kubelet's cached answer names, when the entry holds a single chip: with
    /// several, the pairing of ids and nodes is not on record.
    pub(super) fn device_node(
        &self,
        resource: &ResourceName,
        id: &PluginDeviceId,
    ) -> Option<PhyId> {
        let (entry, _) = self.checkpointed.get(&(resource, id))?;
        match (entry.ids.len(), entry.device_nodes.len()) {
            (1, 1) => entry.device_nodes.first().copied(),
            _ => None,
        }
    }

    /// The number in the id, when kubelet's cached answer gives a chip of that number: whatever the id
    /// begins with, this agent made it.
    pub(super) fn number_given(
        &self,
        resource: &ResourceName,
        id: &PluginDeviceId,
    ) -> Option<PhyId> {
        let (entry, _) = self.checkpointed.get(&(resource, id))?;
        let number = id.chip_number()?;
        let visible = entry.visible_devices.as_deref().unwrap_or_default();
        let given = entry.device_nodes.contains(&number)
            || visible.split(',').any(|text| text == number.to_string());
        given.then_some(number)
    }

    /// True when pod-resources lists the recorded pod, and not with other chips in the same place:
    /// a pod of the same name that was given others is a successor.
    pub(super) fn owner_is_alive(&self, record: &Allocation) -> bool {
        let (Some(census), Some(namespace), Some(name)) =
            (self.census, &record.owner.namespace, &record.owner.pod)
        else {
            return false;
        };
        let pod = PodName {
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let succeeded = census.holdings.iter().any(|holding| {
            holding.pod == pod
                && Some(&holding.container) == record.owner.container.as_ref()
                && holding.resource == record.resource
        });
        census.pods.contains(&pod) && !succeeded
    }
}
