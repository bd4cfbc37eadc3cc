//! The CDI spec: what a runtime adds to a container that asks for a chip by name.
//!
//! One file for all chips of the node. The nodes and files that every container needs stand at the top
//! and are added once; each chip adds its own node. Variables stay out of it: an edit replaces a
//! variable, and with two chips the last would win.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::domain::ids::{PhyId, VdevId};
use crate::domain::offer::{BindMount, DeviceNode};
use crate::domain::product::Product;

use super::answer::{InjectionError, none_missing};
use super::delivery::NodeDelivery;
use super::driver_files;
use super::host::{HostPaths, Wanted};
use super::nodes;

/// The lowest version that covers what we use; runtimes refuse versions newer than theirs.
const VERSION: &str = "0.5.0";

/// Options of every mount.
const MOUNT_OPTIONS: [&str; 4] = ["ro", "nosuid", "nodev", "rbind"];

/// The vendor's own components write this kind; two files with one kind disable each other.
const TAKEN_KIND: &str = "ascend.com/npu";

/// Vendor and class of CDI names, `vendor/class`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdiKind {
    vendor: String,
    class: String,
}

/// Why a text is no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CdiKindError {
    /// Not two parts.
    #[error("a kind is written vendor/class, for example huawei.com/npu")]
    Parts,
    /// The vendor is malformed.
    #[error(
        "the vendor begins with a letter, ends with a letter or digit and has only letters, digits, \
         dots, dashes and underscores"
    )]
    Vendor,
    /// The class is malformed.
    #[error(
        "the class begins with a letter, ends with a letter or digit and has only letters, digits, \
         dashes and underscores"
    )]
    Class,
    /// Somebody else writes this kind.
    #[error(
        "the vendor's own components write {TAKEN_KIND}; two files with one kind disable each other"
    )]
    Taken,
}

impl CdiKind {
    /// Reads `vendor/class`.
    ///
    /// # Errors
    /// Says what a kind looks like.
    pub fn parse(text: &str) -> Result<Self, CdiKindError> {
        if text == TAKEN_KIND {
            return Err(CdiKindError::Taken);
        }
        let (vendor, class) = text.split_once('/').ok_or(CdiKindError::Parts)?;
        if !is_word(vendor, &['.', '-', '_']) {
            return Err(CdiKindError::Vendor);
        }
        // A dot in the class needs version 0.6.0.
        if !is_word(class, &['-', '_']) {
            return Err(CdiKindError::Class);
        }
        Ok(Self {
            vendor: vendor.to_owned(),
            class: class.to_owned(),
        })
    }

    /// Name of the file that holds the spec, as runtimes expect it.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.json", self.vendor, self.class)
    }

    /// Name of a whole chip.
    pub(super) fn chip(&self, phy: PhyId) -> String {
        format!("{self}={phy}")
    }

    /// Name of a vNPU.
    pub(super) fn vnpu(&self, vnpu: VdevId) -> String {
        format!("{self}=vnpu{vnpu}")
    }
}

impl Default for CdiKind {
    fn default() -> Self {
        Self {
            vendor: "huawei.com".to_owned(),
            class: "npu".to_owned(),
        }
    }
}

impl fmt::Display for CdiKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vendor, self.class)
    }
}

fn is_word(text: &str, more: &[char]) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|inner| inner.is_ascii_alphanumeric() || more.contains(&inner))
}

/// Everything the node can give out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdiContents {
    /// Products of the chips.
    pub products: BTreeSet<Product>,
    /// Chips.
    pub chips: BTreeSet<PhyId>,
    /// vNPUs.
    pub vnpus: BTreeSet<VdevId>,
}

impl CdiContents {
    /// Whether there is nothing to describe; a spec without devices is invalid.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chips.is_empty() && self.vnpus.is_empty()
    }

    /// What has to be known about the host before the spec can be made.
    #[must_use]
    pub fn wanted(&self, node: &NodeDelivery) -> Wanted {
        let mut wanted = Wanted::default();
        for product in &self.products {
            wanted.extend(nodes::wanted_nodes(node, *product, []));
            wanted.extend(driver_files::wanted(node, *product));
        }
        wanted
    }
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiSpec {
    cdi_version: &'static str,
    kind: String,
    devices: Vec<CdiDevice>,
    container_edits: CdiEdits,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CdiDevice {
    name: String,
    container_edits: CdiEdits,
}

/// What is added to a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CdiEdits {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_nodes: Vec<CdiNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounts: Vec<CdiMount>,
}

