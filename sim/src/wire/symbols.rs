//! Names of the functions `libdcmi.so` exports, and the generation each belongs to.

use serde::{Deserialize, Serialize};

/// Which of the two mutually exclusive API generations a chip family answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// `dcmi_*`
    V1,
    /// `dcmiv2_*`
    V2,
}

/// Every exported symbol. A fault rule naming another one is refused.
pub const SYMBOLS: &[&str] = &[
    "dcmi_create_vdevice",
    "dcmi_get_affinity_cpu_info_by_device_id",
    "dcmi_get_all_device_count",
    "dcmi_get_card_elabel_v2",
    "dcmi_get_card_id_device_id_from_logicid",
    "dcmi_get_card_id_device_id_from_phyid",
    "dcmi_get_card_list",
    "dcmi_get_card_num_list",
    "dcmi_get_dcmi_version",
    "dcmi_get_device_board_info",
    "dcmi_get_device_boot_status",
    "dcmi_get_device_chip_info",
    "dcmi_get_device_chip_info_v2",
    "dcmi_get_device_die_v2",
    "dcmi_get_device_ecc_info",
    "dcmi_get_device_errorcode",
    "dcmi_get_device_errorcode_string",
    "dcmi_get_device_errorcode_v2",
    "dcmi_get_device_frequency",
    "dcmi_get_device_hbm_info",
    "dcmi_get_device_health",
    "dcmi_get_device_id_in_card",
    "dcmi_get_device_info",
    "dcmi_get_device_ip",
    "dcmi_get_device_logic_id",
    "dcmi_get_device_logicid_from_phyid",
    "dcmi_get_device_memory_info_v3",
    "dcmi_get_device_multi_utilization_rate",
    "dcmi_get_device_network_health",
    "dcmi_get_device_num_in_card",
    "dcmi_get_device_outband_channel_state",
    "dcmi_get_device_pcie_info_v2",
    "dcmi_get_device_phyid_from_logicid",
    "dcmi_get_device_power_info",
    "dcmi_get_device_resource_info",
    "dcmi_get_device_temperature",
    "dcmi_get_device_type",
    "dcmi_get_device_utilization_rate",
    "dcmi_get_device_voltage",
    "dcmi_get_driver_version",
    "dcmi_get_fault_event",
    "dcmi_get_mainboard_id",
    "dcmi_get_multi_die_policy",
    "dcmi_get_netdev_brother_device",
    "dcmi_get_npu_work_mode",
    "dcmi_get_product_type",
    "dcmi_get_topo_info_by_device_id",
    "dcmi_get_vdevice_mode",
    "dcmi_get_vnpu_config_recover_mode",
    "dcmi_init",
    "dcmi_mcu_get_power_info",
    "dcmi_pre_reset_soc",
    "dcmi_rescan_soc",
    "dcmi_set_destroy_vdevice",
    "dcmi_set_device_pre_reset",
    "dcmi_set_device_rescan",
    "dcmi_set_device_reset",
    "dcmi_set_multi_die_policy",
    "dcmi_set_vdevice_mode",
    "dcmi_set_vnpu_config_recover_mode",
    "dcmi_subscribe_fault_event",
    "dcmiv2_get_affinity_cpu_info_by_dev_id",
    "dcmiv2_get_all_device_count",
    "dcmiv2_get_chip_phy_id_by_dev_id",
    "dcmiv2_get_dcmi_version",
    "dcmiv2_get_dev_id_by_chip_phy_id",
    "dcmiv2_get_device_board_info",
    "dcmiv2_get_device_boot_status",
    "dcmiv2_get_device_chip_info",
    "dcmiv2_get_device_die_id",
    "dcmiv2_get_device_ecc_info",
    "dcmiv2_get_device_elabel_info",
    "dcmiv2_get_device_error_code_list",
    "dcmiv2_get_device_error_info",
    "dcmiv2_get_device_frequency",
    "dcmiv2_get_device_hbm_info",
    "dcmiv2_get_device_health",
    "dcmiv2_get_device_info",
    "dcmiv2_get_device_list",
    "dcmiv2_get_device_multi_utilization_rate",
    "dcmiv2_get_device_network_health",
    "dcmiv2_get_device_outband_channel_state",
    "dcmiv2_get_device_pcie_info",
    "dcmiv2_get_device_power_info",
    "dcmiv2_get_device_proc_mem_info",
    "dcmiv2_get_device_temperature",
    "dcmiv2_get_device_type",
    "dcmiv2_get_device_utilization_rate",
    "dcmiv2_get_device_voltage",
    "dcmiv2_get_driver_version",
    "dcmiv2_get_fault_event",
    "dcmiv2_get_mainboard_id",
    "dcmiv2_get_topo_info_by_device_id",
    "dcmiv2_init",
    "dcmiv2_pre_reset_device",
    "dcmiv2_rescan_device",
    "dcmiv2_reset_device",
    "dcmiv2_subscribe_fault_event",
];

/// What libraries of older drivers do not have.
pub const NEWER_SYMBOLS: &[&str] = &[
    "dcmi_get_affinity_cpu_info_by_device_id",
    "dcmi_get_device_chip_info_v2",
    "dcmi_get_device_multi_utilization_rate",
    "dcmi_get_mainboard_id",
    "dcmi_get_topo_info_by_device_id",
    "dcmiv2_get_affinity_cpu_info_by_dev_id",
    "dcmiv2_get_device_multi_utilization_rate",
    "dcmiv2_get_mainboard_id",
    "dcmiv2_get_topo_info_by_device_id",
];

/// The generation a symbol's prefix announces.
#[must_use]
pub fn generation_of(symbol: &str) -> Generation {
    if symbol.starts_with("dcmiv2_") {
        Generation::V2
    } else {
        Generation::V1
    }
}
