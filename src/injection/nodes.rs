//! Device nodes, per product. Source: the vendor's plugin and runtime.

use crate::domain::family::ChipFamily;
use crate::domain::ids::{PhyId, VdevId};
use crate::domain::offer::DeviceNode;
use crate::domain::product::Product;

use super::delivery::NodeDelivery;
use super::host::{FolderLook, HostPaths, Wanted};

/// Node that every container needs; without it no chip works.
const MANAGER: &str = "davinci_manager";

/// The manager node that a 310B host keeps for containers.
const MANAGER_FOR_CONTAINERS: &str = "davinci_manager_docker";

/// Nodes given when present, in the order of the answer.
const SHARED: [&str; 3] = ["devmm_svm", "hisi_hdc", "dvpp_cmdlist"];

/// Given when present to containers with a 310 under `FusionDirector`.
const FUSION_DIRECTOR: [&str; 7] = [
    "event_sched",
    "hi_dvpp",
    "log_drv",
    "memory_bandwidth",
    "svm0",
    "ts_aisle",
    "upgrade",
];

/// Needed by containers on Atlas 200I `SoC` A1.
const SOC_A1_REQUIRED: [&str; 10] = [
    "vpc",
    "vdec",
    "sys",
    "spi_smbus",
    "user_config",
    "ts_aisle",
    "svm0",
    "log_drv",
    "memory_bandwidth",
    "upgrade",
];

/// Given when present on Atlas 200I `SoC` A1.
const SOC_A1_OPTIONAL: [&str; 2] = ["event_sched", "xsmem_dev"];

/// Given when present to containers with a 310B.
const ASCEND310B: [&str; 14] = [
    "pngd", "venc", "upgrade", "sys", "svm0", "vdec", "vpc", "ts_aisle", "log_drv", "acodec", "ai",
    "ao", "vo", "hdmi",
];

/// Folders on A5 whose files all go into the container.
const UB_FOLDERS: [&str; 2] = ["uburma", "ummu"];

/// The device nodes whose presence matters for containers with chips of this product.
#[must_use]
pub fn wanted_nodes(
    node: &NodeDelivery,
    product: Product,
    phys: impl IntoIterator<Item = PhyId>,
) -> Wanted {
    let rules = Rules::of(node, product);
    let dev = &node.dev;
    let mut paths: Vec<String> = [MANAGER, MANAGER_FOR_CONTAINERS]
        .iter()
        .chain(&SHARED)
        .chain(rules.required)
        .chain(rules.optional)
        .map(|name| format!("{dev}/{name}"))
        .collect();
    paths.extend(phys.into_iter().map(|phy| format!("{dev}/davinci{phy}")));
    let folders = if rules.ub {
        UB_FOLDERS
            .iter()
            .map(|name| FolderLook {
                folder: format!("{dev}/{name}"),
                prefixes: vec![""],
            })
            .collect()
    } else {
        Vec::new()
    };
    Wanted { paths, folders }
}

/// The nodes that a container with this chip needs and the host lacks, in the order of the answer.
#[must_use]
pub fn missing_nodes(
    node: &NodeDelivery,
    product: Product,
    phy: PhyId,
    host: &HostPaths,
) -> Vec<String> {
    let mut missing = Vec::new();
    shared(node, product, host, &mut missing);
    chips(node, &[phy], host, &mut missing);
    missing
}

/// Path of a vNPU's node as the agent sees it.
pub(super) fn vnpu_path(node: &NodeDelivery, vnpu: VdevId) -> String {
    format!("{}/vdavinci{vnpu}", node.dev)
}

/// The nodes that do not depend on which chips a container has, without those of the UB. What is
/// required and absent goes into `missing`.
pub(super) fn shared(
    node: &NodeDelivery,
    product: Product,
    host: &HostPaths,
    missing: &mut Vec<String>,
) -> Vec<DeviceNode> {
    let rules = Rules::of(node, product);
    let mut nodes = Vec::new();
    let optional = |nodes: &mut Vec<DeviceNode>, names: &[&str]| {
        let present = names.iter().filter(|name| {
            let path = format!("{}/{name}", node.dev);
            host.has(&path)
        });
        nodes.extend(present.map(|name| renamed(node, name, name)));
    };
    let for_containers = format!("{}/{MANAGER_FOR_CONTAINERS}", node.dev);
    if rules.own_manager && host.has(&for_containers) {
        nodes.push(renamed(node, MANAGER_FOR_CONTAINERS, MANAGER));
    } else {
        nodes.extend(required(node, MANAGER, MANAGER, host, missing));
    }
    optional(&mut nodes, &SHARED);
    for name in rules.required {
        nodes.extend(required(node, name, name, host, missing));
    }
    optional(&mut nodes, rules.optional);
    nodes
}

