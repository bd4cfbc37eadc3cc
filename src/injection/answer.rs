//! The answer to Allocate for one container.

use std::collections::BTreeMap;

use crate::domain::ids::{LogicId, PhyId, VdevId};
use crate::domain::offer::{BindMount, DeviceNode, Injection};
use crate::domain::product::Product;

use super::cdi::CdiKind;
use super::delivery::{Delivery, NodeDelivery};
use super::driver_files;
use super::host::{HostPaths, Wanted};
use super::nodes;
use super::topology_file::topology_file;

/// Where a container finds the files for HCCL.
const HCCL_FOLDER: &str = "/etc/hccl";

/// What a container was granted: chips or vNPUs, never both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned<'a> {
    /// Whole chips, or shares of them: a chip that appears twice is given once.
    Chips(&'a [(PhyId, LogicId)]),
    /// Virtual devices.
    Vnpus(&'a [VdevId]),
}

/// One container's devices.
#[derive(Clone, Copy, Debug)]
pub struct InjectionRequest<'a> {
    /// Product of the chips.
    pub product: Product,
    /// Super-pod type, where readable; A5 only.
    pub super_pod_type: Option<u32>,
    /// The devices; order does not matter.
    pub assigned: Assigned<'a>,
    /// What is the same for the whole node.
    pub node: &'a NodeDelivery,
    /// Folder on the host with rank table and topology of this container, where one was written.
    /// Given to the container only with `compat_env`, which names the variables for it.
    pub hccl_dir: Option<&'a str>,
}

/// What a container needs and the host lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectionError {
    /// Required nodes are missing.
    #[error(
        "required_device_missing: {} not exist on the host; is the driver loaded, and is the host's \
         /dev visible to the agent?",
        subject(paths)
    )]
    RequiredDeviceMissing {
        /// All of them, as the agent names them, in the order of the answer.
        paths: Vec<String>,
    },
}

fn subject(paths: &[String]) -> String {
    let verb = if paths.len() == 1 { "does" } else { "do" };
    format!("{} {verb}", paths.join(", "))
}

impl InjectionRequest<'_> {
    /// What has to be known about the host before the answer can be made.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let phys: &[(PhyId, LogicId)] = match self.assigned {
            Assigned::Chips(chips) => chips,
            Assigned::Vnpus(_) => &[],
        };
        let phys = phys.iter().map(|(phy, _)| *phy);
        let mut wanted = nodes::wanted_nodes(self.node, self.product, phys);
        if let Assigned::Vnpus(vnpus) = self.assigned {
            let paths = vnpus.iter().map(|vnpu| nodes::vnpu_path(self.node, *vnpu));
            wanted.paths.extend(paths);
        }
        wanted.extend(driver_files::wanted(self.node, self.product));
        wanted
    }
}

/// Builds the answer.
///
/// # Errors
/// When required nodes are missing, with all of them. Not with Ascend Docker Runtime, which looks for
/// itself.
pub fn inject(
    request: &InjectionRequest<'_>,
    host: &HostPaths,
) -> Result<Injection, InjectionError> {
    let node = request.node;
    let devices = Devices::of(request);
    let mut answer = Injection::default();
    match node.of(request.product) {
        Delivery::DockerRuntime => runtime_variables(request.product, &devices, &mut answer.envs),
        Delivery::DeviceSpec => {
            let mut missing = Vec::new();
            answer.devices = nodes::shared(node, request.product, host, &mut missing);
            answer
                .devices
                .extend(devices.nodes(node, host, &mut missing));
            answer
                .devices
                .extend(nodes::ub(node, request.product, host));
            none_missing(missing)?;
            answer.mounts = driver_files::mounts(node, request.product, host);
        }
        Delivery::Cdi => {
            let mut missing = Vec::new();
            nodes::shared(node, request.product, host, &mut missing);
            devices.nodes(node, host, &mut missing);
            none_missing(missing)?;
            answer.cdi_devices = devices.cdi_names(&node.cdi_kind);
        }
    }
    let shipped = topology_file(request.product, request.super_pod_type);
    if let Some(shipped) = shipped {
        let path = node.hccl_topo_file.clone().unwrap_or(shipped);
        answer.envs.insert("HCCL_TOPO_FILE_PATH".to_owned(), path);
    }
    if node.compat_env {
        add_compat(&devices, request.hccl_dir, &mut answer);
    }
    Ok(answer)
}

