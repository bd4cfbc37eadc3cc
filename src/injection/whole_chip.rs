//! The answer for whole chips.

use std::collections::BTreeMap;

use crate::domain::family::ChipFamily;
use crate::domain::ids::{LogicId, PhyId};
use crate::domain::offer::{BindMount, DeviceNode, Injection};

use super::nodes::{CENTER_MOUNTS, HostPaths, MANAGER, UB_FOLDERS, chip_node, shared_nodes};

/// How chips reach a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Ascend Docker Runtime reads variables and mounts nodes and driver files itself.
    DockerRuntime,
    /// Kubelet passes device nodes to any runtime.
    DeviceSpec,
}

/// One container's chips.
#[derive(Clone, Debug)]
pub struct InjectionRequest<'a> {
    /// Family of the chips.
    pub family: ChipFamily,
    /// The chips; order does not matter.
    pub chips: &'a [(PhyId, LogicId)],
    /// How.
    pub delivery: Delivery,
    /// Folder of the device nodes as the agent sees it, without a slash at the end.
    pub dev: &'a str,
    /// The same folder as kubelet and the runtime see it.
    pub host_dev: &'a str,
    /// Whether the driver's files are mounted too (device nodes only).
    pub driver_mounts: bool,
    /// Value for `HCCL_TOPO_FILE_PATH`, on A5 where the driver ships such a file.
    pub hccl_topo_file: Option<&'a str>,
}

/// What a container needs and the host lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectionError {
    /// A required node is missing.
    #[error(
        "required_device_missing: {path} does not exist on the host; is the driver loaded, and is \
         the host's /dev visible to the agent?"
    )]
    RequiredDeviceMissing {
        /// The node.
        path: String,
    },
}

/// Builds the answer.
///
/// # Errors
/// When the manager node or a chip's own node is missing (device nodes only; the runtime checks for
/// itself).
pub fn inject(
    request: &InjectionRequest<'_>,
    host: &HostPaths,
) -> Result<Injection, InjectionError> {
    let mut chips = request.chips.to_vec();
    chips.sort_unstable();
    chips.dedup();
    let mut answer = Injection::default();
    if request.family == ChipFamily::Ascend950
        && let Some(path) = request.hccl_topo_file
    {
        answer
            .envs
            .insert("HCCL_TOPO_FILE_PATH".to_owned(), path.to_owned());
    }
    match request.delivery {
        Delivery::DockerRuntime => runtime_variables(request.family, &chips, &mut answer.envs),
        Delivery::DeviceSpec => {
            answer.devices = device_nodes(request, &chips, host)?;
            if request.driver_mounts {
                answer.mounts = driver_mounts(host);
            }
        }
    }
    Ok(answer)
}

fn runtime_variables(
    family: ChipFamily,
    chips: &[(PhyId, LogicId)],
    envs: &mut BTreeMap<String, String>,
) {
    let mut numbers: Vec<u32> = chips
        .iter()
        .map(|(phy, logic)| {
            if family.exports_logic_ids() {
                logic.0
            } else {
                phy.0
            }
        })
        .collect();
    numbers.sort_unstable();
    // Single numbers only: the runtime refuses ranges above 128.
    let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
    envs.insert("ASCEND_VISIBLE_DEVICES".to_owned(), list.join(","));
    envs.insert("ASCEND_RUNTIME_OPTIONS".to_owned(), String::new());
    if family == ChipFamily::Ascend310B {
        envs.insert("ASCEND_ALLOW_LINK".to_owned(), "True".to_owned());
    }
}

