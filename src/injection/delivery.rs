//! How chips reach containers on this node.

use crate::domain::product::Product;

use super::cdi::CdiKind;
use super::driver_files::InstallType;

/// How chips reach containers, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryChoice {
    /// Ascend Docker Runtime where it was detected and serves the product, else device nodes.
    Auto,
    /// Ascend Docker Runtime.
    DockerRuntime,
    /// Device nodes.
    DeviceSpec,
    /// The container device interface.
    Cdi,
}

/// How chips of one product reach a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Ascend Docker Runtime reads variables and mounts nodes and driver files itself.
    DockerRuntime,
    /// Kubelet passes device nodes to any runtime.
    DeviceSpec,
    /// Kubelet passes names, which the runtime looks up in the agent's CDI spec.
    Cdi,
}

/// The part of every answer that is the same for the whole node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what was detected and what was switched on, independent of each other"
)]
pub struct NodeDelivery {
    /// What the operator chose.
    pub choice: DeliveryChoice,
    /// Whether Ascend Docker Runtime marked the agent's own container.
    pub docker_runtime: bool,
    /// Whether 310P cards of several kinds are offered under a resource each.
    pub mixed_insert: bool,
    /// Whether 310 chips are offered to `FusionDirector`, whose containers need more nodes.
    pub fusion_director: bool,
    /// Kind of the CDI names.
    pub cdi_kind: CdiKind,
    /// Folder of the device nodes as the agent sees it, without a slash at the end.
    pub dev: String,
    /// The same folder as kubelet and the runtime see it.
    pub host_dev: String,
    /// The kernel's system information as the agent sees it, without a slash at the end.
    pub sysfs: String,
    /// The driver's files to mount too; `None` mounts none. Not with Ascend Docker Runtime.
    pub driver_mounts: Option<InstallType>,
    /// Value for `HCCL_TOPO_FILE_PATH` on A5 instead of the one that follows from the hardware.
    pub hccl_topo_file: Option<String>,
    /// Whether the variables of other device plugins are set too.
    pub compat_env: bool,
}

impl NodeDelivery {
    /// How chips of this product reach a container. Left to choose, Ascend Docker Runtime is not used
    /// where the vendor's own plugin does not use it: on Atlas 200I `SoC` A1 and in mixed insert.
    #[must_use]
    pub fn of(&self, product: Product) -> Delivery {
        match self.choice {
            DeliveryChoice::DockerRuntime => Delivery::DockerRuntime,
            DeliveryChoice::Cdi => Delivery::Cdi,
            DeliveryChoice::Auto
                if self.docker_runtime
                    && !self.mixed_insert
                    && product != Product::Atlas200ISocA1 =>
            {
                Delivery::DockerRuntime
            }
            DeliveryChoice::DeviceSpec | DeliveryChoice::Auto => Delivery::DeviceSpec,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn node(choice: DeliveryChoice) -> NodeDelivery {
        NodeDelivery {
            choice,
            docker_runtime: false,
            mixed_insert: false,
            fusion_director: false,
            cdi_kind: CdiKind::default(),
            dev: "/dev".to_owned(),
            host_dev: "/dev".to_owned(),
            sysfs: "/sys".to_owned(),
            driver_mounts: None,
            hccl_topo_file: None,
            compat_env: false,
        }
    }

    #[test]
    fn auto_takes_the_runtime_only_where_it_is_detected_and_serves_the_product() {
        for (detected, mixed, product, expected) in [
            (true, false, Product::Ascend310P, Delivery::DockerRuntime),
            (false, false, Product::Ascend310P, Delivery::DeviceSpec),
            (true, true, Product::Ascend310P, Delivery::DeviceSpec),
            (true, false, Product::Atlas200ISocA1, Delivery::DeviceSpec),
        ] {
            let node = NodeDelivery {
                docker_runtime: detected,
                mixed_insert: mixed,
                ..node(DeliveryChoice::Auto)
            };
            assert_eq!(node.of(product), expected, "{detected} {mixed} {product}");
        }
    }

    #[test]
    fn an_explicit_choice_holds_whatever_was_detected() {
        for (choice, expected) in [
            (DeliveryChoice::DockerRuntime, Delivery::DockerRuntime),
            (DeliveryChoice::DeviceSpec, Delivery::DeviceSpec),
            (DeliveryChoice::Cdi, Delivery::Cdi),
        ] {
            for docker_runtime in [false, true] {
                let node = NodeDelivery {
                    docker_runtime,
                    ..node(choice)
                };
                assert_eq!(node.of(Product::Atlas200ISocA1), expected);
            }
        }
    }
}
