//! What a container gets for its chips: environment, device nodes, mounts, CDI names.
//!
//! Pure: imports `domain` only; which paths exist on the host is an argument. Three deliveries: with
//! Ascend Docker Runtime the container gets variables and the runtime does the rest; with device
//! nodes kubelet passes them to any runtime; with CDI the container gets names and the runtime looks
//! them up in a file that the agent writes. Outside Ascend Docker Runtime no `ASCEND_*` variable is
//! set, because it would only mislead, and `LD_LIBRARY_PATH` never is, because the image's value must
//! survive. The drawback of delivery by variables is that a pod can override them, so they never
//! prove who holds a chip.

mod answer;
mod cdi;
mod delivery;
mod driver_files;
mod host;
mod nodes;
mod topology_file;
mod visible_devices;

pub use answer::{Assigned, InjectionError, InjectionRequest, inject};
pub use cdi::{CdiContents, CdiEdits, CdiKind, CdiKindError, CdiSpec, cdi_spec};
#[cfg(test)]
pub(crate) use delivery::tests::node;
pub use delivery::{Delivery, DeliveryChoice, NodeDelivery};
pub use driver_files::InstallType;
pub use host::{FolderLook, HostPaths, Wanted};
pub use nodes::{missing_nodes, wanted_nodes};
pub use visible_devices::{VisibleDevices, VisibleDevicesError};