pub(super) fn none_missing(paths: Vec<String>) -> Result<(), InjectionError> {
    if paths.is_empty() {
        Ok(())
    } else {
        Err(InjectionError::RequiredDeviceMissing { paths })
    }
}

fn runtime_variables(product: Product, devices: &Devices, envs: &mut BTreeMap<String, String>) {
    let family = product.family();
    let (numbers, options) = match devices {
        Devices::Chips { logics, .. } if family.exports_logic_ids() => (list(logics), ""),
        Devices::Chips { phys, .. } => (list(phys), ""),
        Devices::Vnpus(vnpus) => (list(vnpus), "VIRTUAL"),
    };
    envs.insert("ASCEND_VISIBLE_DEVICES".to_owned(), numbers);
    envs.insert("ASCEND_RUNTIME_OPTIONS".to_owned(), options.to_owned());
    if product == Product::Ascend310B {
        envs.insert("ASCEND_ALLOW_LINK".to_owned(), "True".to_owned());
    }
}

fn add_compat(devices: &Devices, hccl_dir: Option<&str>, answer: &mut Injection) {
    let numbers = match devices {
        Devices::Chips { phys, .. } => list(phys),
        Devices::Vnpus(vnpus) => list(vnpus),
    };
    answer.envs.insert("NPU_DEVICE_ID".to_owned(), numbers);
    let Some(folder) = hccl_dir else { return };
    for (name, file) in [
        ("HCCL_TOPO_FILE", "topo.json"),
        ("RANK_TABLE_FILE", "hccl.json"),
    ] {
        let path = format!("{HCCL_FOLDER}/{file}");
        answer.envs.insert(name.to_owned(), path);
    }
    answer.mounts.push(BindMount {
        host_path: folder.to_owned(),
        container_path: HCCL_FOLDER.to_owned(),
        read_only: true,
    });
}

/// Single numbers only: the runtime refuses ranges above 128.
fn list<T: ToString>(numbers: &[T]) -> String {
    let texts: Vec<String> = numbers.iter().map(T::to_string).collect();
    texts.join(",")
}

/// The assigned devices, each list in numeric order, each number once.
enum Devices {
    Chips {
        phys: Vec<PhyId>,
        logics: Vec<LogicId>,
    },
    Vnpus(Vec<VdevId>),
}

impl Devices {
    fn of(request: &InjectionRequest<'_>) -> Self {
        match request.assigned {
            Assigned::Chips(chips) => Self::Chips {
                phys: sorted(chips.iter().map(|(phy, _)| *phy)),
                logics: sorted(chips.iter().map(|(_, logic)| *logic)),
            },
            Assigned::Vnpus(vnpus) => Self::Vnpus(sorted(vnpus.iter().copied())),
        }
    }

    fn nodes(
        &self,
        node: &NodeDelivery,
        host: &HostPaths,
        missing: &mut Vec<String>,
    ) -> Vec<DeviceNode> {
        match self {
            Self::Chips { phys, .. } => nodes::chips(node, phys, host, missing),
            Self::Vnpus(vnpus) => nodes::vnpus(node, vnpus, host, missing),
        }
    }

    fn cdi_names(&self, kind: &CdiKind) -> Vec<String> {
        match self {
            Self::Chips { phys, .. } => phys.iter().map(|phy| kind.chip(*phy)).collect(),
            Self::Vnpus(vnpus) => vnpus.iter().map(|vnpu| kind.vnpu(*vnpu)).collect(),
        }
    }
}

