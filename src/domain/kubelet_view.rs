//! What kubelet says about who holds what: pod-resources and its checkpoint file. A view that could
//! not be had is absent, never empty.

use std::collections::BTreeSet;

use super::ids::{PhyId, PluginDeviceId, ResourceName};
use super::time::BootTime;

/// Which of kubelet's records are read: everything in our own domain, so that holders are found even
/// when nothing is known of them, and the names that are offered or held, whatever their domain. Entries
/// of the checkpoint whose cached answer gives chips are read besides, whatever their resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordScope {
    /// Our domain, `huawei.com` unless configured.
    pub domain: String,
    /// Names.
    pub names: BTreeSet<ResourceName>,
}

impl RecordScope {
    /// Our domain alone.
    #[must_use]
    pub fn domain(domain: impl Into<String>) -> Self {
        Self {
            domain: domain.into(),
            names: BTreeSet::new(),
        }
    }

    /// Whether records of this resource are read. The text is as kubelet has it and may break the rules
    /// for names.
    #[must_use]
    pub fn covers(&self, resource: &str) -> bool {
        let rest = resource.strip_prefix(self.domain.as_str());
        rest.is_some_and(|rest| rest.starts_with('/'))
            || self.names.iter().any(|name| name.as_str() == resource)
    }
}

/// A pod by name. Names repeat (StatefulSets); only the UID does not, and pod-resources has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// One container's devices of one resource, from pod-resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Pod.
    pub pod: PodName,
    /// Container.
    pub container: String,
    /// Resource.
    pub resource: ResourceName,
    /// Ids.
    pub ids: BTreeSet<PluginDeviceId>,
}

/// One answer of pod-resources List, cut down to what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCensus {
    /// When the call was begun.
    pub begun: BootTime,
    /// Every pod listed, with or without devices.
    pub pods: BTreeSet<PodName>,
    /// Holdings of our resources. Ordinary init containers are not listed by kubelet.
    pub holdings: Vec<Holding>,
}

/// Identity of one written version of the checkpoint file: kubelet replaces the file by rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointVersion {
    /// Inode number.
    pub inode: u64,
    /// Modification time, nanoseconds.
    pub modified_ns: i64,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// One entry of kubelet's checkpoint, cut down to what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointEntry {
    /// Pod UID; static pods carry 32 hexadecimal digits without dashes.
    pub pod_uid: String,
    /// Container.
    pub container: String,
    /// Resource.
    pub resource: ResourceName,
    /// Ids, deduplicated over NUMA nodes.
    pub ids: BTreeSet<PluginDeviceId>,
    /// Numbers N of the chips in the cached answer, by its `/dev/davinciN` nodes or its CDI names that
    /// end in `=N`; empty when it carries none (Ascend Docker Runtime) or could not be read.
    pub device_nodes: BTreeSet<PhyId>,
    /// `ASCEND_VISIBLE_DEVICES` of the cached answer, when it carries one.
    pub visible_devices: Option<String>,
}

/// Kubelet's checkpoint file as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointView {
    /// Which version of the file.
    pub version: CheckpointVersion,
    /// When it was read.
    pub read: BootTime,
    /// Entries of our resources.
    pub entries: Vec<CheckpointEntry>,
}

impl CheckpointView {
    /// The entry that holds an id.
    #[must_use]
    pub fn holder(&self, resource: &ResourceName, id: &PluginDeviceId) -> Option<&CheckpointEntry> {
        self.entries
            .iter()
            .find(|entry| entry.resource == *resource && entry.ids.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_its_domain_and_the_names_in_it_and_nothing_else() {
        let name = ResourceName::new("example.com/npu").expect("valid");
        let scope = RecordScope {
            names: BTreeSet::from([name]),
            ..RecordScope::domain("huawei.com")
        };
        for covered in ["huawei.com/Ascend910", "huawei.com/a b", "example.com/npu"] {
            assert!(scope.covers(covered), "{covered}");
        }
        for other in [
            "huawei.com.evil/x",
            "huawei.community/x",
            "example.com/gpu",
            "example.com/npu2",
            "huawei.com",
        ] {
            assert!(!scope.covers(other), "{other}");
        }
    }
}
