//! Kubelet's `kubelet_internal_checkpoint`: a pure parser. Unknown fields are skipped, entries of
//! other resources are not looked into, but one unreadable entry of ours makes the whole file unread:
//! a view that may miss a holder proves nothing. The checksum is made from a Go-specific dump and
//! cannot be checked here; kubelet replaces the file by rename, so it is never half written.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde::Deserialize;

use super::api::deviceplugin::ContainerAllocateResponse;
use crate::domain::ids::{IdError, PhyId, PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{CheckpointEntry, RecordScope};

/// Largest file read; a full node's is well below 1 MiB.
pub const CHECKPOINT_MAX_BYTES: usize = 16 << 20;

const VISIBLE_DEVICES: &str = "ASCEND_VISIBLE_DEVICES";

/// Why the file cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Larger than anything kubelet writes.
    #[error("{bytes} bytes are more than the limit of {CHECKPOINT_MAX_BYTES}")]
    TooLarge {
        /// Its size, as far as read.
        bytes: usize,
    },
    /// Not the JSON that kubelet writes.
    #[error("not the form kubelet writes")]
    Form(#[from] serde_json::Error),
    /// A name or id of ours breaks the rules.
    #[error("entry {entry} of our domain cannot be read")]
    Entry {
        /// Its place in the file.
        entry: usize,
        /// The rule.
        #[source]
        source: IdError,
    },
    /// The ids of an entry of ours have an unknown shape.
    #[error("entry {entry} of our domain has ids of an unknown form")]
    DeviceIds {
        /// Its place in the file.
        entry: usize,
        /// What did not fit.
        #[source]
        source: serde_json::Error,
    },
}

impl CheckpointError {
    /// Whether a later try may succeed: kubelet writes the file anew with every change.
    #[must_use]
    pub fn retryable(&self) -> bool {
        true
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    /// `null` when there is none; a missing key is another format.
    #[serde(deserialize_with = "Option::deserialize")]
    pod_device_entries: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "PodUID")]
    pod_uid: String,
    #[serde(rename = "ContainerName")]
    container: String,
    #[serde(rename = "ResourceName")]
    resource: String,
    #[serde(rename = "DeviceIDs", default)]
    device_ids: serde_json::Value,
    #[serde(rename = "AllocResp", default)]
    answer: Option<String>,
}

/// Ids by NUMA node since Kubernetes 1.20, a flat list before.
#[derive(Deserialize)]
#[serde(untagged)]
enum DeviceIds {
    ByNode(BTreeMap<String, Option<Vec<String>>>),
    Flat(Vec<String>),
}

/// CDI names of this agent, unless another kind is configured.
const CHIP_KIND: &str = "huawei.com/npu=";

/// Reads the entries of the resources of `scope`, and those of any resource whose cached answer gives
/// chips: a resource that was renamed while a container of its old name runs is known from there alone
/// when the store is lost.
///
/// # Errors
/// When the bytes are not a checkpoint file, or an entry of the scope cannot be understood.
pub fn parse_checkpoint(
    bytes: &[u8],
    scope: &RecordScope,
) -> Result<Vec<CheckpointEntry>, CheckpointError> {
    if bytes.len() > CHECKPOINT_MAX_BYTES {
        let bytes = bytes.len();
        return Err(CheckpointError::TooLarge { bytes });
    }
    let file: File = serde_json::from_slice(bytes)?;
    let entries = file.data.pod_device_entries.unwrap_or_default();
    entries
        .into_iter()
        .enumerate()
        .filter(|(_, entry)| scope.covers(&entry.resource) || entry.gives_chips())
        .map(|(place, entry)| entry.read(place))
        .collect()
}

impl Entry {
    fn gives_chips(&self) -> bool {
        let answer = self.answer.as_deref().and_then(decode_answer);
        answer.is_some_and(|answer| {
            let mut nodes = answer.devices.iter();
            let mut names = answer.cdi_devices.iter();
            nodes.any(|node| davinci_number(&node.host_path).is_some())
                || names.any(|device| device.name.starts_with(CHIP_KIND))
                || answer.envs.contains_key(VISIBLE_DEVICES)
        })
    }

