//! `doctor` on a good node, and on nodes with one defect each: that line, and no other, says so.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::testbed::{Node, PATIENCE, eventually, make_pipe, programs, text};

const LINES: [&str; 17] = [
    "agent",
    "rights",
    "driver library",
    "driver",
    "installed driver",
    "device nodes",
    "host's /dev",
    "device-plugin folder",
    "kubelet",
    "pod-resources",
    "kubelet version",
    "state volume",
    "store",
    "container runtime",
    "Ascend Docker Runtime",
    "own chips",
    "clock",
];

/// The library of the simulator is taken without the checks, and these nodes run no agent.
const ALWAYS: [(&str, &str); 2] = [("agent", "warn"), ("driver library", "warn")];

/// A node with hardware and kubelet, and what doctor is told about it.
struct Patient {
    node: Node,
    /// Plays the host's root.
    root: tempfile::TempDir,
    flags: BTreeMap<&'static str, PathBuf>,
    environment: Vec<(&'static str, &'static str)>,
}

impl Patient {
    fn new() -> Self {
        Self::of(Node::of("910b3-8x1"))
    }

    fn of(mut node: Node) -> Self {
        node.start_kubelet(&json!({}));
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| node.stage.path(name);
        let flags = BTreeMap::from([
            ("--state-dir", at("state")),
            ("--admin-socket", at("admin.sock")),
            ("--device-plugin-dir", at("dp")),
            ("--pod-resources-socket", at("pr.sock")),
            ("--dev-dir", at("dev")),
            ("--trusted-library", programs().library),
            ("--driver-init-seconds", PathBuf::from("20")),
            ("--host-root", root.path().to_owned()),
            ("--mountinfo", root.path().join("mountinfo")),
        ]);
        let mut patient = Self {
            node,
            root,
            flags,
            environment: Vec::new(),
        };
        patient.mounts("ext4", "devtmpfs");
        patient.host_file("usr/local/Ascend/driver/version.info", "Version=\n");
        let (_, found, _) = patient.line("driver");
        let version = found
            .strip_prefix("version ")
            .and_then(|found| found.split(',').next())
            .expect("the driver's version")
            .to_owned();
        patient.host_file(
            "usr/local/Ascend/driver/version.info",
            &format!("Version={version}\n"),
        );
        patient
    }

    /// Types of the root's and of the device folder's file system.
    fn mounts(&mut self, root: &str, dev: &str) {
        let dev_dir = fs::canonicalize(self.node.stage.path("dev")).expect("the folder");
        let text = format!(
            "1 0 8:1 / / rw - {root} /dev/a rw\n2 1 0:5 / {} rw - {dev} {dev} rw\n",
            dev_dir.display()
        );
        self.host_file("mountinfo", &text);
    }

