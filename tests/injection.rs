//! What a container gets, against vectors: every product, delivery and mode, and the grammar of
//! `ASCEND_VISIBLE_DEVICES`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::{BTreeMap, BTreeSet};

use ascend_agent::domain::ids::{LogicId, PhyId, VdevId};
use ascend_agent::domain::offer::Injection;
use ascend_agent::domain::product::Product;
use ascend_agent::injection::{
    Assigned, CdiContents, CdiKind, CdiSpec, DeliveryChoice, HostPaths, InjectionError,
    InjectionRequest, InstallType, NodeDelivery, VisibleDevices, VisibleDevicesError, cdi_spec,
    inject,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Cases<T> {
    cases: Vec<T>,
}

#[derive(Deserialize)]
struct InjectionCase {
    id: String,
    input: Input,
    expect: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    product: String,
    delivery: String,
    mode: String,
    devices: Vec<String>,
    #[serde(default)]
    node_devices: Vec<String>,
    #[serde(default)]
    driver_mounts: bool,
    #[serde(default)]
    adr_detected: bool,
    #[serde(default)]
    compat_env: bool,
    hccl_dir: Option<String>,
    super_pod_type: Option<u32>,
    #[serde(default)]
    host_present: BTreeSet<String>,
}

#[test]
fn every_injection_vector_holds() {
    let cases: Cases<InjectionCase> =
        serde_json::from_str(include_str!("vectors/injection.json")).expect("vectors");
    assert_eq!(cases.cases.len(), 12);
    for case in cases.cases {
        assert_eq!(answer(&case.input), case.expect, "{}", case.id);
    }
}

fn answer(input: &Input) -> Value {
    let node = NodeDelivery {
        choice: match input.delivery.as_str() {
            "auto" => DeliveryChoice::Auto,
            "adr" => DeliveryChoice::DockerRuntime,
            "devicespec" => DeliveryChoice::DeviceSpec,
            "cdi" => DeliveryChoice::Cdi,
            other => panic!("unknown delivery {other}"),
        },
        docker_runtime: input.adr_detected,
        mixed_insert: false,
        fusion_director: false,
        cdi_kind: CdiKind::default(),
        dev: "/dev".to_owned(),
        host_dev: "/dev".to_owned(),
        sysfs: "/sys".to_owned(),
        driver_mounts: input.driver_mounts.then_some(InstallType::Center),
        hccl_topo_file: None,
        compat_env: input.compat_env,
    };
    let host = HostPaths {
        present: input.host_present.clone(),
    };
    let product = product(&input.product);
    let devices = Devices::of(&input.mode, &input.devices);
    let request = InjectionRequest {
        product,
        super_pod_type: input.super_pod_type,
        assigned: devices.assigned(),
        node: &node,
        hccl_dir: input.hccl_dir.as_deref(),
    };
    let answer = match inject(&request, &host) {
        Ok(answer) => answer,
        Err(InjectionError::RequiredDeviceMissing { paths }) => {
            return json!({ "error": { "code": "required_device_missing", "paths": paths } });
        }
    };
    let mut found = as_vector(&answer);
    if node.choice == DeliveryChoice::Cdi {
        let all = Devices::of(&input.mode, &input.node_devices);
        let contents = CdiContents {
            products: [product].into(),
            chips: all.chips.iter().map(|(phy, _)| *phy).collect(),
            vnpus: all.vnpus.iter().copied().collect(),
        };
        let spec: CdiSpec = cdi_spec(&node, &contents, &host).expect("a spec");
        found["cdi_spec"] = serde_json::to_value(spec).expect("JSON");
    }
    found
}

fn as_vector(answer: &Injection) -> Value {
    let devices: Vec<Value> = answer
        .devices
        .iter()
        .map(|node| {
            json!({
                "host": node.host_path,
                "container": node.container_path,
                "permissions": node.permissions,
            })
        })
        .collect();
    let mounts: Vec<Value> = answer
        .mounts
        .iter()
        .map(|mount| {
            json!({
                "host": mount.host_path,
                "container": mount.container_path,
                "read_only": mount.read_only,
            })
        })
        .collect();
    let envs: &BTreeMap<String, String> = &answer.envs;
    json!({ "envs": envs, "devices": devices, "mounts": mounts, "cdi_devices": answer.cdi_devices })
}

struct Devices {
    chips: Vec<(PhyId, LogicId)>,
    vnpus: Vec<VdevId>,
}

impl Devices {
    /// `<name>-<phy>` is a chip, `<name>-<cores>-<vnpu>-<phy>` a vNPU.
    fn of(mode: &str, ids: &[String]) -> Self {
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let mut devices = Self {
            chips: Vec::new(),
            vnpus: Vec::new(),
        };
        for id in ids {
            let parts: Vec<&str> = id.split('-').collect();
            match (mode, parts.as_slice()) {
                ("whole", [_, phy]) => {
                    // A logic id that no vector expects anywhere.
                    let logic = LogicId(number(phy) + 1000);
                    devices.chips.push((PhyId(number(phy)), logic));
                }
                ("vnpu", [_, _, vnpu, _]) => devices.vnpus.push(VdevId(number(vnpu))),
                _ => panic!("unknown {mode} device {id}"),
            }
        }
        devices
    }

    fn assigned(&self) -> Assigned<'_> {
        if self.vnpus.is_empty() {
            Assigned::Chips(&self.chips)
        } else {
            Assigned::Vnpus(&self.vnpus)
        }
    }
}

fn product(name: &str) -> Product {
    match name {
        "310B" => Product::Ascend310B,
        "310P" => Product::Ascend310P,
        "300I-Duo" => Product::Atlas300IDuo,
        "200I-SoC-A1" => Product::Atlas200ISocA1,
        "910A" => Product::Ascend910,
        "910B" => Product::Ascend910B,
        "A5" => Product::AtlasA5,
        other => panic!("unknown product {other}"),
    }
}

#[derive(Deserialize)]
struct VisibleCase {
    value: String,
    expect: Value,
}

#[test]
fn every_visible_devices_vector_holds() {
    let cases: Cases<VisibleCase> =
        serde_json::from_str(include_str!("vectors/visible_devices.json")).expect("vectors");
    assert_eq!(cases.cases.len(), 15);
    for case in cases.cases {
        let found = match VisibleDevices::parse(&case.value) {
            Ok(VisibleDevices::None) => json!({ "none": true }),
            Ok(VisibleDevices::Ids(ids)) => json!({ "ids": ids }),
            Err(VisibleDevicesError::Mixed { .. }) => json!({ "error": "mixed" }),
            Err(VisibleDevicesError::Range { .. }) => json!({ "error": "range" }),
            Err(VisibleDevicesError::Syntax { .. }) => json!({ "error": "syntax" }),
        };
        assert_eq!(found, case.expect, "{:?}", case.value);
    }
}