    fn read(self, entry: usize) -> Result<CheckpointEntry, CheckpointError> {
        let rule = |source| CheckpointError::Entry { entry, source };
        let resource = ResourceName::new(self.resource).map_err(rule)?;
        let device_ids = serde_json::from_value::<DeviceIds>(self.device_ids)
            .map_err(|source| CheckpointError::DeviceIds { entry, source })?;
        // An id on several NUMA nodes stands under each.
        let ids = match device_ids {
            DeviceIds::ByNode(nodes) => nodes.into_values().flatten().flatten().collect(),
            DeviceIds::Flat(ids) => ids,
        }
        .into_iter()
        .map(PluginDeviceId::new)
        .collect::<Result<BTreeSet<_>, _>>()
        .map_err(rule)?;
        let answer = self.answer.as_deref().and_then(decode_answer);
        let (device_nodes, visible_devices) = answer.map_or_else(Default::default, |mut answer| {
            let nodes = answer.devices.iter();
            let names = answer.cdi_devices.iter();
            (
                nodes
                    .filter_map(|node| davinci_number(&node.host_path))
                    .chain(names.filter_map(|device| cdi_number(&device.name)))
                    .collect(),
                answer.envs.remove(VISIBLE_DEVICES),
            )
        });
        Ok(CheckpointEntry {
            pod_uid: self.pod_uid,
            container: self.container,
            resource,
            ids,
            device_nodes,
            visible_devices,
        })
    }
}

fn decode_answer(text: &str) -> Option<ContainerAllocateResponse> {
    let bytes = STANDARD.decode(text).ok()?;
    ContainerAllocateResponse::decode(bytes.as_slice()).ok()
}

/// The N of `<any directory>/davinciN`; `davinci_manager` and `vdavinciN` are not chips.
fn davinci_number(host_path: &str) -> Option<PhyId> {
    let (_, name) = host_path.rsplit_once('/')?;
    chip_number(name.strip_prefix("davinci")?)
}

/// The N of `<any kind>=N`; the name of a vNPU is no number.
fn cdi_number(name: &str) -> Option<PhyId> {
    let (_, device) = name.split_once('=')?;
    chip_number(device)
}

fn chip_number(digits: &str) -> Option<PhyId> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(PhyId)
}

#[cfg(test)]
mod tests {
    use super::super::api::deviceplugin::{CdiDevice, DeviceSpec};
    use super::*;

