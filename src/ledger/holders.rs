//! The records of holders, indexed by what is asked for.
//!
//! Invariant: the indexes agree with the records. The fields they are made from (resource, id, chip) never
//! change while a record is in, which is why no caller gets a whole record to change.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::{AllocationId, DieId, PluginDeviceId, ResourceName};

use super::book::Held;

#[derive(Clone, Debug, Default)]
pub(super) struct Holders {
    records: BTreeMap<AllocationId, Held>,
    by_id: BTreeMap<ResourceName, BTreeMap<PluginDeviceId, BTreeSet<AllocationId>>>,
    by_die: BTreeMap<DieId, BTreeSet<AllocationId>>,
}

impl Holders {
    pub(super) fn records(&self) -> &BTreeMap<AllocationId, Held> {
        &self.records
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Held> {
        self.records.values()
    }

    pub(super) fn get(&self, key: AllocationId) -> Option<&Held> {
        self.records.get(&key)
    }

    pub(super) fn of_id(&self, resource: &ResourceName, id: &PluginDeviceId) -> Option<&Held> {
        let keys = self.by_id.get(resource)?.get(id)?;
        keys.first().and_then(|key| self.records.get(key))
    }

    pub(super) fn of_die(&self, die: DieId) -> impl Iterator<Item = &Held> {
        let keys = self.by_die.get(&die).into_iter().flatten();
        keys.filter_map(|key| self.records.get(key))
    }

    /// Every chip with its holders.
    pub(super) fn dies(&self) -> impl Iterator<Item = (&DieId, &BTreeSet<AllocationId>)> {
        self.by_die.iter()
    }

    /// Every held id with its holders.
    pub(super) fn ids(
        &self,
    ) -> impl Iterator<Item = ((&ResourceName, &PluginDeviceId), &BTreeSet<AllocationId>)> {
        self.by_id
            .iter()
            .flat_map(|(resource, ids)| ids.iter().map(move |(id, keys)| ((resource, id), keys)))
    }

    pub(super) fn insert(&mut self, held: Held) {
        let record = &held.record;
        let key = record.id;
        self.remove(key);
        let ids = self.by_id.entry(record.resource.clone()).or_default();
        ids.entry(record.plugin_device_id.clone())
            .or_default()
            .insert(key);
        self.by_die.entry(record.die).or_default().insert(key);
        self.records.insert(key, held);
    }

    pub(super) fn remove(&mut self, key: AllocationId) -> Option<Held> {
        let held = self.records.remove(&key)?;
        let record = &held.record;
        if let Some(ids) = self.by_id.get_mut(&record.resource) {
            drop_key(ids, &record.plugin_device_id, key);
        }
        drop_key(&mut self.by_die, &record.die, key);
        Some(held)
    }

    /// Changes what this run knows of each holder; resource, id and chip stay as they are.
    pub(super) fn for_each(&mut self, mut change: impl FnMut(AllocationId, &mut Held)) {
        for (key, held) in &mut self.records {
            change(*key, held);
        }
    }

    /// The same for one holder.
    pub(super) fn change(&mut self, key: AllocationId, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.records.get_mut(&key) {
            change(held);
        }
    }
}

fn drop_key<K: Ord>(index: &mut BTreeMap<K, BTreeSet<AllocationId>>, place: &K, key: AllocationId) {
    if let Some(keys) = index.get_mut(place) {
        keys.remove(&key);
        if keys.is_empty() {
            index.remove(place);
        }
    }
}