/// The nodes of whole chips, in the given order.
pub(super) fn chips(
    node: &NodeDelivery,
    phys: &[PhyId],
    host: &HostPaths,
    missing: &mut Vec<String>,
) -> Vec<DeviceNode> {
    phys.iter()
        .filter_map(|phy| {
            let name = format!("davinci{phy}");
            required(node, &name, &name, host, missing)
        })
        .collect()
}

/// The nodes of vNPUs, in the given order. In the container each is named like a chip.
pub(super) fn vnpus(
    node: &NodeDelivery,
    vnpus: &[VdevId],
    host: &HostPaths,
    missing: &mut Vec<String>,
) -> Vec<DeviceNode> {
    vnpus
        .iter()
        .filter_map(|vnpu| {
            let (name, inside) = (format!("vdavinci{vnpu}"), format!("davinci{vnpu}"));
            required(node, &name, &inside, host, missing)
        })
        .collect()
}

/// The nodes of the UB, sorted by path; none except on A5.
pub(super) fn ub(node: &NodeDelivery, product: Product, host: &HostPaths) -> Vec<DeviceNode> {
    if !Rules::of(node, product).ub {
        return Vec::new();
    }
    UB_FOLDERS
        .iter()
        .flat_map(|name| {
            let folder = format!("{}/{name}", node.dev);
            let paths: Vec<String> = host.in_folder(&folder, "").cloned().collect();
            paths
        })
        .filter_map(|path| {
            let name = path.strip_prefix(&format!("{}/", node.dev))?;
            Some(renamed(node, name, name))
        })
        .collect()
}

/// A node of a chip or vNPU for the CDI spec, which is checked when a container asks for it.
pub(super) fn unchecked(node: &NodeDelivery, name: &str, inside: &str) -> DeviceNode {
    renamed(node, name, inside)
}

fn required(
    node: &NodeDelivery,
    name: &str,
    inside: &str,
    host: &HostPaths,
    missing: &mut Vec<String>,
) -> Option<DeviceNode> {
    let path = format!("{}/{name}", node.dev);
    if host.has(&path) {
        return Some(renamed(node, name, inside));
    }
    missing.push(path);
    None
}

/// Inside the container the node always lies under `/dev`, whatever the host calls the folder.
fn renamed(node: &NodeDelivery, name: &str, inside: &str) -> DeviceNode {
    DeviceNode {
        host_path: format!("{}/{name}", node.host_dev),
        container_path: format!("/dev/{inside}"),
        permissions: "rw".to_owned(),
    }
}

/// What sets one product's nodes apart.
struct Rules {
    required: &'static [&'static str],
    optional: &'static [&'static str],
    /// The host may keep a manager node of its own for containers.
    own_manager: bool,
    ub: bool,
}

impl Rules {
    fn of(node: &NodeDelivery, product: Product) -> Self {
        let optional: &[&str] = match product {
            Product::Ascend310 if node.fusion_director => &FUSION_DIRECTOR,
            Product::Ascend310B => &ASCEND310B,
            Product::Atlas200ISocA1 => &SOC_A1_OPTIONAL,
            Product::Ascend310
            | Product::Ascend310P
            | Product::Atlas300IDuo
            | Product::Ascend910
            | Product::Ascend910B
            | Product::Ascend910BUnlinked
            | Product::AtlasA2Box16
            | Product::AtlasA3
            | Product::AtlasA5
            | Product::Atlas350 => &[],
        };
        let soc_a1 = product == Product::Atlas200ISocA1;
        Self {
            required: if soc_a1 { &SOC_A1_REQUIRED } else { &[] },
            optional,
            own_manager: product == Product::Ascend310B,
            ub: product.family() == ChipFamily::Ascend950,
        }
    }
}