    fn answer(nodes: &[&str], visible: Option<&str>) -> String {
        let devices = nodes
            .iter()
            .map(|node| DeviceSpec {
                container_path: (*node).to_owned(),
                host_path: (*node).to_owned(),
                permissions: "rw".to_owned(),
            })
            .collect();
        let envs = visible
            .map(|value| (VISIBLE_DEVICES.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        let response = ContainerAllocateResponse {
            envs,
            devices,
            ..ContainerAllocateResponse::default()
        };
        STANDARD.encode(response.encode_to_vec())
    }

    fn file(resource: &str, ids: &str, answer: &str) -> String {
        format!(
            r#"{{"Data":{{"PodDeviceEntries":[{{"PodUID":"u1","ContainerName":"main",
            "ResourceName":"{resource}","DeviceIDs":{ids},"AllocResp":"{answer}","New":[1]}}],
            "RegisteredDevices":{{"{resource}":["Ascend910-0"]}}}},"Checksum":42}}"#
        )
    }

    fn parse(text: &str) -> Result<Vec<CheckpointEntry>, CheckpointError> {
        parse_checkpoint(text.as_bytes(), &RecordScope::domain("huawei.com"))
    }

    #[test]
    fn reads_ids_by_numa_node_once_each_and_the_nodes_of_the_cached_answer() {
        let cached = answer(
            &[
                "/dev/davinci3",
                "/sim/dev/davinci12",
                "/dev/davinci_manager",
                "/dev/vdavinci7",
            ],
            None,
        );
        let ids = r#"{"0":["Ascend910-3","Ascend910-12"],"1":["Ascend910-3"],"-1":null}"#;
        let entries = parse(&file("huawei.com/Ascend910", ids, &cached)).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].pod_uid, "u1");
        assert_eq!(entries[0].ids.len(), 2);
        assert_eq!(
            entries[0].device_nodes,
            BTreeSet::from([PhyId(3), PhyId(12)])
        );
        assert_eq!(entries[0].visible_devices, None);
    }

    #[test]
    fn reads_the_chips_of_a_cached_answer_with_cdi_names() {
        let names = ["huawei.com/npu=3", "x/y=12", "huawei.com/npu=vnpu7", "z"];
        let response = ContainerAllocateResponse {
            cdi_devices: names
                .map(|name| CdiDevice {
                    name: name.to_owned(),
                })
                .into(),
            ..ContainerAllocateResponse::default()
        };
        let cached = STANDARD.encode(response.encode_to_vec());
        let entries = parse(&file("huawei.com/Ascend910", r#"["Ascend910-3"]"#, &cached)).unwrap();
        assert_eq!(
            entries[0].device_nodes,
            BTreeSet::from([PhyId(3), PhyId(12)])
        );
    }

    #[test]
    fn reads_a_flat_list_and_the_visible_devices() {
        let cached = answer(&[], Some("0,3"));
        let entries = parse(&file("huawei.com/Ascend910", r#"["Ascend910-0"]"#, &cached)).unwrap();
        assert_eq!(entries[0].ids.len(), 1);
        assert_eq!(entries[0].visible_devices.as_deref(), Some("0,3"));
    }

    #[test]
    fn an_unreadable_cached_answer_leaves_the_holder_in_the_view() {
        for cached in ["", "%%%", "/////w=="] {
            let text = file("huawei.com/Ascend910", r#"["Ascend910-0"]"#, cached);
            let entries = parse(&text).unwrap();
            assert_eq!(
                (entries.len(), entries[0].device_nodes.len()),
                (1, 0),
                "{cached}"
            );
        }
    }

    #[test]
    fn entries_of_other_domains_are_left_out_whatever_they_hold() {
        for resource in ["nvidia.com/gpu", "huawei.com.evil/x", "huawei.community/x"] {
            assert_eq!(
                parse(&file(resource, "7", "")).unwrap().len(),
                0,
                "{resource}"
            );
        }
    }

    #[test]
    fn entries_of_any_domain_that_give_chips_are_read() {
        let gives = [
            (answer(&["/dev/davinci3"], None), 1),
            (answer(&[], Some("3")), 1),
            (answer(&["/dev/davinci_manager", "/dev/vdavinci3"], None), 0),
            (answer(&["/dev/nvidia3"], None), 0),
        ];
        for (cached, count) in gives {
            let entries = parse(&file("example.com/npu", r#"["acme-3"]"#, &cached)).unwrap();
            assert_eq!(entries.len(), count, "{entries:?}");
        }
    }

    #[test]
    fn an_entry_of_ours_that_cannot_be_read_is_an_error() {
        let long = format!("[\"{}\"]", "x".repeat(64));
        for ids in ["7", "null", r#"{"0":"a"}"#, r#"[""]"#, &long] {
            assert!(
                parse(&file("huawei.com/Ascend910", ids, "")).is_err(),
                "{ids}"
            );
        }
        assert!(parse(&file("huawei.com/a b", "[]", "")).is_err());
    }

    #[test]
    fn no_entries_is_an_empty_view_and_anything_else_is_an_error() {
        let none = r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}"#;
        assert_eq!(parse(none).unwrap().len(), 0);
        for text in [
            "",
            "{}",
            "[]",
            r#"{"Data":null}"#,
            r#"{"Data":{}}"#,
            r#"{"Data":{"PodDev"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn refuses_a_file_above_the_limit() {
        let bytes = vec![b' '; CHECKPOINT_MAX_BYTES + 1];
        let read = parse_checkpoint(&bytes, &RecordScope::domain("huawei.com"));
        assert!(matches!(read, Err(CheckpointError::TooLarge { .. })));
    }

    proptest::proptest! {
        #[test]
        fn cut_and_flipped_files_never_panic(cut in 0_usize..400, place in 0_usize..400, bits: u8) {
            let ids = r#"{"0":["Ascend910-3"]}"#;
            let text = file("huawei.com/Ascend910", ids, &answer(&["/dev/davinci3"], Some("3")));
            let mut bytes = text.into_bytes();
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= bits;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _read = parse_checkpoint(&bytes, &RecordScope::domain("huawei.com"));
        }
    }
}
