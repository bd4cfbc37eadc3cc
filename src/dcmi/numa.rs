//! NUMA nodes of a chip: from the driver's CPU list, else from the PCI device in sysfs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::domain::chip::PciAddress;

/// Nodes beyond this are garbage; also bounds the directory walk.
const NODE_MAX: u32 = 1023;

/// Nodes whose CPUs overlap the list; empty when the list or sysfs cannot be read.
pub(super) fn nodes_of_cpus(sysfs: &Path, near: &str) -> BTreeSet<u32> {
    let near = parse_cpu_list(near);
    let Ok(entries) = fs::read_dir(sysfs.join("devices/system/node")) else {
        return BTreeSet::new();
    };
    let node_of = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let node = name.to_str()?.strip_prefix("node")?.parse().ok()?;
        let cpus = parse_cpu_list(&fs::read_to_string(entry.path().join("cpulist")).ok()?);
        let overlaps = cpus
            .iter()
            .any(|(first, last)| near.iter().any(|(from, to)| first <= to && from <= last));
        (overlaps && node <= NODE_MAX).then_some(node)
    };
    entries.filter_map(|entry| node_of(entry.ok()?)).collect()
}

/// The node of a PCI device; the kernel's -1 means that it knows none.
pub(super) fn node_of_device(sysfs: &Path, at: PciAddress) -> BTreeSet<u32> {
    let name = format!(
        "{:04x}:{:02x}:{:02x}.{:x}",
        at.domain, at.bus, at.device, at.function
    );
    let path = sysfs.join("bus/pci/devices").join(name).join("numa_node");
    let node = fs::read_to_string(path)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    node.filter(|node| *node <= NODE_MAX).into_iter().collect()
}

/// Ranges of a list such as `0-15,32,48-63`; malformed parts are left out.
fn parse_cpu_list(text: &str) -> Vec<(u32, u32)> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some((first, last))
    };
    text.trim().split(',').filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysfs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (node, cpus) in [
            ("node0", "0-31,64-95\n"),
            ("node1", "32-63\n"),
            ("possible", "9"),
        ] {
            let path = dir.path().join("devices/system/node").join(node);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("cpulist"), cpus).unwrap();
        }
        for (device, node) in [("0000:c1:00.0", "1\n"), ("0000:c2:00.0", "-1\n")] {
            let path = dir.path().join("bus/pci/devices").join(device);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("numa_node"), node).unwrap();
        }
        dir
    }

    #[test]
    fn a_cpu_list_names_the_nodes_it_overlaps() {
        let sysfs = sysfs();
        for (list, nodes) in [
            ("0-31", vec![0]),
            ("60-70", vec![0, 1]),
            ("", vec![]),
            ("x", vec![]),
        ] {
            let found = nodes_of_cpus(sysfs.path(), list);
            assert_eq!(found.into_iter().collect::<Vec<_>>(), nodes, "{list:?}");
        }
    }

    #[test]
    fn a_pci_device_names_its_node_and_minus_one_means_none() {
        let sysfs = sysfs();
        for (bus, nodes) in [(0xc1, vec![1]), (0xc2, vec![]), (0xc3, vec![])] {
            let at = PciAddress {
                domain: 0,
                bus,
                device: 0,
                function: 0,
            };
            let found = node_of_device(sysfs.path(), at);
            assert_eq!(found.into_iter().collect::<Vec<_>>(), nodes, "{at}");
        }
    }
}
