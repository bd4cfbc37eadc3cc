//! The list for kubelet.

use std::collections::BTreeMap;

use crate::domain::allocation::excludes;
use crate::domain::ids::{DieId, PluginDeviceId, ResourceName};
use crate::domain::offer::OfferedDevice;

use super::book::{ChipVerdict, Held, Ledger, Place};

impl Ledger {
    /// The complete list for kubelet. A held id never leaves it; an id follows its die, so that a held
    /// id whose number now belongs to another die is not granted again.
    #[must_use]
    pub fn offer(
        &self,
        verdict: impl Fn(DieId) -> ChipVerdict,
    ) -> BTreeMap<ResourceName, Vec<OfferedDevice>> {
        let verdict = &verdict;
        let devices = |resource: &ResourceName, ids: &BTreeMap<PluginDeviceId, Place>| {
            ids.iter()
                .map(|(id, place)| self.device(resource, id, place, verdict))
                .collect()
        };
        self.places
            .iter()
            .filter(|(_, ids)| !ids.is_empty())
            .map(|(resource, ids)| (resource.clone(), devices(resource, ids)))
            .collect()
    }

    fn device(
        &self,
        resource: &ResourceName,
        id: &PluginDeviceId,
        place: &Place,
        verdict: &impl Fn(DieId) -> ChipVerdict,
    ) -> OfferedDevice {
        let fault = self.fault(resource, id, place, verdict);
        let chip = place.die.and_then(|die| self.chips.get(&die));
        OfferedDevice {
            id: id.clone(),
            healthy: fault.is_none(),
            numa_nodes: chip.map_or_else(Default::default, |entry| entry.chip.numa_nodes.clone()),
            reason: fault.unwrap_or_default(),
        }
    }

    /// Why kubelet must not grant an id now, for people.
    pub(super) fn fault(
        &self,
        resource: &ResourceName,
        id: &PluginDeviceId,
        place: &Place,
        verdict: &impl Fn(DieId) -> ChipVerdict,
    ) -> Option<String> {
        let holder = self.holder(resource, id);
        let Some(die) = place.die else {
            return Some(self.chipless(holder));
        };
        let taken = match holder {
            Some(held) if held.record.die != die => Some(format!(
                "held by {} for chip {}, which has another number now",
                held.record.owner, held.record.die
            )),
            Some(held) if held.withheld.is_some() => Some(format!(
                "last held by {}, which kubelet no longer knows and which is not proven gone",
                held.record.owner
            )),
            Some(_) => None,
            None => self.excluded(die, place),
        };
        taken.or_else(|| {
            if let Some(why) = self.frozen.get(&die) {
                return Some(format!("withheld: {why}"));
            }
            match verdict(die) {
                ChipVerdict::Healthy => None,
                ChipVerdict::Unhealthy(reason) => Some(reason),
            }
        })
    }

    fn chipless(&self, holder: Option<&Held>) -> String {
        let gone = "the driver does not list this chip";
        let Some(held) = holder else {
            return gone.to_owned();
        };
        let record = &held.record;
        let present = self
            .chips
            .get(&record.die)
            .is_some_and(|entry| entry.present);
        if present {
            format!(
                "held by {} for chip {}, which is offered under other ids now",
                record.owner, record.die
            )
        } else {
            format!("{gone}; held by {}", record.owner)
        }
    }

    /// A free id whose chip is held by what it cannot live with: the whole chip, or a share of the same
    /// slot under another id.
    fn excluded(&self, die: DieId, place: &Place) -> Option<String> {
        let mut others = self
            .holders_of_die(die)
            .filter(|held| excludes(held.record.share_slot(), place.share));
        let first = &others.next()?.record;
        let more = match others.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "its chip is held by {} as {}{more}",
            first.owner, first.plugin_device_id
        ))
    }
}