fn sorted<T: Ord>(numbers: impl Iterator<Item = T>) -> Vec<T> {
    let mut numbers: Vec<T> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::super::delivery::DeliveryChoice;
    use super::super::delivery::tests::node;
    use super::*;

    fn host(names: &[&str]) -> HostPaths {
        HostPaths {
            present: names.iter().map(|name| format!("/dev/{name}")).collect(),
        }
    }

    fn pairs(phys: &[u32]) -> Vec<(PhyId, LogicId)> {
        phys.iter()
            .map(|phy| (PhyId(*phy), LogicId(phy + 100)))
            .collect()
    }

    fn request<'a>(
        product: Product,
        chips: &'a [(PhyId, LogicId)],
        node: &'a NodeDelivery,
    ) -> InjectionRequest<'a> {
        InjectionRequest {
            product,
            super_pod_type: None,
            assigned: Assigned::Chips(chips),
            node,
            hccl_dir: None,
        }
    }

    fn names(answer: &Injection) -> Vec<&str> {
        answer
            .devices
            .iter()
            .filter_map(|node| node.container_path.strip_prefix("/dev/"))
            .collect()
    }

    #[test]
    fn the_runtime_gets_logic_ids_on_a5_and_other_plugins_names_phy_ids() {
        let chips = pairs(&[1, 0]);
        let node = NodeDelivery {
            compat_env: true,
            ..node(DeliveryChoice::DockerRuntime)
        };
        let asked = request(Product::AtlasA5, &chips, &node);
        let answer = inject(&asked, &HostPaths::default()).expect("nothing required");
        assert_eq!(answer.envs["ASCEND_VISIBLE_DEVICES"], "100,101");
        assert_eq!(answer.envs["NPU_DEVICE_ID"], "0,1");
    }

    #[test]
    fn every_missing_node_is_named() {
        let chips = pairs(&[3]);
        let node = node(DeliveryChoice::DeviceSpec);
        let asked = request(Product::Atlas200ISocA1, &chips, &node);
        let present = host(&["vpc", "vdec", "sys", "spi_smbus", "user_config", "ts_aisle"]);
        let error = inject(&asked, &present).expect_err("nodes are missing");
        let InjectionError::RequiredDeviceMissing { paths } = &error;
        let expected = [
            "davinci_manager",
            "svm0",
            "log_drv",
            "memory_bandwidth",
            "upgrade",
            "davinci3",
        ];
        assert_eq!(*paths, expected.map(|name| format!("/dev/{name}")));
        let told = error.to_string();
        assert!(
            told.contains("upgrade, /dev/davinci3 do not exist"),
            "{told}"
        );
        let missing = nodes::missing_nodes(&node, asked.product, PhyId(3), &present);
        assert_eq!(missing, *paths);
    }

    #[test]
    fn all_that_matters_about_the_host_is_asked_for() {
        let chips = pairs(&[3]);
        let vnpus = [VdevId(148)];
        let node = NodeDelivery {
            driver_mounts: Some(super::super::InstallType::Center),
            fusion_director: true,
            ..node(DeliveryChoice::DeviceSpec)
        };
        for (product, assigned, paths) in [
            (
                Product::Ascend310,
                Assigned::Chips(&chips),
                &["/dev/hi_dvpp", "/dev/davinci3", "/var/queue_schedule"][..],
            ),
            (
                Product::Ascend310B,
                Assigned::Chips(&chips),
                &["/dev/davinci_manager_docker", "/dev/hdmi"],
            ),
            (
                Product::Atlas200ISocA1,
                Assigned::Vnpus(&vnpus),
                &["/dev/user_config", "/dev/xsmem_dev", "/dev/vdavinci148"],
            ),
            (
                Product::Atlas350,
                Assigned::Chips(&chips),
                &["/sys/class/unified_bus"],
            ),
        ] {
            let asked = InjectionRequest {
                assigned,
                ..request(product, &chips, &node)
            };
            let wanted = asked.wanted();
            for path in paths {
                assert!(
                    wanted.paths.iter().any(|known| known == path),
                    "{product}: {path}"
                );
            }
            let folders: Vec<&str> = wanted.folders.iter().map(|it| it.folder.as_str()).collect();
            let expected: &[&str] = if product == Product::Atlas350 {
                &["/dev/uburma", "/dev/ummu", "/usr/lib64"]
            } else {
                &[]
            };
            assert_eq!(folders, expected, "{product}");
        }
    }

    #[test]
    fn a_310_gets_more_nodes_under_fusion_director_only() {
        let chips = pairs(&[0]);
        let present = host(&["davinci_manager", "davinci0", "upgrade", "hi_dvpp", "svm0"]);
        for (fusion_director, product, extras) in [
            (
                true,
                Product::Ascend310,
                &["hi_dvpp", "svm0", "upgrade"][..],
            ),
            (false, Product::Ascend310, &[]),
            (true, Product::Ascend310P, &[]),
        ] {
            let node = NodeDelivery {
                fusion_director,
                ..node(DeliveryChoice::DeviceSpec)
            };
            let answer = inject(&request(product, &chips, &node), &present).expect("all there");
            let expected = [&["davinci_manager"], extras, &["davinci0"]].concat();
            assert_eq!(names(&answer), expected, "{product} {fusion_director}");
        }
    }

    #[test]
    fn a_310b_without_a_manager_node_of_its_own_gets_the_plain_one() {
        let chips = pairs(&[0]);
        let node = node(DeliveryChoice::DeviceSpec);
        let asked = request(Product::Ascend310B, &chips, &node);
        let answer = inject(&asked, &host(&["davinci_manager", "davinci0"])).expect("all there");
        let hosts: Vec<&str> = answer
            .devices
            .iter()
            .map(|node| node.host_path.as_str())
            .collect();
        assert_eq!(hosts, ["/dev/davinci_manager", "/dev/davinci0"]);
        let error = inject(&asked, &host(&["davinci0"])).expect_err("no manager");
        let paths = vec!["/dev/davinci_manager".to_owned()];
        assert_eq!(error, InjectionError::RequiredDeviceMissing { paths });
    }

    #[test]
    fn a_chip_shared_twice_by_one_container_is_one_node_and_one_number() {
        let chips = pairs(&[2, 2]);
        let present = host(&["davinci_manager", "davinci2"]);
        let spec = node(DeliveryChoice::DeviceSpec);
        let answer =
            inject(&request(Product::Ascend310P, &chips, &spec), &present).expect("all there");
        assert_eq!(names(&answer), ["davinci_manager", "davinci2"]);
        let runtime = node(DeliveryChoice::DockerRuntime);
        let answer =
            inject(&request(Product::Ascend310P, &chips, &runtime), &present).expect("all there");
        assert_eq!(answer.envs["ASCEND_VISIBLE_DEVICES"], "2");
    }

    #[test]
    fn the_configured_topology_file_wins_on_a5_and_means_nothing_elsewhere() {
        let chips = pairs(&[0]);
        let present = host(&["davinci_manager", "davinci0"]);
        let node = NodeDelivery {
            hccl_topo_file: Some("/x.json".to_owned()),
            ..node(DeliveryChoice::DeviceSpec)
        };
        let on_a5 = inject(&request(Product::AtlasA5, &chips, &node), &present);
        assert_eq!(
            on_a5.expect("all there").envs["HCCL_TOPO_FILE_PATH"],
            "/x.json"
        );
        let elsewhere = inject(&request(Product::Ascend910B, &chips, &node), &present);
        assert!(elsewhere.expect("all there").envs.is_empty());
    }

    #[test]
    fn files_for_hccl_are_named_in_every_delivery_but_not_unasked() {
        let chips = pairs(&[0]);
        let present = host(&["davinci_manager", "davinci0"]);
        for choice in [
            DeliveryChoice::DockerRuntime,
            DeliveryChoice::DeviceSpec,
            DeliveryChoice::Cdi,
        ] {
            for compat_env in [true, false] {
                let node = NodeDelivery {
                    compat_env,
                    ..node(choice)
                };
                let asked = InjectionRequest {
                    hccl_dir: Some("/run/x"),
                    ..request(Product::Ascend910B, &chips, &node)
                };
                let answer = inject(&asked, &present).expect("all there");
                assert_eq!(answer.mounts.len(), usize::from(compat_env), "{choice:?}");
                assert_eq!(answer.envs.contains_key("RANK_TABLE_FILE"), compat_env);
                assert_eq!(answer.envs.contains_key("NPU_DEVICE_ID"), compat_env);
            }
        }
    }

    #[test]
    fn the_container_sees_dev_whatever_the_host_calls_the_folder() {
        let chips = pairs(&[0]);
        let node = NodeDelivery {
            dev: "/host/dev".to_owned(),
            ..node(DeliveryChoice::DeviceSpec)
        };
        let present = ["davinci_manager", "davinci0"];
        let host = HostPaths {
            present: present.map(|name| format!("/host/dev/{name}")).into(),
        };
        let asked = request(Product::Ascend310P, &chips, &node);
        let answer = inject(&asked, &host).expect("all there");
        for (node, name) in answer.devices.iter().zip(present) {
            assert_eq!(node.host_path, format!("/dev/{name}"));
            assert_eq!(node.container_path, format!("/dev/{name}"));
        }
    }
}
