//! Device nodes: is there one for each chip, and is the folder the host's own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::footing::Mounts;

use super::finding::Finding;

pub(super) const WHAT: &str = "device nodes";

const PLACE_WHAT: &str = "host's /dev";

/// Entries read of the folder; a real one has far fewer.
const ENTRIES_MAX: usize = 65_536;

/// The node through which containers reach the driver, and its form in containers of 310B.
const MANAGERS: [&str; 2] = ["davinci_manager", "davinci_manager_docker"];

/// The folder of device nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeFacts {
    folder: String,
    /// Why the folder cannot be read.
    unreadable: Option<String>,
    /// Numbers of the nodes of chips.
    chips: BTreeSet<u32>,
    has_manager: bool,
    /// Type of the file system it lies in, where known.
    kind: Option<String>,
}

pub(super) fn look(folder: &str, mounts: &Mounts) -> NodeFacts {
    let resolved = fs::canonicalize(folder);
    let kind = resolved
        .ok()
        .and_then(|path| mounts.of(&path).map(|mount| mount.kind.clone()));
    let mut facts = NodeFacts {
        folder: folder.to_owned(),
        unreadable: None,
        chips: BTreeSet::new(),
        has_manager: MANAGERS
            .iter()
            .any(|name| Path::new(folder).join(name).exists()),
        kind,
    };
    match fs::read_dir(folder) {
        Ok(entries) => {
            let names = entries
                .take(ENTRIES_MAX)
                .flatten()
                .map(|entry| entry.file_name());
            facts.chips = names
                .filter_map(|name| name.to_str()?.strip_prefix("davinci")?.parse().ok())
                .collect();
        }
        Err(error) => facts.unreadable = Some(error.to_string()),
    }
    facts
}

/// `chips` are the numbers the driver told, where it told any.
pub(super) fn judge(facts: &NodeFacts, chips: Option<&BTreeSet<u32>>) -> Finding {
    let folder = &facts.folder;
    if let Some(cause) = &facts.unreadable {
        return Finding::fail(
            WHAT,
            format!("{folder} cannot be read: {cause}"),
            "mount the host's /dev and set dev_dir to where it is",
        );
    }
    if !facts.has_manager {
        return Finding::fail(
            WHAT,
            format!("{folder}/davinci_manager is missing"),
            "load the driver on the host (`npu-smi info`); without the node no container starts",
        );
    }
    let Some(chips) = chips else {
        return Finding::warn(
            WHAT,
            format!(
                "{} nodes of chips, and no driver to compare with",
                facts.chips.len()
            ),
            "mend the driver first",
        );
    };
    let missing: Vec<String> = chips.difference(&facts.chips).map(u32::to_string).collect();
    let surplus: Vec<String> = facts.chips.difference(chips).map(u32::to_string).collect();
    if !missing.is_empty() {
        return Finding::fail(
            WHAT,
            format!(
                "no davinci node in {folder} for chips {}",
                missing.join(", ")
            ),
            "mount the host's /dev; on the host, load the driver anew. These chips are not offered",
        );
    }
    if !surplus.is_empty() {
        return Finding::warn(
            WHAT,
            format!("nodes without a chip: davinci {}", surplus.join(", ")),
            "see `npu-smi info` on the host: a chip was lost, or has not come up",
        );
    }
    Finding::ok(
        WHAT,
        format!("one for each of {} chips, and the manager's", chips.len()),
    )
}

pub(super) fn judge_place(facts: &NodeFacts) -> Finding {
    let folder = &facts.folder;
    match facts.kind.as_deref() {
        Some("devtmpfs") => Finding::ok(PLACE_WHAT, format!("{folder} is the kernel's own")),
        Some("tmpfs") => Finding::fail(
            PLACE_WHAT,
            format!("{folder} is a tmpfs: a container's own copy, made when it started"),
            "mount the host's /dev (hostPath), else nodes that come later are never seen",
        ),
        Some(kind) => Finding::warn(
            PLACE_WHAT,
            format!("{folder} is a folder on {kind}"),
            "right for simulated hardware only; set dev_dir to where the host's /dev is mounted",
        ),
        None => Finding::warn(
            PLACE_WHAT,
            format!("it cannot be seen where {folder} is mounted from"),
            "make sure that the host's /dev is mounted there",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn facts(chips: &[u32]) -> NodeFacts {
        NodeFacts {
            folder: "/dev".to_owned(),
            unreadable: None,
            chips: chips.iter().copied().collect(),
            has_manager: true,
            kind: Some("devtmpfs".to_owned()),
        }
    }

    fn verdict(facts: &NodeFacts, chips: &[u32]) -> (Verdict, String) {
        let finding = judge(facts, Some(&chips.iter().copied().collect()));
        (finding.verdict, finding.found)
    }

    #[test]
    fn each_chip_needs_its_node() {
        assert_eq!(verdict(&facts(&[0, 1]), &[0, 1]).0, Verdict::Ok);
        let (verdict, found) = verdict(&facts(&[0]), &[0, 1, 2]);
        assert_eq!(verdict, Verdict::Fail);
        assert!(found.ends_with("chips 1, 2"), "{found}");
    }

    #[test]
    fn a_node_without_a_chip_is_a_warning() {
        assert_eq!(verdict(&facts(&[0, 1]), &[0]).0, Verdict::Warn);
        assert_eq!(judge(&facts(&[0]), None).verdict, Verdict::Warn);
    }

    #[test]
    fn the_managers_node_and_the_folder_must_be_there() {
        let mut without = facts(&[0]);
        without.has_manager = false;
        assert_eq!(verdict(&without, &[0]).0, Verdict::Fail);
        let mut unreadable = facts(&[0]);
        unreadable.unreadable = Some("gone".to_owned());
        assert_eq!(verdict(&unreadable, &[0]).0, Verdict::Fail);
    }

    #[test]
    fn a_containers_copy_of_dev_is_told_from_the_hosts() {
        for (kind, verdict) in [
            (Some("devtmpfs"), Verdict::Ok),
            (Some("tmpfs"), Verdict::Fail),
            (Some("ext4"), Verdict::Warn),
            (None, Verdict::Warn),
        ] {
            let mut facts = facts(&[]);
            facts.kind = kind.map(str::to_owned);
            assert_eq!(judge_place(&facts).verdict, verdict, "{kind:?}");
        }
    }
}
