//! The files of `deploy/`, read as the cluster and systemd read them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const DAEMON_SET: &str = include_str!("../../deploy/daemonset.yaml");
const SERVICE: &str = include_str!("../../deploy/ascend-agent.service");
const IMAGE: &str = include_str!("../../deploy/Dockerfile");

/// Keys whose values are paths that a container must be given.
const PATHS: [&str; 6] = [
    "state_dir",
    "admin_socket",
    "device_plugin_dir",
    "pod_resources_socket",
    "dev_dir",
    "log_file",
];

fn daemon_set() -> Value {
    serde_saphyr::from_str(DAEMON_SET).expect("one object")
}

fn pod() -> Value {
    daemon_set()["spec"]["template"]["spec"].clone()
}

fn container() -> Value {
    let containers = &pod()["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    containers[0].clone()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    let found = value[key].as_str();
    found.unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Program and arguments of the container.
fn words(container: &Value) -> Vec<String> {
    ["command", "args"]
        .into_iter()
        .flat_map(|key| list(container, key))
        .map(|word| word.as_str().expect("a word").to_owned())
        .collect()
}

/// The container's own variables, and nothing of this process.
fn variables(container: &Value) -> BTreeMap<String, String> {
    list(container, "env")
        .iter()
        .map(|set| (text(set, "name").to_owned(), text(set, "value").to_owned()))
        .collect()
}

/// Runs `config WHAT` with what follows `run` in the words given.
fn config(what: &[&str], words: &[String], variables: &BTreeMap<String, String>) -> Output {
    let [_, run, flags @ ..] = words else {
        panic!("not a program and a command: {words:?}");
    };
    assert_eq!(run, "run");
    Command::new(env!("CARGO_BIN_EXE_ascend-agent"))
        .arg("config")
        .args(what)
        .args(flags)
        .env_clear()
        .envs(variables)
        .output()
        .expect("the program")
}

/// Lines `KEY=VALUE` of the unit.
fn settings(key: &str) -> Vec<&'static str> {
    SERVICE
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .collect()
}

#[test]
fn the_daemon_sets_command_and_variables_are_a_valid_configuration() {
    let container = container();
    let (mut words, variables) = (words(&container), variables(&container));
    let checked = config(&["check"], &words, &variables);
    assert!(checked.status.success(), "{checked:?}");
    words.push("--no-such-flag".to_owned());
    assert_eq!(
        config(&["check"], &words, &variables).status.code(),
        Some(2)
    );
}

#[test]
fn every_path_the_agent_uses_is_a_mount_of_the_host() {
    let (pod, container) = (pod(), container());
    let host: BTreeMap<&str, &str> = list(&pod, "volumes")
        .iter()
        .filter_map(|volume| {
            Some((
                volume["name"].as_str()?,
                volume["hostPath"]["path"].as_str()?,
            ))
        })
        .collect();
    let mounts: BTreeMap<&str, &str> = list(&container, "volumeMounts")
        .iter()
        .map(|mount| (text(mount, "mountPath"), text(mount, "name")))
        .collect();
    let shown = config(
        &["show", "-o", "json"],
        &words(&container),
        &variables(&container),
    );
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let driver = "/usr/local/Ascend/driver/lib64";
    let used = PATHS
        .iter()
        .map(|key| text(&shown[*key], "value"))
        .chain([driver]);
    for path in used {
        let folder = Path::new(path)
            .ancestors()
            .find_map(|folder| mounts.get_key_value(folder.to_str()?));
        let (folder, volume) = folder.unwrap_or_else(|| panic!("{path} is not mounted"));
        let on_host = host.get(volume);
        assert_eq!(on_host, Some(folder), "{path} is elsewhere on the host");
    }
    let library_path = &variables(&container)["LD_LIBRARY_PATH"];
    assert!(library_path.split(':').any(|folder| folder == driver));
}

#[test]
fn what_the_agent_only_reads_is_mounted_read_only_and_what_it_writes_is_not() {
    let container = container();
    for (name, read_only) in [
        ("driver", true),
        ("pod-resources", true),
        ("state", false),
        ("device-plugins", false),
        ("admin", false),
        ("dev", false),
        ("log", false),
    ] {
        let mount = list(&container, "volumeMounts")
            .iter()
            .find(|mount| mount["name"] == name);
        let mount = mount.unwrap_or_else(|| panic!("no mount {name}"));
        assert_eq!(mount["readOnly"] == true, read_only, "{name}");
    }
}

#[test]
fn the_pod_has_the_rights_it_needs_and_no_access_to_the_cluster() {
    let (set, pod, container) = (daemon_set(), pod(), container());
    assert_eq!(set["kind"], "DaemonSet");
    assert_eq!(container["securityContext"]["privileged"], true);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(
        pod["hostPID"], true,
        "the driver names processes as the host does"
    );
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod.get("serviceAccountName"), None);
    assert_eq!(pod.get("hostNetwork"), None);
    let update = &set["spec"]["updateStrategy"]["rollingUpdate"];
    assert_eq!(update["maxSurge"], 0, "two agents never run side by side");
}

