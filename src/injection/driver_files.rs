//! The driver's files on the host, per kind of installation. Source: the lists that Ascend Docker
//! Runtime ships.

use crate::domain::family::ChipFamily;
use crate::domain::offer::BindMount;
use crate::domain::product::Product;

use super::delivery::NodeDelivery;
use super::host::{FolderLook, HostPaths, Wanted};

/// Which kind of installation the driver's files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallType {
    /// A server in a data centre.
    Center,
    /// Atlas 200.
    A200,
    /// Atlas 200I `SoC` A1.
    A200ISoc,
    /// Atlas 500.
    A500,
    /// Atlas 200I A2.
    A200IA2,
    /// Atlas 500 A2.
    A500A2,
}

/// One entry of a list.
#[derive(Clone, Copy, Debug)]
enum Entry {
    At(&'static str),
    /// Every file of a folder whose name begins so.
    Beginning(&'static str, &'static str),
}

use Entry::{At, Beginning};

/// The two version files come before the queue folder.
const CENTER: &[Entry] = &[
    At("/usr/local/Ascend/driver/lib64"),
    At("/usr/local/Ascend/driver/include"),
    At("/usr/local/dcmi"),
    At("/usr/local/bin/npu-smi"),
    At("/usr/local/Ascend/driver/version.info"),
    At("/etc/ascend_install.info"),
    At("/var/queue_schedule"),
];

const A200: &[Entry] = &[
    At("/usr/local/Ascend/driver/lib64"),
    At("/usr/local/sbin/npu-smi"),
    At("/usr/local/Ascend/driver/tools"),
    At("/etc/hdcBasic.cfg"),
    At("/etc/sys_version.conf"),
    At("/var/queue_schedule"),
];

const A200I_SOC: &[Entry] = &[
    At("/usr/local/bin/npu-smi"),
    At("/etc/hdcBasic.cfg"),
    At("/etc/sys_version.conf"),
    At("/var/queue_schedule"),
];

const A500: &[Entry] = &[
    At("/home/data/miniD/driver/lib64"),
    At("/usr/local/dcmi"),
    At("/usr/local/bin/npu-smi"),
    At("/var/queue_schedule"),
];

const A200I_A2: &[Entry] = &[
    At("/etc/sys_version.conf"),
    At("/etc/hdcBasic.cfg"),
    At("/usr/lib64/libaicpu_processer.so"),
    At("/usr/lib64/libaicpu_prof.so"),
    At("/usr/lib64/libaicpu_sharder.so"),
    At("/usr/lib64/libadump.so"),
    At("/usr/lib64/libtsd_eventclient.so"),
    At("/usr/lib64/libaicpu_scheduler.so"),
    At("/usr/lib64/libdcmi.so"),
    At("/usr/lib64/libmpi_dvpp_adapter.so"),
    At("/usr/lib64/aicpu_kernels"),
    At("/usr/local/sbin/npu-smi"),
    At("/usr/lib64/libstackcore.so"),
    At("/usr/local/Ascend/driver/lib64"),
    At("/var/slogd"),
    At("/var/dmp_daemon"),
    At("/var/queue_schedule"),
];

const A500_A2: &[Entry] = &[
    At("/usr/local/Ascend/driver/lib64"),
    At("/usr/local/sbin/npu-smi"),
    At("/etc/sys_version.conf"),
    At("/etc/ld.so.conf.d/mind_so.conf"),
    At("/etc/hdcBasic.cfg"),
    At("/var/dmp_daemon"),
    At("/var/slogd"),
    At("/usr/lib64/libsemanage.so.2"),
    At("/usr/lib64/libmmpa.so"),
    At("/usr/lib64/libdrvdsmi.so"),
    At("/usr/lib64/libdcmi.so"),
    At("/usr/lib64/libstackcore.so"),
    At("/usr/lib64/libmpi_dvpp_adapter.so"),
    At("/usr/lib64/libaicpu_scheduler.so"),
    At("/usr/lib64/libaicpu_processer.so"),
    At("/usr/lib64/libaicpu_prof.so"),
    At("/usr/lib64/libaicpu_sharder.so"),
    At("/usr/lib64/libadump.so"),
    At("/usr/lib64/libtsd_eventclient.so"),
    At("/usr/lib64/aicpu_kernels"),
    At("/var/queue_schedule"),
];

/// Where openEuler and Ubuntu keep two libraries that the driver of an A2 edge board needs.
const EDGE_A2: &[Entry] = &[
    At("/usr/lib64/libcrypto.so.1.1"),
    At("/usr/lib64/libyaml-0.so.2"),
    At("/usr/lib/aarch64-linux-gnu/libcrypto.so.1.1"),
    At("/usr/lib/aarch64-linux-gnu/libyaml-0.so.2"),
];

/// Added on A5 where the kernel knows a unified bus.
const UNIFIED_BUS: &[Entry] = &[
    Beginning("/usr/lib64", "libummu"),
    Beginning("/usr/lib64", "liburma"),
    At("/usr/lib64/urma"),
    Beginning("/usr/lib64", "libnl"),
    At("/usr/bin/urma_admin"),
    At("/usr/bin/urma_perftest"),
    At("/usr/bin/urma_ping"),
];

/// Added on A5.
const A5: &[Entry] = &[
    At("/etc/hccl_rootinfo.json"),
    At("/usr/local/Ascend/driver/topo"),
];

/// The driver's files whose presence matters; none when none are mounted.
pub(super) fn wanted(node: &NodeDelivery, product: Product) -> Wanted {
    let mut wanted = Wanted::default();
    let Some(kind) = node.driver_mounts else {
        return wanted;
    };
    if is_a5(product) {
        wanted.paths.push(unified_bus(node));
    }
    for list in lists(kind, product, true) {
        for entry in list {
            match entry {
                At(path) => wanted.paths.push((*path).to_owned()),
                Beginning(folder, prefix) => add_prefix(&mut wanted.folders, folder, prefix),
            }
        }
    }
    wanted
}

/// The mounts: what exists, in the order of the list.
pub(super) fn mounts(node: &NodeDelivery, product: Product, host: &HostPaths) -> Vec<BindMount> {
    let Some(kind) = node.driver_mounts else {
        return Vec::new();
    };
    let bus = is_a5(product) && host.has(&unified_bus(node));
    let mut mounts = Vec::new();
    for entry in lists(kind, product, bus).iter().copied().flatten() {
        match entry {
            At(path) if host.has(path) => mounts.push(read_only(path)),
            At(_) => {}
            Beginning(folder, prefix) => {
                mounts.extend(host.in_folder(folder, prefix).map(|path| read_only(path)));
            }
        }
    }
    mounts
}

fn lists(kind: InstallType, product: Product, bus: bool) -> Vec<&'static [Entry]> {
    let mut lists = match kind {
        InstallType::Center => vec![CENTER],
        InstallType::A200 => vec![A200],
        InstallType::A200ISoc => vec![A200I_SOC],
        InstallType::A500 => vec![A500],
        InstallType::A200IA2 => vec![A200I_A2, EDGE_A2],
        InstallType::A500A2 => vec![A500_A2, EDGE_A2],
    };
    if is_a5(product) {
        if bus {
            lists.push(UNIFIED_BUS);
        }
        lists.push(A5);
    }
    lists
}