fn device_nodes(
    request: &InjectionRequest<'_>,
    chips: &[(PhyId, LogicId)],
    host: &HostPaths,
) -> Result<Vec<DeviceNode>, InjectionError> {
    let mut nodes = Vec::new();
    let required = |path: String| {
        if host.has(&path) {
            Ok(path)
        } else {
            Err(InjectionError::RequiredDeviceMissing { path })
        }
    };
    nodes.push(required(format!("{}/{MANAGER}", request.dev))?);
    for name in shared_nodes() {
        let path = format!("{}/{name}", request.dev);
        if host.has(&path) {
            nodes.push(path);
        }
    }
    for (phy, _) in chips {
        nodes.push(required(chip_node(request.dev, *phy))?);
    }
    if request.family == ChipFamily::Ascend950 {
        let folders = UB_FOLDERS.map(|name| format!("{}/{name}/", request.dev));
        nodes.extend(
            host.present
                .iter()
                .filter(|path| folders.iter().any(|folder| path.starts_with(folder)))
                .cloned(),
        );
    }
    Ok(nodes
        .into_iter()
        .map(|path| device_node(request, &path))
        .collect())
}

/// Inside the container the node always lies under `/dev`, whatever the host calls the folder.
fn device_node(request: &InjectionRequest<'_>, path: &str) -> DeviceNode {
    let name = path.strip_prefix(request.dev).unwrap_or(path);
    DeviceNode {
        host_path: format!("{}{name}", request.host_dev),
        container_path: format!("/dev{name}"),
        permissions: "rw".to_owned(),
    }
}

