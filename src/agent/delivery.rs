//! How chips reach containers, as configured; and what the operator has to know about it.

use crate::config::Config;
use crate::injection::{DeliveryChoice, NodeDelivery, VisibleDevices};

/// The configured part of every answer.
pub(super) fn node_delivery(config: &Config) -> NodeDelivery {
    let mode = config.offering.mode();
    NodeDelivery {
        choice: config.delivery,
        docker_runtime: config.docker_runtime,
        mixed_insert: mode.mixed_insert,
        fusion_director: mode.fusion_director,
        cdi_kind: config.cdi_kind.clone(),
        dev: config.dev_dir.clone(),
        host_dev: config.host_dev_dir.clone(),
        sysfs: config.sysfs_dir.display().to_string(),
        driver_mounts: config.driver_mounts.then_some(config.install_type),
        hccl_topo_file: config.hccl_topo_file.clone(),
        compat_env: config.compat_env,
    }
}

/// Says at the start how chips reach containers and what that needs from others.
pub(super) fn tell_delivery(config: &Config) {
    let how = match config.delivery {
        DeliveryChoice::DockerRuntime => "variables for Ascend Docker Runtime",
        DeliveryChoice::Auto if config.docker_runtime && !config.offering.mode().mixed_insert => {
            "variables for Ascend Docker Runtime, which marked the agent's container; device nodes on \
             Atlas 200I SoC A1"
        }
        DeliveryChoice::DeviceSpec | DeliveryChoice::Auto => "device nodes",
        DeliveryChoice::Cdi => "CDI names",
    };
    tracing::info!(
        how,
        driver_mounts = config.driver_mounts,
        compat_env = config.compat_env,
        "how chips reach containers"
    );
    if config.delivery == DeliveryChoice::Cdi {
        tracing::info!(
            folder = %config.cdi_dir.display(),
            kind = %config.cdi_kind,
            "CDI needs kubelet 1.28 or newer with DevicePluginCDIDevices (on from 1.29) and a runtime \
             that reads this folder: containerd below 2.0 only with enable_cdi = true. The agent \
             cannot see either; where one is off, containers start without chips"
        );
    }
    if let Some(list) = &config.visible_devices {
        tell_visible(list);
    }
}

/// A list in our own environment means that our container shows the driver a part of the node.
fn tell_visible(list: &str) {
    match VisibleDevices::parse(list) {
        Ok(VisibleDevices::None) => {}
        Ok(VisibleDevices::Ids(ids)) => tracing::warn!(
            ?ids,
            "ASCEND_VISIBLE_DEVICES is set for the agent itself: Ascend Docker Runtime gave its \
             container these chips only, and the driver may show no others; remove the variable from \
             its pod and run it privileged"
        ),
        Err(error) => tracing::warn!(
            %error,
            "ASCEND_VISIBLE_DEVICES is set for the agent itself and means nothing to Ascend Docker \
             Runtime; remove the variable from its pod"
        ),
    }
}