/// Type and numbers are left out: the runtime reads them from the host's node, and the driver's major
/// numbers change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CdiNode {
    path: String,
    host_path: String,
    permissions: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CdiMount {
    host_path: String,
    container_path: String,
    options: [&'static str; 4],
}

/// Builds the spec. The nodes of chips and vNPUs are not looked for: a name must stay known as long
/// as a container may be started again, and Allocate looks for the nodes of what it gives.
///
/// # Errors
/// When nodes are missing that every container needs.
pub fn cdi_spec(
    node: &NodeDelivery,
    contents: &CdiContents,
    host: &HostPaths,
) -> Result<CdiSpec, InjectionError> {
    let mut missing = Vec::new();
    let mut shared: Vec<DeviceNode> = Vec::new();
    let mut mounts: Vec<BindMount> = Vec::new();
    for product in &contents.products {
        let mut nodes = nodes::shared(node, *product, host, &mut missing);
        nodes.extend(nodes::ub(node, *product, host));
        add_new(&mut shared, nodes);
        add_new(&mut mounts, driver_files::mounts(node, *product, host));
    }
    none_missing(missing)?;
    let device = |name: String, host_name: String, inside: String| CdiDevice {
        name,
        container_edits: CdiEdits {
            device_nodes: vec![cdi_node(nodes::unchecked(node, &host_name, &inside))],
            mounts: Vec::new(),
        },
    };
    let chips = contents.chips.iter().map(|phy| {
        let name = format!("davinci{phy}");
        device(phy.to_string(), name.clone(), name)
    });
    let vnpus = contents.vnpus.iter().map(|vnpu| {
        device(
            format!("vnpu{vnpu}"),
            format!("vdavinci{vnpu}"),
            format!("davinci{vnpu}"),
        )
    });
    Ok(CdiSpec {
        cdi_version: VERSION,
        kind: node.cdi_kind.to_string(),
        devices: chips.chain(vnpus).collect(),
        container_edits: CdiEdits {
            device_nodes: shared.into_iter().map(cdi_node).collect(),
            mounts: mounts.into_iter().map(cdi_mount).collect(),
        },
    })
}

/// Products of one node share most of their nodes.
fn add_new<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

fn cdi_node(node: DeviceNode) -> CdiNode {
    CdiNode {
        path: node.container_path,
        host_path: node.host_path,
        permissions: node.permissions,
    }
}

fn cdi_mount(mount: BindMount) -> CdiMount {
    CdiMount {
        host_path: mount.host_path,
        container_path: mount.container_path,
        options: MOUNT_OPTIONS,
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery::DeliveryChoice;
    use super::super::delivery::tests::node;
    use super::*;

    #[test]
    fn a_kind_has_a_vendor_and_a_class_by_the_grammar_of_cdi() {
        for text in ["huawei.com/npu", "a/b", "my-vendor.example/npu_2"] {
            assert_eq!(
                CdiKind::parse(text).map(|kind| kind.to_string()),
                Ok(text.to_owned())
            );
        }
        for (text, error) in [
            ("npu", CdiKindError::Parts),
            ("/npu", CdiKindError::Vendor),
            ("1.com/npu", CdiKindError::Vendor),
            ("huawei.com./npu", CdiKindError::Vendor),
            ("huawei.com/", CdiKindError::Class),
            ("huawei.com/n.pu", CdiKindError::Class),
            ("huawei.com/npu/x", CdiKindError::Class),
            ("huawei.com/npu=0", CdiKindError::Class),
            ("ascend.com/npu", CdiKindError::Taken),
        ] {
            assert_eq!(CdiKind::parse(text), Err(error), "{text}");
        }
        assert_eq!(CdiKind::default().file_name(), "huawei.com-npu.json");
    }

    #[test]
    fn what_two_products_share_stands_in_the_spec_once() {
        let contents = CdiContents {
            products: [Product::Ascend310P, Product::Atlas300IDuo].into(),
            chips: [PhyId(0)].into(),
            vnpus: BTreeSet::new(),
        };
        let host = HostPaths {
            present: [
                "/dev/davinci_manager".to_owned(),
                "/dev/hisi_hdc".to_owned(),
            ]
            .into(),
        };
        let spec = cdi_spec(&node(DeliveryChoice::Cdi), &contents, &host).expect("all there");
        assert_eq!(spec.container_edits.device_nodes.len(), 2);
    }

    #[test]
    fn without_the_manager_node_there_is_no_spec() {
        let contents = CdiContents {
            products: [Product::Ascend910B].into(),
            chips: [PhyId(0)].into(),
            vnpus: BTreeSet::new(),
        };
        let made = cdi_spec(&node(DeliveryChoice::Cdi), &contents, &HostPaths::default());
        let paths = vec!["/dev/davinci_manager".to_owned()];
        assert_eq!(made, Err(InjectionError::RequiredDeviceMissing { paths }));
    }

    #[test]
    fn the_runtime_finds_the_nodes_where_the_host_has_them() {
        let node = NodeDelivery {
            dev: "/host/dev".to_owned(),
            ..node(DeliveryChoice::Cdi)
        };
        let contents = CdiContents {
            products: [Product::Ascend910B].into(),
            chips: [PhyId(3)].into(),
            vnpus: BTreeSet::new(),
        };
        let host = HostPaths {
            present: ["/host/dev/davinci_manager".to_owned()].into(),
        };
        let spec = cdi_spec(&node, &contents, &host).expect("all there");
        let edits = [
            &spec.container_edits,
            &spec.devices.first().expect("a chip").container_edits,
        ];
        for (edits, name) in edits.iter().zip(["davinci_manager", "davinci3"]) {
            let found = edits.device_nodes.first().expect("a node");
            assert_eq!(found.host_path, format!("/dev/{name}"));
            assert_eq!(found.path, format!("/dev/{name}"));
        }
    }
}
