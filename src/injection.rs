//! What a container gets for its chips: environment, device nodes, mounts.
//!
//! Pure: imports `domain` only; which paths exist on the host is an argument. Two deliveries: with
//! Ascend Docker Runtime the container gets variables and the runtime does the rest; without it the
//! container gets device nodes (and, when asked for, the driver's files). Outside the runtime no
//! `ASCEND_*` variable is set, because it would only mislead, and `LD_LIBRARY_PATH` never is, because
//! the image's value must survive. The drawback of delivery by variables is that a pod can override
//! them, so they never prove who holds a chip.

mod nodes;
mod whole_chip;

pub use nodes::{HostPaths, candidates, required_nodes};
pub use whole_chip::{Delivery, InjectionError, InjectionRequest, inject};
