//! Container runtimes and Ascend Docker Runtime.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::Config;
use crate::injection::{DeliveryChoice, VisibleDevices};

use super::finding::Finding;
use super::records::record;

const SOCKETS_WHAT: &str = "container runtime";

pub(super) const WHAT: &str = "Ascend Docker Runtime";

const OWN_LIST_WHAT: &str = "own chips";

/// Where container runtimes listen, below the host's root.
const SOCKETS: [(&str, &str); 6] = [
    ("containerd", "run/containerd/containerd.sock"),
    ("containerd of k3s", "run/k3s/containerd/containerd.sock"),
    ("docker", "run/docker.sock"),
    ("docker shim", "run/cri-dockerd.sock"),
    ("CRI-O", "run/crio/crio.sock"),
    ("iSulad", "run/isulad.sock"),
];

/// What the installer of Ascend Docker Runtime writes, below the host's root.
const RECORD: &str = "usr/local/Ascend/Ascend-Docker-Runtime/ascend_docker_runtime_install.info";

/// The oldest version that device plugins of the vendor work with.
const OLDEST: Version = Version(5, 0, Stage::Candidate(1));

/// What the configuration says about Ascend Docker Runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Chips go through it.
    used: bool,
    /// Our own container was started by it.
    marked: bool,
}

impl Wanted {
    pub(super) fn of(config: &Config) -> Self {
        let marked = config.docker_runtime;
        Self {
            used: config.delivery == DeliveryChoice::DockerRuntime
                || (config.delivery == DeliveryChoice::Auto && marked),
            marked,
        }
    }
}

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuntimeFacts {
    sockets: Vec<&'static str>,
    /// The installer's record, where there is one.
    record: Option<BTreeMap<String, String>>,
    wanted: Wanted,
}

pub(super) fn look(root: &Path, wanted: Wanted) -> RuntimeFacts {
    let there = SOCKETS.iter().filter(|(_, path)| root.join(path).exists());
    RuntimeFacts {
        sockets: there.map(|(name, _)| *name).collect(),
        record: record(&root.join(RECORD)),
        wanted,
    }
}

pub(super) fn judge_sockets(facts: &RuntimeFacts) -> Finding {
    if facts.sockets.is_empty() {
        return Finding::ok(
            SOCKETS_WHAT,
            "none is visible from here; the agent needs none",
        );
    }
    Finding::ok(SOCKETS_WHAT, facts.sockets.join(", "))
}

pub(super) fn judge(facts: &RuntimeFacts) -> Finding {
    let Wanted { used, marked } = facts.wanted;
    let Some(record) = &facts.record else {
        return match (used, marked) {
            (true, true) => Finding::warn(
                WHAT,
                "it started this container; its record cannot be seen from here, nor its version",
                "see on the host that it is 5.0.RC1 or newer, or run doctor with --host-root",
            ),
            (true, false) => Finding::warn(
                WHAT,
                "delivery is docker-runtime, but it did not start this container",
                "make it the default runtime of the node; without it pods get no device nodes",
            ),
            (false, _) => Finding::ok(WHAT, "not seen; device nodes are given by the agent itself"),
        };
    };
    let written = record
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("version"))
        .map(|(_, value)| value.as_str());
    let version = written.and_then(Version::parse);
    let found = format!(
        "version {}, {}",
        written.unwrap_or("unknown"),
        if marked {
            "started this container"
        } else {
            "did not start this container"
        }
    );
    match (version, used, marked) {
        (Some(version), true, _) if version < OLDEST => Finding::fail(
            WHAT,
            found,
            "install 5.0.RC1 or newer, or set delivery to devicespec",
        ),
        (None, true, _) => Finding::warn(WHAT, found, "see that it is 5.0.RC1 or newer"),
        (_, true, false) => Finding::warn(
            WHAT,
            format!("{found}, although delivery is docker-runtime"),
            "make it the default runtime of the node; without it pods get no device nodes",
        ),
        (_, false, false) => Finding::ok(
            WHAT,
            format!("{found}; device nodes are given by the agent itself"),
        ),
        (_, _, true) => Finding::ok(WHAT, found),
    }
}

