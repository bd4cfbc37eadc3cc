//! Paths on the host, per family.

use std::collections::BTreeSet;

use crate::domain::family::ChipFamily;
use crate::domain::ids::PhyId;

/// Node that every container needs; without it no chip works.
pub(super) const MANAGER: &str = "davinci_manager";

/// Nodes given when present, in the order of the answer.
const SHARED: [&str; 3] = ["devmm_svm", "hisi_hdc", "dvpp_cmdlist"];

/// Folders on A5 whose files all go into the container.
pub(super) const UB_FOLDERS: [&str; 2] = ["uburma", "ummu"];

/// Driver files of a data-centre install, in order; the two version files come before the queue
/// folder.
pub(super) const CENTER_MOUNTS: [&str; 7] = [
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/include",
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
    "/var/queue_schedule",
];

/// Which of the candidate paths exist, and what lies in the folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPaths {
    /// Existing paths, absolute, as the host names them.
    pub present: BTreeSet<String>,
}

impl HostPaths {
    pub(super) fn has(&self, path: &str) -> bool {
        self.present.contains(path)
    }
}

/// Every path whose presence matters for a container with these chips. `dev` is the folder of the
/// device nodes, without a slash at the end. Folders are to be listed one level deep.
#[must_use]
pub fn candidates(
    family: ChipFamily,
    dev: &str,
    phys: impl IntoIterator<Item = PhyId>,
    driver_mounts: bool,
) -> Vec<String> {
    let mut paths: Vec<String> = std::iter::once(MANAGER)
        .chain(shared_nodes().iter().copied())
        .map(|name| format!("{dev}/{name}"))
        .collect();
    paths.extend(phys.into_iter().map(|phy| chip_node(dev, phy)));
    if family == ChipFamily::Ascend950 {
        paths.extend(UB_FOLDERS.map(|name| format!("{dev}/{name}")));
    }
    if driver_mounts {
        paths.extend(CENTER_MOUNTS.map(str::to_owned));
    }
    paths
}

/// The nodes without which a container cannot use a chip.
#[must_use]
pub fn required_nodes(dev: &str, phy: PhyId) -> [String; 2] {
    [format!("{dev}/{MANAGER}"), chip_node(dev, phy)]
}

pub(super) fn shared_nodes() -> &'static [&'static str] {
    &SHARED
}

pub(super) fn chip_node(dev: &str, phy: PhyId) -> String {
    format!("{dev}/davinci{phy}")
}