fn driver_mounts(host: &HostPaths) -> Vec<BindMount> {
    CENTER_MOUNTS
        .iter()
        .filter(|path| host.has(path))
        .map(|path| BindMount {
            host_path: (*path).to_owned(),
            container_path: (*path).to_owned(),
            read_only: true,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(
        family: ChipFamily,
        chips: &[(PhyId, LogicId)],
        delivery: Delivery,
    ) -> InjectionRequest<'_> {
        InjectionRequest {
            family,
            chips,
            delivery,
            dev: "/dev",
            host_dev: "/dev",
            driver_mounts: false,
            hccl_topo_file: None,
        }
    }

    fn host(paths: &[&str]) -> HostPaths {
        HostPaths {
            present: paths.iter().map(|path| (*path).to_owned()).collect(),
        }
    }

    fn pairs(phys: &[u32]) -> Vec<(PhyId, LogicId)> {
        phys.iter()
            .map(|phy| (PhyId(*phy), LogicId(phy + 100)))
            .collect()
    }

    fn container_paths(answer: &Injection) -> Vec<&str> {
        answer
            .devices
            .iter()
            .map(|node| node.container_path.as_str())
            .collect()
    }

    #[test]
    fn the_runtime_gets_phy_ids_in_numeric_order_and_no_nodes() {
        let chips = pairs(&[10, 2]);
        let asked = request(ChipFamily::Ascend910B, &chips, Delivery::DockerRuntime);
        let answer = inject(&asked, &HostPaths::default()).expect("nothing required");
        assert_eq!(
            answer
                .envs
                .get("ASCEND_VISIBLE_DEVICES")
                .map(String::as_str),
            Some("2,10")
        );
        assert_eq!(
            answer
                .envs
                .get("ASCEND_RUNTIME_OPTIONS")
                .map(String::as_str),
            Some("")
        );
        assert!(answer.devices.is_empty() && answer.mounts.is_empty());
    }

    #[test]
    fn the_runtime_gets_logic_ids_on_a5() {
        let chips = pairs(&[1, 0]);
        let asked = request(ChipFamily::Ascend950, &chips, Delivery::DockerRuntime);
        let answer = inject(&asked, &HostPaths::default()).expect("nothing required");
        assert_eq!(
            answer
                .envs
                .get("ASCEND_VISIBLE_DEVICES")
                .map(String::as_str),
            Some("100,101")
        );
    }

    #[test]
    fn device_nodes_come_manager_first_then_present_ones_then_chips_by_number() {
        let chips = pairs(&[1, 0]);
        let asked = request(ChipFamily::Ascend910B, &chips, Delivery::DeviceSpec);
        let present = host(&[
            "/dev/davinci_manager",
            "/dev/devmm_svm",
            "/dev/hisi_hdc",
            "/dev/davinci0",
            "/dev/davinci1",
            "/dev/davinci2",
        ]);
        let answer = inject(&asked, &present).expect("all there");
        assert_eq!(
            container_paths(&answer),
            [
                "/dev/davinci_manager",
                "/dev/devmm_svm",
                "/dev/hisi_hdc",
                "/dev/davinci0",
                "/dev/davinci1"
            ]
        );
        assert!(answer.envs.is_empty());
        assert!(answer.devices.iter().all(|node| node.permissions == "rw"));
    }

    #[test]
    fn a_missing_manager_or_chip_node_is_named() {
        let chips = pairs(&[0]);
        let asked = request(ChipFamily::Ascend310P, &chips, Delivery::DeviceSpec);
        for (present, missing) in [
            ("/dev/davinci0", "/dev/davinci_manager"),
            ("/dev/davinci_manager", "/dev/davinci0"),
        ] {
            let refused = inject(&asked, &host(&[present]));
            let path = missing.to_owned();
            assert_eq!(refused, Err(InjectionError::RequiredDeviceMissing { path }));
        }
    }

    #[test]
    fn a5_adds_ub_nodes_sorted_and_the_topology_file() {
        let chips = pairs(&[0]);
        let topo = "/usr/local/Ascend/driver/topo/950/atlas_850_1.json";
        let asked = InjectionRequest {
            hccl_topo_file: Some(topo),
            ..request(ChipFamily::Ascend950, &chips, Delivery::DeviceSpec)
        };
        let present = host(&[
            "/dev/davinci_manager",
            "/dev/davinci0",
            "/dev/ummu/tid",
            "/dev/uburma/udma1",
            "/dev/uburma/udma0",
        ]);
        let answer = inject(&asked, &present).expect("all there");
        assert_eq!(
            container_paths(&answer),
            [
                "/dev/davinci_manager",
                "/dev/davinci0",
                "/dev/uburma/udma0",
                "/dev/uburma/udma1",
                "/dev/ummu/tid"
            ]
        );
        assert_eq!(
            answer.envs.get("HCCL_TOPO_FILE_PATH").map(String::as_str),
            Some(topo)
        );
    }

    #[test]
    fn other_families_get_no_topology_file() {
        let chips = pairs(&[0]);
        let asked = InjectionRequest {
            hccl_topo_file: Some("/x.json"),
            ..request(ChipFamily::Ascend910B, &chips, Delivery::DeviceSpec)
        };
        let present = host(&["/dev/davinci_manager", "/dev/davinci0"]);
        assert!(inject(&asked, &present).expect("all there").envs.is_empty());
    }

    #[test]
    fn driver_files_are_mounted_read_only_in_order_when_present() {
        let chips = pairs(&[0]);
        let asked = InjectionRequest {
            driver_mounts: true,
            ..request(ChipFamily::Ascend910B, &chips, Delivery::DeviceSpec)
        };
        let present = host(&[
            "/dev/davinci_manager",
            "/dev/davinci0",
            "/usr/local/dcmi",
            "/usr/local/Ascend/driver/lib64",
        ]);
        let answer = inject(&asked, &present).expect("all there");
        let mounts: Vec<_> = answer
            .mounts
            .iter()
            .map(|mount| mount.host_path.as_str())
            .collect();
        assert_eq!(
            mounts,
            ["/usr/local/Ascend/driver/lib64", "/usr/local/dcmi"]
        );
        assert!(answer.mounts.iter().all(|mount| mount.read_only));
    }

    #[test]
    fn the_container_sees_dev_whatever_the_host_calls_the_folder() {
        let chips = pairs(&[0]);
        let asked = InjectionRequest {
            dev: "/host/dev",
            host_dev: "/dev",
            ..request(ChipFamily::Ascend310P, &chips, Delivery::DeviceSpec)
        };
        let present = host(&["/host/dev/davinci_manager", "/host/dev/davinci0"]);
        let answer = inject(&asked, &present).expect("all there");
        let hosts: Vec<_> = answer
            .devices
            .iter()
            .map(|node| node.host_path.as_str())
            .collect();
        assert_eq!(hosts, ["/dev/davinci_manager", "/dev/davinci0"]);
        assert_eq!(
            container_paths(&answer),
            ["/dev/davinci_manager", "/dev/davinci0"]
        );
    }
}
