/*
 * Sizes, alignments and offsets that the interface fixes, alike on x86_64 and aarch64. They are
 * checked when a file that includes this one compiles.
 */
#ifndef ASCEND_SIM_LAYOUT_H
#define ASCEND_SIM_LAYOUT_H

#include <stddef.h>

#include "dcmi.h"

#define STRUCT(type, size, alignment)                                                            \
    _Static_assert(sizeof(struct dcmi_##type) == (size), #type);                                 \
    _Static_assert(_Alignof(struct dcmi_##type) == (alignment), #type)
#define AT(type, field, offset)                                                                  \
    _Static_assert(offsetof(struct dcmi_##type, field) == (offset), #type "." #field)

STRUCT(chip_info, 100, 4);
AT(chip_info, chip_type, 0);
AT(chip_info, chip_name, 32);
AT(chip_info, chip_ver, 64);
AT(chip_info, aicore_cnt, 96);

STRUCT(chip_info_v2, 132, 4);
AT(chip_info_v2, chip_type, 0);
AT(chip_info_v2, chip_name, 32);
AT(chip_info_v2, chip_ver, 64);
AT(chip_info_v2, aicore_cnt, 96);
AT(chip_info_v2, npu_name, 100);

STRUCT(board_info, 16, 4);
AT(board_info, board_id, 0);
AT(board_info, pcb_id, 4);
AT(board_info, bom_id, 8);
AT(board_info, slot_id, 12);

STRUCT(pcie_info_all, 64, 4);
AT(pcie_info_all, venderid, 0);
AT(pcie_info_all, subvenderid, 4);
AT(pcie_info_all, deviceid, 8);
AT(pcie_info_all, subdeviceid, 12);
AT(pcie_info_all, domain, 16);
AT(pcie_info_all, bdf_busid, 20);
AT(pcie_info_all, bdf_deviceid, 24);
AT(pcie_info_all, bdf_funcid, 28);
AT(pcie_info_all, reserve, 32);

STRUCT(die_id, 20, 4);
AT(die_id, soc_die, 0);

STRUCT(ecc_info, 28, 4);
AT(ecc_info, enable_flag, 0);
AT(ecc_info, single_bit_error_cnt, 4);
AT(ecc_info, double_bit_error_cnt, 8);
AT(ecc_info, total_single_bit_error_cnt, 12);
AT(ecc_info, total_double_bit_error_cnt, 16);
AT(ecc_info, single_bit_isolated_pages_cnt, 20);
AT(ecc_info, double_bit_isolated_pages_cnt, 24);

STRUCT(ecc_info_long, 36, 4);
AT(ecc_info_long, single_bit_next_isolated_pages_cnt, 28);
AT(ecc_info_long, double_bit_next_isolated_pages_cnt, 32);

STRUCT(hbm_info, 32, 8);
AT(hbm_info, memory_size, 0);
AT(hbm_info, freq, 8);
AT(hbm_info, memory_usage, 16);
AT(hbm_info, temp, 24);
AT(hbm_info, bandwith_util_rate, 28);

STRUCT(memory_info, 112, 8);
AT(memory_info, memory_size, 0);
AT(memory_info, memory_available, 8);
AT(memory_info, freq, 16);
AT(memory_info, hugepagesize, 24);
AT(memory_info, hugepages_total, 32);
AT(memory_info, hugepages_free, 40);
AT(memory_info, utiliza, 48);
AT(memory_info, reserve, 52);

STRUCT(ip_addr, 20, 4);
AT(ip_addr, u_addr.ip6, 0);
AT(ip_addr, u_addr.ip4, 0);
AT(ip_addr, ip_type, 16);

STRUCT(proc_mem_info, 16, 8);
AT(proc_mem_info, proc_id, 0);
AT(proc_mem_info, proc_mem_usage, 8);

STRUCT(multi_utilization_info, 48, 4);
AT(multi_utilization_info, aic_util, 0);
AT(multi_utilization_info, aiv_util, 4);
AT(multi_utilization_info, aicore_util, 8);
AT(multi_utilization_info, npu_util, 12);
AT(multi_utilization_info, reserve, 16);

STRUCT(elabel_info, 1280, 1);
AT(elabel_info, product_name, 0);
AT(elabel_info, model, 256);
AT(elabel_info, manufacturer, 512);
AT(elabel_info, manufacturer_date, 768);
AT(elabel_info, serial_number, 1024);

STRUCT(event_filter, 48, 8);
AT(event_filter, filter_flag, 0);
AT(event_filter, event_id, 8);
AT(event_filter, severity, 12);
AT(event_filter, node_type, 13);
AT(event_filter, resv, 14);

STRUCT(event, 360, 8);
AT(event, type, 0);
AT(event, dms_event, 8);

STRUCT(dms_fault_event, 352, 8);
AT(dms_fault_event, event_id, 0);
AT(dms_fault_event, deviceid, 4);
AT(dms_fault_event, node_type, 6);
AT(dms_fault_event, node_id, 7);
AT(dms_fault_event, sub_node_type, 8);
AT(dms_fault_event, sub_node_id, 9);
AT(dms_fault_event, severity, 10);
AT(dms_fault_event, assertion, 11);
AT(dms_fault_event, event_serial_num, 12);
AT(dms_fault_event, notify_serial_num, 16);
AT(dms_fault_event, alarm_raised_time, 24);
AT(dms_fault_event, event_name, 32);
AT(dms_fault_event, additional_info, 288);
AT(dms_fault_event, resv, 320);

_Static_assert(sizeof(enum dcmi_unit_type) == 4, "enums are four bytes");
_Static_assert(sizeof(enum dcmi_die_type) == 4, "enums are four bytes");
_Static_assert(sizeof(enum dcmi_frequency_type) == 4, "enums are four bytes");
_Static_assert(sizeof(enum dcmi_ecc_type) == 4, "enums are four bytes");
_Static_assert(sizeof(enum dcmi_port_type) == 4, "enums are four bytes");

STRUCT(spod_info, 48, 4);
AT(spod_info, super_pod_id, 8);
AT(spod_info, super_pod_type, 20);
AT(spod_info, reserve, 24);

STRUCT(base_resource, 64, 8);
AT(base_resource, vfg_id, 24);
AT(base_resource, vip_mode, 28);
AT(base_resource, reserve, 29);

STRUCT(computing_resource, 96, 8);
AT(computing_resource, dsa, 8);
AT(computing_resource, pcie_dma, 22);
AT(computing_resource, memory_size, 24);
AT(computing_resource, event_id, 32);
AT(computing_resource, topic_schedule_aicpu, 48);
AT(computing_resource, device_aicpu, 54);
AT(computing_resource, topic_ctrl_cpu_slot, 56);
AT(computing_resource, vdev_aicore_utilization, 60);
AT(computing_resource, vdev_memory_total, 64);
AT(computing_resource, vdev_memory_free, 72);
AT(computing_resource, reserve, 80);

STRUCT(media_resource, 56, 4);
AT(media_resource, vpc, 8);
AT(media_resource, venc, 20);
AT(media_resource, reserve, 24);

STRUCT(create_vdev_res_stru, 104, 4);
AT(create_vdev_res_stru, vfg_id, 4);
AT(create_vdev_res_stru, template_name, 8);
AT(create_vdev_res_stru, reserve, 40);

STRUCT(create_vdev_out, 52, 4);
AT(create_vdev_out, vfg_id, 16);
AT(create_vdev_out, reserve, 20);

STRUCT(vdev_query_info, 256, 8);
AT(vdev_query_info, status, 16);
AT(vdev_query_info, is_container_used, 20);
AT(vdev_query_info, vfg_id, 28);
AT(vdev_query_info, container_id, 32);
AT(vdev_query_info, base, 40);
AT(vdev_query_info, computing, 104);
AT(vdev_query_info, media, 200);

STRUCT(vdev_query_stru, 264, 8);
AT(vdev_query_stru, query_info, 8);

STRUCT(soc_free_resource, 224, 8);
AT(soc_free_resource, base, 8);
AT(soc_free_resource, computing, 72);
AT(soc_free_resource, media, 168);

STRUCT(soc_total_resource, 360, 8);
AT(soc_total_resource, vdev_id, 4);
AT(soc_total_resource, vfg_num, 132);
AT(soc_total_resource, vfg_bitmap, 136);
AT(soc_total_resource, base, 144);
AT(soc_total_resource, computing, 208);
AT(soc_total_resource, media, 304);

_Static_assert(sizeof(enum dcmi_boot_status) == 4, "enums are four bytes");
_Static_assert(sizeof(enum dcmi_multi_die_policy) == 4, "enums are four bytes");

#endif