    fn host_file(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn flag(&mut self, name: &'static str, value: PathBuf) {
        self.flags.insert(name, value);
    }

    /// Exit code and report.
    fn examine(&self) -> (Option<i32>, Value) {
        let flags = self
            .flags
            .iter()
            .flat_map(|(name, value)| [PathBuf::from(name), value.clone()]);
        let output = Command::new(programs().agent)
            .args(["doctor", "-o", "json"])
            .args(flags)
            .env("ASCEND_SIM_SOCKET", self.node.stage.path("sim.sock"))
            .env_remove("ASCEND_DOCKER_RUNTIME")
            .env_remove("ASCEND_VISIBLE_DEVICES")
            .envs(self.environment.iter().copied())
            .output()
            .expect("the program");
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        (output.status.code(), report)
    }

    /// Verdict, found and remedy of one line.
    fn line(&self, what: &str) -> (String, String, String) {
        let (_, report) = self.examine();
        line_of(&report, what)
    }

    /// Exactly these lines are not ok, beside those that never are here, and the first says this.
    fn shows(&self, defects: &[(&str, &str)], says: &str) {
        let (code, report) = self.examine();
        let findings = report["findings"].as_array().expect("findings");
        let expected: BTreeMap<&str, &str> = ALWAYS.iter().chain(defects).copied().collect();
        let seen: BTreeMap<&str, &str> = findings
            .iter()
            .filter(|finding| finding["verdict"] != "ok")
            .map(|finding| {
                let text = |name: &str| finding[name].as_str().expect("a text");
                assert_ne!(text("remedy"), "", "{finding}");
                (text("what"), text("verdict"))
            })
            .collect();
        assert_eq!(seen, expected, "{report:#}");
        let fails = expected.values().any(|verdict| *verdict == "fail");
        assert_eq!(code, Some(i32::from(fails)), "{report:#}");
        if let Some((what, _)) = defects.first() {
            let (_, found, _) = line_of(&report, what);
            assert!(found.contains(says), "{found:?} does not say {says:?}");
        }
    }
}

fn line_of(report: &Value, what: &str) -> (String, String, String) {
    let findings = report["findings"].as_array().expect("findings");
    let finding = findings
        .iter()
        .find(|finding| finding["what"] == what)
        .unwrap_or_else(|| panic!("no line {what}: {report:#}"));
    let text = |name: &str| finding[name].as_str().expect("a text").to_owned();
    (text("verdict"), text("found"), text("remedy"))
}

#[test]
fn a_good_node_has_no_defect_and_the_driver_was_asked_in_a_process_of_its_own() {
    let patient = Patient::new();
    patient.shows(&[], "");
    let (_, report) = patient.examine();
    let findings = report["findings"].as_array().expect("findings");
    let lines: Vec<&str> = findings
        .iter()
        .map(|finding| finding["what"].as_str().expect("a text"))
        .collect();
    assert_eq!(lines, LINES);
    let (_, found, _) = line_of(&report, "driver");
    assert!(found.contains("8 chips, told by a driver host"), "{found}");
    let (_, found, _) = line_of(&report, "kubelet version");
    assert!(found.starts_with("1.27 or newer"), "{found}");
}

#[test]
fn a_running_agent_is_asked_instead_of_the_driver() {
    let mut patient = Patient::new();
    patient.node.start_agent();
    patient.node.allocatable(8);
    eventually("the agent is ready", PATIENCE, || {
        (patient.node.status()["ready"] == true).then_some(())
    });
    let (code, report) = patient.examine();
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(line_of(&report, "agent").0, "ok");
    let (_, found, _) = line_of(&report, "driver");
    assert!(found.contains("told by the running agent"), "{found}");
    let (_, found, _) = line_of(&report, "store");
    assert!(found.contains("durable"), "{found}");

    // A shell that knows nothing of the library sees the agent's.
    patient.flags.remove("--trusted-library");
    let (_, report) = patient.examine();
    let (verdict, found, _) = line_of(&report, "driver library");
    assert_ne!(verdict, "fail", "{report:#}");
    assert!(found.contains("the running agent has"), "{found}");
}

#[test]
fn people_read_one_line_each() {
    let patient = Patient::new();
    let shown = text(&patient.node.run(&["doctor"]).stdout);
    assert_eq!(shown.lines().count(), LINES.len(), "{shown}");
    for (line, what) in shown.lines().zip(LINES) {
        let (verdict, rest) = line.split_at(6);
        assert!(["ok", "warn", "fail"].contains(&verdict.trim()), "{line}");
        assert!(rest.starts_with(what), "{line}");
        assert_eq!(line.contains("  -> "), verdict.trim() != "ok", "{line}");
    }
}

#[test]
fn a_missing_library_is_named_and_not_loaded() {
    let mut patient = Patient::new();
    patient.flag("--trusted-library", PathBuf::from("/absent/libdcmi.so"));
    patient.shows(
        &[
            ("driver library", "fail"),
            ("driver", "warn"),
            ("device nodes", "warn"),
        ],
        "/absent/libdcmi.so",
    );
}

#[test]
fn a_driver_that_hangs_is_named_and_does_not_hang_the_doctor() {
    let mut patient = Patient::new();
    patient.flag("--driver-init-seconds", PathBuf::from("1"));
    patient.node.sim(&["hang", "*"]);
    patient.shows(&[("driver", "fail"), ("device nodes", "warn")], "");
    patient.node.sim(&["release"]);
    patient.shows(&[], "");
}

#[test]
fn a_card_that_did_not_come_up_is_named() {
    let patient = Patient::new();
    patient.node.sim(&["fail-init", "3"]);
    patient.shows(
        &[("driver", "warn"), ("device nodes", "warn")],
        "1 card did not come up",
    );
}

#[test]
fn a_driver_replaced_below_the_loaded_one_is_named() {
    let patient = Patient::new();
    patient.host_file("usr/local/Ascend/driver/version.info", "Version=99.0.0\n");
    patient.shows(&[("installed driver", "warn")], "99.0.0");
}

#[test]
fn a_file_that_hangs_is_named_and_does_not_hang_the_doctor() {
    let patient = Patient::new();
    let file = "usr/local/Ascend/driver/version.info";
    let path = patient.root.path().join(file);
    fs::remove_file(&path).expect("removed");
    make_pipe(&path);
    patient.shows(&[("installed driver", "fail")], "no answer within");
}

#[test]
fn a_chip_without_a_device_node_is_named() {
    let patient = Patient::new();
    fs::remove_file(patient.node.stage.path("dev/davinci3")).expect("removed");
    patient.shows(&[("device nodes", "fail")], "for chips 3");
}

#[test]
fn a_containers_copy_of_dev_is_named() {
    let mut patient = Patient::new();
    patient.mounts("ext4", "tmpfs");
    patient.shows(&[("host's /dev", "fail")], "a container's own copy");
}

#[test]
fn a_device_plugin_folder_behind_a_link_is_named() {
    let mut patient = Patient::new();
    let link = patient.root.path().join("dp");
    symlink(patient.node.stage.path("dp"), &link).expect("a link");
    patient.flag("--device-plugin-dir", link);
    patient.shows(&[("device-plugin folder", "fail")], "symbolic link");
}

#[test]
fn a_kubelet_that_is_away_or_silent_is_named() {
    let mut patient = Patient::new();
    let folder = patient.node.stage.path("other");
    fs::create_dir(&folder).expect("a folder");
    patient.flag("--device-plugin-dir", folder.clone());
    patient.shows(&[("kubelet", "fail")], "does not exist");
    // Bound, and nobody ever accepts.
    let _silent = UnixListener::bind(folder.join("kubelet.sock")).expect("a socket");
    patient.shows(&[("kubelet", "fail")], "no answer within");
}

#[test]
fn missing_pod_resources_are_named() {
    let mut patient = Patient::new();
    patient.flag("--pod-resources-socket", PathBuf::from("/absent/pr.sock"));
    patient.shows(
        &[("pod-resources", "fail"), ("kubelet version", "warn")],
        "/absent/pr.sock does not exist",
    );
}

#[test]
fn state_in_the_containers_own_layer_is_named() {
    let mut patient = Patient::new();
    patient.mounts("overlay", "devtmpfs");
    patient.shows(&[("state volume", "fail")], "container's own layer");
}

#[test]
fn a_damaged_store_is_named_and_left_as_it_is() {
    let patient = Patient::new();
    let folder = patient.node.stage.path("state");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("state.redb");
    fs::write(&file, [7; 8192]).expect("written");
    patient.shows(&[("store", "fail")], "");
    assert_eq!(fs::read(&file).expect("there"), [7; 8192]);
}

#[test]
fn an_old_ascend_docker_runtime_is_named_when_chips_go_through_it() {
    let mut patient = Patient::new();
    patient.environment = vec![("ASCEND_DOCKER_RUNTIME", "True")];
    let record = "usr/local/Ascend/Ascend-Docker-Runtime/ascend_docker_runtime_install.info";
    patient.host_file(record, "version=3.0.0\narch=aarch64\n");
    patient.shows(&[("Ascend Docker Runtime", "fail")], "3.0.0");
    patient.host_file(record, "version=5.0.RC1\narch=aarch64\n");
    patient.shows(&[], "");
}

#[test]
fn cdi_specs_that_no_runtime_reads_are_named() {
    let mut patient = Patient::new();
    let folder = patient.root.path().join("cdi");
    patient.flag("--delivery", PathBuf::from("cdi"));
    patient.flag("--cdi-dir", folder.clone());
    patient.shows(&[("CDI folder", "warn")], "is not there");
    fs::create_dir(&folder).expect("a folder");
    patient.shows(&[], "");
    patient.mounts("overlay", "devtmpfs");
    patient.shows(
        &[("CDI folder", "fail"), ("state volume", "fail")],
        "sees a spec",
    );
}

#[test]
fn a_log_folder_that_everybody_may_write_is_named() {
    let mut patient = Patient::new();
    let folder = patient.root.path().join("log");
    patient.flag("--log-file", folder.join("devicePlugin.log"));
    patient.shows(&[], "");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("a mode");
    patient.shows(&[("log folder", "warn")], "by everybody");
}

#[test]
fn a_list_of_chips_for_the_agent_itself_is_named() {
    let mut patient = Patient::new();
    patient.environment = vec![("ASCEND_VISIBLE_DEVICES", "0-3")];
    patient.shows(&[("own chips", "warn")], "0,1,2,3");
}

#[test]
fn a_clock_that_went_back_is_named() {
    let patient = Patient::new();
    let folder = patient.node.stage.path("state");
    fs::create_dir_all(&folder).expect("a folder");
    let file = File::create(folder.join("agent.lock")).expect("a file");
    let written = file.metadata().and_then(|file| file.modified());
    file.set_modified(written.expect("a time") + Duration::from_secs(3600))
        .expect("another time");
    patient.shows(&[("clock", "warn")], "before the last write");
}

#[test]
fn a_bad_configuration_is_bad_usage() {
    let patient = Patient::new();
    let output = patient.node.run(&["doctor", "--health-poll-ms", "1"]);
    assert_eq!(output.status.code(), Some(2));
}