fn is_a5(product: Product) -> bool {
    product.family() == ChipFamily::Ascend950
}

fn unified_bus(node: &NodeDelivery) -> String {
    format!("{}/class/unified_bus", node.sysfs)
}

fn add_prefix(folders: &mut Vec<FolderLook>, folder: &str, prefix: &'static str) {
    match folders.iter_mut().find(|known| known.folder == folder) {
        Some(known) => known.prefixes.push(prefix),
        None => folders.push(FolderLook {
            folder: folder.to_owned(),
            prefixes: vec![prefix],
        }),
    }
}

fn read_only(path: &str) -> BindMount {
    BindMount {
        host_path: path.to_owned(),
        container_path: path.to_owned(),
        read_only: true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery::DeliveryChoice;
    use super::super::delivery::tests::node;
    use super::*;

    fn mounted(kind: InstallType, product: Product, present: &[&str]) -> Vec<String> {
        let node = NodeDelivery {
            driver_mounts: Some(kind),
            ..node(DeliveryChoice::DeviceSpec)
        };
        let host = HostPaths {
            present: present.iter().map(|path| (*path).to_owned()).collect(),
        };
        let mounts = mounts(&node, product, &host);
        assert!(
            mounts
                .iter()
                .all(|mount| mount.read_only && mount.host_path == mount.container_path)
        );
        mounts.into_iter().map(|mount| mount.host_path).collect()
    }

    #[test]
    fn each_kind_of_installation_mounts_its_own_list_in_order() {
        let everything: Vec<&str> = [CENTER, A200, A200I_SOC, A500, A200I_A2, A500_A2, EDGE_A2]
            .iter()
            .copied()
            .flatten()
            .map(|entry| match entry {
                At(path) => *path,
                Beginning(..) => panic!("only on A5"),
            })
            .collect();
        for (kind, count, first, last) in [
            (
                InstallType::Center,
                7,
                "/usr/local/Ascend/driver/lib64",
                "/var/queue_schedule",
            ),
            (
                InstallType::A200,
                6,
                "/usr/local/Ascend/driver/lib64",
                "/var/queue_schedule",
            ),
            (
                InstallType::A200ISoc,
                4,
                "/usr/local/bin/npu-smi",
                "/var/queue_schedule",
            ),
            (
                InstallType::A500,
                4,
                "/home/data/miniD/driver/lib64",
                "/var/queue_schedule",
            ),
            (
                InstallType::A200IA2,
                21,
                "/etc/sys_version.conf",
                "/usr/lib/aarch64-linux-gnu/libyaml-0.so.2",
            ),
            (
                InstallType::A500A2,
                25,
                "/usr/local/Ascend/driver/lib64",
                "/usr/lib/aarch64-linux-gnu/libyaml-0.so.2",
            ),
        ] {
            let found = mounted(kind, Product::Ascend310, &everything);
            assert_eq!(found.len(), count, "{kind:?}");
            assert_eq!(found.first().map(String::as_str), Some(first), "{kind:?}");
            assert_eq!(found.last().map(String::as_str), Some(last), "{kind:?}");
        }
    }

    #[test]
    fn an_edge_board_takes_the_libraries_of_its_own_distribution() {
        let found = mounted(
            InstallType::A500A2,
            Product::Ascend310B,
            &[
                "/var/queue_schedule",
                "/usr/lib/aarch64-linux-gnu/libcrypto.so.1.1",
            ],
        );
        assert_eq!(
            found,
            [
                "/var/queue_schedule",
                "/usr/lib/aarch64-linux-gnu/libcrypto.so.1.1"
            ]
        );
    }

    #[test]
    fn bus_libraries_go_to_a5_where_the_kernel_knows_the_bus() {
        let files = [
            "/usr/lib64/libnl-3.so",
            "/usr/lib64/liburma.so.0",
            "/usr/lib64/libz.so",
            "/usr/bin/urma_ping",
            "/usr/local/Ascend/driver/topo",
        ];
        let with_bus = [&files[..], &["/sys/class/unified_bus"]].concat();
        assert_eq!(
            mounted(InstallType::Center, Product::AtlasA5, &with_bus),
            [
                "/usr/lib64/liburma.so.0",
                "/usr/lib64/libnl-3.so",
                "/usr/bin/urma_ping",
                "/usr/local/Ascend/driver/topo",
            ]
        );
        assert_eq!(
            mounted(InstallType::Center, Product::AtlasA5, &files),
            ["/usr/local/Ascend/driver/topo"]
        );
        assert_eq!(
            mounted(InstallType::Center, Product::Ascend910B, &with_bus),
            [""; 0]
        );
    }
}