#[test]
fn kubelets_probes_ask_the_health_server_that_is_switched_on() {
    let (container, ports) = (container(), container()["ports"].clone());
    let address = &variables(&container)["ASCEND_AGENT_HEALTH_ADDRESS"];
    let port = address.strip_prefix(':').expect("all addresses");
    assert_eq!(ports[0]["containerPort"].to_string(), port);
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["path"], path);
        assert_eq!(asked["port"], ports[0]["name"]);
    }
}

#[test]
fn image_daemon_set_and_unit_name_the_same_program() {
    let program = words(&container()).swap_remove(0);
    assert!(
        IMAGE.contains(&format!("/ascend-agent {program}\n")),
        "the image has no {program}"
    );
    assert!(IMAGE.contains(&format!("ENTRYPOINT [\"{program}\"]\n")));
    let started = settings("ExecStart");
    assert_eq!(started.len(), 1);
    assert!(started[0].starts_with(&format!("{program} run")));
    let image = container();
    let tag = text(&image, "image");
    assert!(IMAGE.contains(&format!("-t {tag} ")), "{tag}");
    assert!(tag.ends_with(env!("CARGO_PKG_VERSION")), "{tag}");
}

#[test]
fn the_image_has_the_names_that_manifests_of_the_vendors_plugin_start() {
    for name in [
        "/usr/bin/device-plugin",
        "/usr/local/bin/device-plugin",
        "/usr/local/bin/ascend-device-plugin",
    ] {
        let link = format!("/usr/bin/ascend-agent {name}");
        let found = IMAGE
            .lines()
            .filter_map(|line| line.split_once("ln -s "))
            .any(|(_, rest)| rest.trim_end_matches([' ', '\\']) == link);
        assert!(found, "the image has no {name}");
    }
}

/// The manifest with everything optional in it: such lines begin with `#` and no space.
fn daemon_set_with_options() -> Value {
    let lines: Vec<String> = DAEMON_SET
        .lines()
        .map(|line| {
            let text = line.trim_start();
            match text.strip_prefix('#') {
                Some(rest) if rest.starts_with("- ") || rest.starts_with("  ") => {
                    format!("{}{rest}", &line[..line.len() - text.len()])
                }
                _ => line.to_owned(),
            }
        })
        .collect();
    serde_saphyr::from_str(&lines.join("\n")).expect("one object")
}

#[test]
fn the_optional_lines_of_the_daemon_set_are_valid_and_each_mount_has_its_volume() {
    let set = daemon_set_with_options();
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let names = |value: &Value, key: &str| -> Vec<String> {
        let mut names: Vec<String> = list(value, key)
            .iter()
            .map(|entry| text(entry, "name").to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    let mounts = names(container, "volumeMounts");
    assert_eq!(mounts, names(pod, "volumes"));
    for optional in ["config", "names", "cdi", "dcmi", "host"] {
        assert!(mounts.iter().any(|name| name == optional), "{optional}");
    }
    let checked = config(&["check"], &words(container), &variables(container));
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn the_units_command_and_variables_are_a_valid_configuration() {
    let words: Vec<String> = settings("ExecStart")[0]
        .split(' ')
        .map(str::to_owned)
        .collect();
    let variables = settings("Environment")
        .into_iter()
        .map(|line| line.split_once('=').expect("NAME=VALUE"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let checked = config(&["check"], &words, &variables);
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(settings("StateDirectory"), ["ascend"]);
    assert_eq!(settings("RuntimeDirectory"), ["ascend"]);
}
