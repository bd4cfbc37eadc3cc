//! Kubelet: its folder, its registry, its pod-resources, its version.

use std::path::Path;

use crate::config::Config;
use crate::domain::causes::with_causes;
use crate::kubelet::{
    LookError, RecordsLook, SocketDirError, look_at_folder, look_at_records, look_at_registry,
};

use super::KUBELET;
use super::deadline::{checked, within};
use super::finding::{Finding, Report};
use super::running::{Agent, block_on};

const FOLDER_WHAT: &str = "device-plugin folder";
const REGISTRY_WHAT: &str = "kubelet";
const RECORDS_WHAT: &str = "pod-resources";
const VERSION_WHAT: &str = "kubelet version";

pub(super) fn examine(config: &Config, agent: &Agent, report: &mut Report) {
    let folder = config.device_plugin_dir.clone();
    let registry = folder.join("kubelet.sock");
    report.take(checked(FOLDER_WHAT, KUBELET, move || {
        vec![judge_folder(&folder, &look_at_folder(&folder))]
    }));
    report.take(checked(REGISTRY_WHAT, KUBELET, move || {
        let answered = block_on(look_at_registry(&registry));
        vec![judge_registry(&registry, &told(answered))]
    }));
    let socket = config.pod_resources_socket.clone();
    let records = within(KUBELET, move || told(block_on(look_at_records(&socket))))
        .unwrap_or_else(|error| Err(error.to_string()));
    report.take(vec![
        judge_records(&records),
        judge_version(is_registered(agent), records.as_ref().ok()),
    ]);
}

/// An answer, or why there is none, with the causes.
fn told<T>(answer: Result<Result<T, LookError>, String>) -> Result<T, String> {
    answer?.map_err(|error| with_causes(&error))
}

fn is_registered(agent: &Agent) -> bool {
    let resources = agent.status().map(|status| &status.kubelet);
    resources.is_some_and(|resources| resources.values().any(|status| status.registered))
}

fn judge_folder(folder: &Path, look: &Result<(), SocketDirError>) -> Finding {
    let shown = folder.display();
    match look {
        Ok(()) => Finding::ok(FOLDER_WHAT, format!("{shown} belongs to root, no links")),
        Err(error) => Finding::fail(
            FOLDER_WHAT,
            error.to_string(),
            "mount kubelet's device-plugins folder at the same path, and set device_plugin_dir to it",
        ),
    }
}

fn judge_registry(socket: &Path, answered: &Result<(), String>) -> Finding {
    match answered {
        Ok(()) => Finding::ok(REGISTRY_WHAT, format!("{} answers", socket.display())),
        Err(cause) => Finding::fail(
            REGISTRY_WHAT,
            cause.clone(),
            "start kubelet; see `systemctl status kubelet`. Until then nothing is registered",
        ),
    }
}

fn judge_records(records: &Result<RecordsLook, String>) -> Finding {
    match records {
        Ok(look) => Finding::ok(RECORDS_WHAT, format!("answers, {} pods listed", look.pods)),
        Err(cause) => Finding::fail(
            RECORDS_WHAT,
            cause.clone(),
            "mount /var/lib/kubelet/pod-resources; without it a chip that kubelet grants twice \
             cannot be refused",
        ),
    }
}

/// Kubelet does not tell its version to those on its node; what it knows gives a bound.
fn judge_version(registered: bool, records: Option<&RecordsLook>) -> Finding {
    match records.map(|look| look.knows_get) {
        Some(true) => Finding::ok(
            VERSION_WHAT,
            "1.27 or newer: pod-resources knows the call Get",
        ),
        Some(false) | None if registered => Finding::ok(
            VERSION_WHAT,
            "1.26 or newer: it reads the agent's list; kubelet does not tell more",
        ),
        Some(false) => Finding::warn(
            VERSION_WHAT,
            "older than 1.27: pod-resources does not know the call Get",
            "see that it is 1.26 (`kubectl get nodes`); older ones cannot talk to the agent",
        ),
        None => Finding::warn(
            VERSION_WHAT,
            "it cannot be known: kubelet does not tell it, and pod-resources gives no hint",
            "see that it is 1.26 or newer (`kubectl get nodes`)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn what_kubelet_knows_bounds_its_version() {
        let knows = |knows_get| RecordsLook { pods: 0, knows_get };
        for (registered, records, verdict) in [
            (false, Some(knows(true)), Verdict::Ok),
            (true, Some(knows(false)), Verdict::Ok),
            (true, None, Verdict::Ok),
            (false, Some(knows(false)), Verdict::Warn),
            (false, None, Verdict::Warn),
        ] {
            assert_eq!(
                judge_version(registered, records.as_ref()).verdict,
                verdict,
                "{registered}, {records:?}"
            );
        }
    }

    #[test]
    fn a_silent_kubelet_fails_and_says_what_that_means() {
        let silent = Err("nobody listens".to_owned());
        assert_eq!(
            judge_registry(Path::new("/k.sock"), &silent).verdict,
            Verdict::Fail
        );
        let finding = judge_records(&Err("nobody listens".to_owned()));
        assert_eq!(finding.verdict, Verdict::Fail);
        assert!(finding.remedy.contains("twice"));
    }
}