/// The list that Ascend Docker Runtime reads of our own container.
pub(super) fn judge_own_list(list: Option<&str>) -> Finding {
    let remedy = "remove ASCEND_VISIBLE_DEVICES from the agent's pod, and run it privileged";
    match list.map(VisibleDevices::parse) {
        None | Some(Ok(VisibleDevices::None)) => Finding::ok(
            OWN_LIST_WHAT,
            "ASCEND_VISIBLE_DEVICES names none for the agent",
        ),
        Some(Ok(VisibleDevices::Ids(ids))) => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            Finding::warn(
                OWN_LIST_WHAT,
                format!(
                    "ASCEND_VISIBLE_DEVICES is {} for the agent; the driver may show it no others",
                    ids.join(",")
                ),
                remedy,
            )
        }
        Some(Err(error)) => Finding::warn(OWN_LIST_WHAT, error.to_string(), remedy),
    }
}

/// `5.0.RC1`, `5.0.0`, `v26.1.0`: candidates come before the release they lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, Stage);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Candidate(u32),
    Release(u32),
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let mut parts = text.trim_start_matches('v').split(['.', '-', '_']);
        let (major, minor) = (number(parts.next()?)?, number(parts.next()?)?);
        let stage = match parts.next() {
            None => Stage::Release(0),
            Some(part) => match part.strip_prefix("rc") {
                Some(candidate) => Stage::Candidate(number(candidate)?),
                None => Stage::Release(number(part)?),
            },
        };
        Some(Self(major, minor, stage))
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::records::pairs;
    use super::*;
    use crate::doctor::Verdict;

    fn verdict(version: Option<&str>, used: bool, marked: bool) -> Verdict {
        judge(&RuntimeFacts {
            sockets: Vec::new(),
            record: version.map(|version| pairs(&format!("version={version}\narch=aarch64\n"))),
            wanted: Wanted { used, marked },
        })
        .verdict
    }

    #[test]
    fn candidates_come_before_their_release() {
        let sorted = [
            "3.0.0", "5.0.RC1", "5.0.RC2", "5.0.0", "5.0.1", "v6.0.RC1", "26.1.0",
        ];
        let versions: Vec<Version> = sorted
            .iter()
            .map(|text| Version::parse(text).expect("a version"))
            .collect();
        assert!(versions.is_sorted());
        assert!(versions.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(Version::parse("new"), None);
    }

    #[test]
    fn a_runtime_that_is_used_must_be_new_enough() {
        assert_eq!(verdict(Some("5.0.RC1"), true, true), Verdict::Ok);
        assert_eq!(verdict(Some("3.0.0"), true, true), Verdict::Fail);
        assert_eq!(verdict(Some("3.0.0"), false, false), Verdict::Ok);
        assert_eq!(verdict(Some("new"), true, true), Verdict::Warn);
    }

    #[test]
    fn a_runtime_that_should_be_used_must_have_started_our_container() {
        assert_eq!(verdict(Some("26.1.0"), true, false), Verdict::Warn);
        assert_eq!(verdict(None, true, false), Verdict::Warn);
        assert_eq!(verdict(None, true, true), Verdict::Warn);
        assert_eq!(verdict(None, false, false), Verdict::Ok);
    }

    #[test]
    fn a_list_of_chips_for_the_agent_itself_hides_the_others() {
        let verdict = |list| judge_own_list(list).verdict;
        assert_eq!(verdict(None), Verdict::Ok);
        assert_eq!(verdict(Some("void")), Verdict::Ok);
        assert_eq!(verdict(Some("0-3")), Verdict::Warn);
        assert_eq!(verdict(Some("0,Ascend910-1")), Verdict::Warn);
    }

    #[test]
    fn runtimes_are_known_by_their_sockets() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("run/containerd")).expect("a folder");
        fs::write(root.path().join("run/containerd/containerd.sock"), "").expect("a file");
        let wanted = Wanted {
            used: false,
            marked: false,
        };
        assert_eq!(look(root.path(), wanted).sockets, ["containerd"]);
    }
}
