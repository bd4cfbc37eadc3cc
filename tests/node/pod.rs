//! Pods as kubelet is asked to admit them, and its verdict.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::testbed::strings;

/// A pod; each part asks for chips of the node's resource, or for nothing.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    name: String,
    init: Vec<Value>,
    containers: Vec<(String, u32)>,
}

impl Pod {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            init: Vec::new(),
            containers: Vec::new(),
        }
    }

    pub(crate) fn container(mut self, name: &str, chips: u32) -> Self {
        self.containers.push((name.to_owned(), chips));
        self
    }

    pub(crate) fn init(self, name: &str, chips: u32) -> Self {
        self.before(name, chips, false)
    }

    /// An init container that keeps running beside the others.
    pub(crate) fn sidecar(self, name: &str, chips: u32) -> Self {
        self.before(name, chips, true)
    }

    fn before(mut self, name: &str, chips: u32, restartable: bool) -> Self {
        self.init
            .push(json!({ "name": name, "chips": chips, "restartable": restartable }));
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn uid(&self) -> String {
        Self::uid_of(&self.name)
    }

    pub(crate) fn uid_of(name: &str) -> String {
        format!("uid-of-{name}")
    }

    pub(crate) fn json(&self, resource: &str) -> Value {
        let limits = |chips: &Value| match chips.as_u64() {
            None | Some(0) => json!({}),
            Some(chips) => json!({ resource: chips.to_string() }),
        };
        let init: Vec<Value> = self
            .init
            .iter()
            .map(|part| {
                json!({
                    "name": part["name"],
                    "limits": limits(&part["chips"]),
                    "restartable": part["restartable"],
                })
            })
            .collect();
        let containers: Vec<Value> = self
            .containers
            .iter()
            .map(|(name, chips)| json!({ "name": name, "limits": limits(&json!(chips)) }))
            .collect();
        json!({
            "name": self.name, "namespace": "default", "uid": self.uid(),
            "init_containers": init, "containers": containers,
        })
    }

    /// As a started kubelet is told of it.
    pub(crate) fn running(&self, resource: &str) -> Value {
        let mut pod = self.json(resource);
        pod["running"] = json!(true);
        pod
    }
}

/// A pod with one container.
pub(crate) fn pod(name: &str, chips: u32) -> Pod {
    Pod::new(name).container("main", chips)
}

/// What kubelet decided on a pod.
#[derive(Debug)]
pub(crate) struct Verdict(pub(crate) Value);

impl Verdict {
    pub(crate) fn is_admitted(&self) -> bool {
        self.0["admitted"] == true
    }

    pub(crate) fn reason(&self) -> &str {
        self.0["reason"].as_str().unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.0["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn admission_us(&self) -> u64 {
        self.0["admission_us"].as_u64().expect("a number")
    }

    /// Every id of the pod, sorted.
    pub(crate) fn ids(&self) -> Vec<String> {
        let containers = self.0["containers"].as_array().expect("containers");
        let mut ids: Vec<String> = containers.iter().flat_map(ids_of).collect();
        ids.sort();
        ids
    }

    pub(crate) fn container(&self, name: &str) -> Container {
        let containers = self.0["containers"].as_array().expect("containers");
        let found = containers
            .iter()
            .find(|container| container["name"] == name);
        Container(found.expect("the container").clone())
    }
}

/// What one container would be made with.
#[derive(Debug)]
pub(crate) struct Container(Value);

impl Container {
    pub(crate) fn ids(&self) -> Vec<String> {
        ids_of(&self.0)
    }

    /// Names of the chips' nodes in the container.
    pub(crate) fn chips(&self) -> Vec<String> {
        let mut chips: Vec<String> = self
            .nodes()
            .into_iter()
            .filter_map(|node| node.strip_prefix("/dev/davinci").map(str::to_owned))
            .filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        chips.sort();
        chips
    }

    /// Paths of the nodes in the container, in order.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let nodes = self.0["devices"].as_array().expect("devices");
        nodes
            .iter()
            .filter_map(|node| node["container"].as_str().map(str::to_owned))
            .collect()
    }

    pub(crate) fn envs(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.0["envs"].clone()).expect("variables")
    }

    pub(crate) fn json(&self) -> &Value {
        &self.0
    }
}

fn ids_of(container: &Value) -> Vec<String> {
    let resources = container["device_ids"].as_object().expect("ids");
    let mut ids: Vec<String> = resources.values().flat_map(strings).collect();
    ids.sort();
    ids
}

/// Numbers at the end of ids, sorted as texts like the names of nodes are.
pub(crate) fn numbers_of(ids: &[String]) -> Vec<String> {
    let mut numbers: Vec<String> = ids
        .iter()
        .filter_map(|id| id.rsplit('-').next().map(str::to_owned))
        .collect();
    numbers.sort();
    numbers
}
