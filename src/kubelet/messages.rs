//! Between kubelet's messages and the domain's nouns.

use std::collections::BTreeSet;

use super::api::deviceplugin as wire;
use crate::domain::ids::PluginDeviceId;
use crate::domain::offer::{Injection, InvalidRequest, OfferedDevice};

/// The only version of the API that kubelet accepts.
pub(super) const API_VERSION: &str = "v1beta1";

/// Most container requests in one call; kubelet sends one.
const CONTAINERS_MAX: usize = 300_000;

/// Most ids in one container request of Allocate.
const DEVICES_MAX: usize = 800;

const HEALTHY: &str = "Healthy";
const UNHEALTHY: &str = "Unhealthy";

/// What kubelet is told to call, at registration and on request alike. Whole chips need nothing
/// before a container starts, and a PreStartContainer would tie container restarts to the agent.
pub(super) fn options() -> wire::DevicePluginOptions {
    wire::DevicePluginOptions {
        pre_start_required: false,
        get_preferred_allocation_available: true,
    }
}

/// A complete list, sorted and unique by id.
pub(super) fn list(devices: &[OfferedDevice]) -> wire::ListAndWatchResponse {
    let mut devices: Vec<&OfferedDevice> = devices.iter().collect();
    devices.sort_by(|one, other| one.id.cmp(&other.id));
    devices.dedup_by(|one, other| one.id == other.id);
    wire::ListAndWatchResponse {
        devices: devices.into_iter().map(device).collect(),
    }
}

fn device(device: &OfferedDevice) -> wire::Device {
    let nodes: Vec<wire::NumaNode> = device
        .numa_nodes
        .iter()
        .map(|node| wire::NumaNode {
            id: i64::from(*node),
        })
        .collect();
    wire::Device {
        id: device.id.as_str().to_owned(),
        health: if device.healthy { HEALTHY } else { UNHEALTHY }.to_owned(),
        topology: (!nodes.is_empty()).then_some(wire::TopologyInfo { nodes }),
    }
}

/// The ids of each container request, checked.
pub(super) fn requested(
    request: wire::AllocateRequest,
) -> Result<Vec<Vec<PluginDeviceId>>, InvalidRequest> {
    check_containers(request.container_requests.len())?;
    request
        .container_requests
        .into_iter()
        .map(|container| container_ids(container.device_ids))
        .collect()
}

fn container_ids(ids: Vec<String>) -> Result<Vec<PluginDeviceId>, InvalidRequest> {
    if ids.is_empty() {
        return Err(InvalidRequest::NoDevices);
    }
    if ids.len() > DEVICES_MAX {
        return Err(InvalidRequest::TooManyDevices { count: ids.len() });
    }
    let ids = checked_ids(ids)?;
    let mut known = BTreeSet::new();
    match ids.iter().find(|id| !known.insert(*id)) {
        Some(id) => Err(InvalidRequest::Duplicate { id: id.clone() }),
        None => Ok(ids),
    }
}

/// One container's question for preferred devices.
#[derive(Debug)]
pub(super) struct Preference {
    pub(super) available: Vec<PluginDeviceId>,
    pub(super) must_include: Vec<PluginDeviceId>,
    pub(super) size: usize,
}

/// The questions of each container request, checked. The available ids may be as many as the node
/// offers; a size below zero asks for nothing.
pub(super) fn preferences(
    request: wire::PreferredAllocationRequest,
) -> Result<Vec<Preference>, InvalidRequest> {
    check_containers(request.container_requests.len())?;
    request
        .container_requests
        .into_iter()
        .map(|container| {
            Ok(Preference {
                available: checked_ids(container.available_device_ids)?,
                must_include: checked_ids(container.must_include_device_ids)?,
                size: usize::try_from(container.allocation_size).unwrap_or(0),
            })
        })
        .collect()
}

fn check_containers(count: usize) -> Result<(), InvalidRequest> {
    match count {
        0 => Err(InvalidRequest::NoContainer),
        1..=CONTAINERS_MAX => Ok(()),
        _ => Err(InvalidRequest::TooManyContainers { count }),
    }
}

fn checked_ids(ids: Vec<String>) -> Result<Vec<PluginDeviceId>, InvalidRequest> {
    ids.into_iter()
        .map(|id| {
            let bytes = id.len();
            PluginDeviceId::new(id).map_err(|_| InvalidRequest::DeviceNameLength { bytes })
        })
        .collect()
}

/// What one container gets.
pub(super) fn container_answer(injection: Injection) -> wire::ContainerAllocateResponse {
    wire::ContainerAllocateResponse {
        envs: injection.envs.into_iter().collect(),
        mounts: injection
            .mounts
            .into_iter()
            .map(|mount| wire::Mount {
                container_path: mount.container_path,
                host_path: mount.host_path,
                read_only: mount.read_only,
            })
            .collect(),
        devices: injection
            .devices
            .into_iter()
            .map(|node| wire::DeviceSpec {
                container_path: node.container_path,
                host_path: node.host_path,
                permissions: node.permissions,
            })
            .collect(),
        annotations: std::iter::empty().collect(),
        cdi_devices: injection
            .cdi_devices
            .into_iter()
            .map(|name| wire::CdiDevice { name })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(containers: Vec<Vec<String>>) -> wire::AllocateRequest {
        wire::AllocateRequest {
            container_requests: containers
                .into_iter()
                .map(|device_ids| wire::ContainerAllocateRequest { device_ids })
                .collect(),
        }
    }

    fn offered(id: &str, healthy: bool, numa: &[u32]) -> OfferedDevice {
        OfferedDevice {
            id: PluginDeviceId::new(id).unwrap(),
            healthy,
            numa_nodes: numa.iter().copied().collect(),
            reason: String::new(),
        }
    }

    #[test]
    fn c_09_a_list_is_sorted_and_unique() {
        let list = list(&[
            offered("b", true, &[]),
            offered("a", false, &[0]),
            offered("b", true, &[]),
        ]);
        let ids: Vec<&str> = list
            .devices
            .iter()
            .map(|device| device.id.as_str())
            .collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(list.devices[0].health, "Unhealthy");
        assert_eq!(list.devices[1].health, "Healthy");
    }

    #[test]
    fn c_24_topology_is_sent_only_where_a_numa_node_is_known() {
        let list = list(&[offered("a", true, &[0, 1]), offered("b", true, &[])]);
        let nodes = &list.devices[0].topology.as_ref().unwrap().nodes;
        assert_eq!(nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(list.devices[1].topology, None);
    }

    #[test]
    fn refuses_every_malformed_request_by_its_own_name() {
        let many = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let id = PluginDeviceId::new("a").unwrap();
        let cases = [
            (vec![], InvalidRequest::NoContainer),
            (vec![vec![]], InvalidRequest::NoDevices),
            (
                vec![many(801)],
                InvalidRequest::TooManyDevices { count: 801 },
            ),
            (
                vec![vec![String::new()]],
                InvalidRequest::DeviceNameLength { bytes: 0 },
            ),
            (
                vec![vec!["x".repeat(64)]],
                InvalidRequest::DeviceNameLength { bytes: 64 },
            ),
            (
                vec![vec!["a".into(), "a".into()]],
                InvalidRequest::Duplicate { id },
            ),
            (
                vec![vec![]; 300_001],
                InvalidRequest::TooManyContainers { count: 300_001 },
            ),
        ];
        for (containers, error) in cases {
            assert_eq!(requested(request(containers)), Err(error));
        }
        assert_eq!(
            requested(request(vec![many(800), many(1)])).map(|ids| ids.len()),
            Ok(2)
        );
    }
}
