//! What this process may do, judged as the agent judges it at its start.

use std::path::PathBuf;

use crate::footing::{Facts, StatePlace, lacks};
use crate::surroundings::{self, Places};

use super::finding::Finding;

pub(super) const WHAT: &str = "rights";

pub(super) fn look(places: &Places) -> Facts {
    surroundings::look(places)
}

/// Only rights and process numbers: the other facts have lines of their own.
pub(super) fn judge(facts: &Facts) -> Finding {
    let lacking = lacks(&Facts {
        state: StatePlace::Configured,
        library_trouble: None,
        missing_pod_resources: None::<PathBuf>,
        host_dev: true,
        ..facts.clone()
    });
    if lacking.is_empty() {
        let place = if facts.in_container {
            "root in a privileged container, with the host's process numbers"
        } else {
            "root on the host"
        };
        return Finding::ok(WHAT, place);
    }
    let join = |part: fn(&crate::footing::Lack) -> String| {
        let parts: Vec<String> = lacking.iter().map(part).collect();
        parts.join("; ")
    };
    let found = join(|lack| format!("without {}: {}", lack.lack, lack.consequence));
    let remedy = join(|lack| lack.remedy.to_owned());
    if !facts.root {
        return Finding::fail(WHAT, found, remedy);
    }
    Finding::warn(WHAT, found, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn facts() -> Facts {
        Facts {
            in_container: true,
            state: StatePlace::InContainer,
            library_trouble: Some("told elsewhere".to_owned()),
            missing_pod_resources: Some(PathBuf::from("/told/elsewhere")),
            host_pids: true,
            root: true,
            capabilities: u64::MAX,
            host_dev: false,
        }
    }

    #[test]
    fn only_rights_and_process_numbers_are_judged_here() {
        assert_eq!(judge(&facts()).verdict, Verdict::Ok);
    }

    #[test]
    fn what_is_missing_is_named_with_the_lines_to_add() {
        let finding = judge(&Facts {
            capabilities: 0,
            host_pids: false,
            ..facts()
        });
        assert_eq!(finding.verdict, Verdict::Warn);
        for part in ["privileged: true", "hostPID: true"] {
            assert!(finding.remedy.contains(part), "{finding:?}");
        }
        let stranger = Facts {
            root: false,
            ..facts()
        };
        assert_eq!(judge(&stranger).verdict, Verdict::Fail);
    }
}
