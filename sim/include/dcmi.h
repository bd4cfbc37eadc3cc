/*
 * Interface of the simulated libdcmi.so: functions, structs and numbers.
 *
 * Written for this project from the interface's facts. All functions return 0 or a negative code.
 * The second generation (dcmiv2_*) names a chip by its logic id.
 */
#ifndef ASCEND_SIM_DCMI_H
#define ASCEND_SIM_DCMI_H

#ifdef __cplusplus
extern "C" {
#endif

#define DCMI_OK 0
#define DCMI_INVALID_PARAMETER (-8001)
#define DCMI_NOT_PERMITTED (-8002)
#define DCMI_INNER_ERROR (-8005)
#define DCMI_TIMEOUT (-8006)
#define DCMI_INVALID_DEVICE_ID (-8007)
#define DCMI_NO_SUCH_DEVICE (-8008)
#define DCMI_NOT_READY (-8012)
#define DCMI_BUSY (-8013)
#define DCMI_RESET_FAILED (-8015)
#define DCMI_UPGRADING (-8017)
#define DCMI_OCCUPIED (-8020)
#define DCMI_NOT_CONFIGURED (-8023)
#define DCMI_NOT_SUPPORTED (-8255)

enum dcmi_unit_type {
    DCMI_UNIT_NPU = 0,
    DCMI_UNIT_MCU = 1,
    DCMI_UNIT_CPU = 2,
    DCMI_UNIT_INVALID = 0xff
};

enum dcmi_die_type { DCMI_NDIE = 0, DCMI_VDIE = 1, DCMI_DDIE = 2 };

enum dcmi_frequency_type {
    DCMI_FREQUENCY_DDR = 1,
    DCMI_FREQUENCY_CTRL_CPU = 2,
    DCMI_FREQUENCY_HBM = 6,
    DCMI_FREQUENCY_AICORE = 7,
    DCMI_FREQUENCY_AICORE_RATED = 9,
    DCMI_FREQUENCY_VECTOR = 12
};

enum dcmi_ecc_type { DCMI_ECC_DDR = 0, DCMI_ECC_SRAM = 1, DCMI_ECC_HBM = 2, DCMI_ECC_NPU = 3 };

enum dcmi_port_type { DCMI_PORT_VNIC = 0, DCMI_PORT_ROCE = 1 };

enum dcmi_ip_type { DCMI_IP_V4 = 0, DCMI_IP_V6 = 1, DCMI_IP_ANY = 2 };

/* The first six are the same everywhere; what follows depends on the driver. */
enum dcmi_link_type {
    DCMI_LINK_SELF = 0,
    DCMI_LINK_SYS = 1,
    DCMI_LINK_PHB = 2,
    DCMI_LINK_HCCS = 3,
    DCMI_LINK_PXB = 4,
    DCMI_LINK_PIX = 5,
    DCMI_LINK_SIO = 6,
    DCMI_LINK_HCCS_SWITCH = 7,
    DCMI_LINK_UB = 8,
    DCMI_LINK_UNKNOWN = 9
};

struct dcmi_chip_info {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
};

struct dcmi_chip_info_v2 {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
    unsigned char npu_name[32];
};

struct dcmi_board_info {
    unsigned int board_id;
    unsigned int pcb_id;
    unsigned int bom_id;
    unsigned int slot_id;
};

struct dcmi_pcie_info_all {
    unsigned int venderid;
    unsigned int subvenderid;
    unsigned int deviceid;
    unsigned int subdeviceid;
    int domain;
    unsigned int bdf_busid;
    unsigned int bdf_deviceid;
    unsigned int bdf_funcid;
    unsigned char reserve[32];
};

struct dcmi_die_id {
    unsigned int soc_die[5];
};

struct dcmi_ecc_info {
    int enable_flag;
    unsigned int single_bit_error_cnt;
    unsigned int double_bit_error_cnt;
    unsigned int total_single_bit_error_cnt;
    unsigned int total_double_bit_error_cnt;
    unsigned int single_bit_isolated_pages_cnt;
    unsigned int double_bit_isolated_pages_cnt;
};

/* What libraries of some driver builds write instead, without a way to tell. Give them room. */
struct dcmi_ecc_info_long {
    struct dcmi_ecc_info info;
    unsigned int single_bit_next_isolated_pages_cnt;
    unsigned int double_bit_next_isolated_pages_cnt;
};

struct dcmi_hbm_info {
    unsigned long long memory_size;
    unsigned int freq;
    unsigned long long memory_usage;
    int temp;
    unsigned int bandwith_util_rate;
};

struct dcmi_memory_info {
    unsigned long long memory_size;
    unsigned long long memory_available;
    unsigned int freq;
    unsigned long hugepagesize;
    unsigned long hugepages_total;
    unsigned long hugepages_free;
    unsigned int utiliza;
    unsigned char reserve[60];
};

/* Room for 64 entries is the contract of the calls that fill it. */
struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage;
};

/* ip_type says on input which address is wanted. */
struct dcmi_ip_addr {
    union {
        unsigned char ip6[16];
        unsigned char ip4[4];
    } u_addr;
    unsigned int ip_type;
};

struct dcmi_multi_utilization_info {
    unsigned int aic_util;
    unsigned int aiv_util;
    unsigned int aicore_util;
    unsigned int npu_util;
    unsigned int reserve[8];
};

struct dcmi_elabel_info {
    char product_name[256];
    char model[256];
    char manufacturer[256];
    char manufacturer_date[256];
    char serial_number[256];
};

/* filter_flag: bit 0 event id, bit 1 severity and above, bit 2 node type. */
struct dcmi_event_filter {
    unsigned long long filter_flag;
    unsigned int event_id;
    unsigned char severity;
    unsigned char node_type;
    unsigned char resv[32];
};

struct dcmi_dms_fault_event {
    unsigned int event_id;
    unsigned short deviceid;
    unsigned char node_type;
    unsigned char node_id;
    unsigned char sub_node_type;
    unsigned char sub_node_id;
    unsigned char severity;
    unsigned char assertion;
    int event_serial_num;
    int notify_serial_num;
    unsigned long long alarm_raised_time;
    char event_name[256];
    char additional_info[32];
    unsigned char resv[32];
};

struct dcmi_event {
    unsigned int type;
    struct dcmi_dms_fault_event dms_event;
};

/* Main and sub commands of dcmi_get_device_info that are simulated. */
enum dcmi_main_cmd { DCMI_MAIN_CHIP = 12, DCMI_MAIN_VDEVICE = 52 };

enum dcmi_chip_sub_cmd { DCMI_CHIP_SUPER_POD = 1 };

enum dcmi_vdevice_sub_cmd {
    DCMI_VDEVICE_ONE = 0,
    DCMI_VDEVICE_TOTAL = 1,
    DCMI_VDEVICE_FREE = 2,
    DCMI_VDEVICE_ACTIVITY = 5
};

/* DCMI_MAIN_CHIP, DCMI_CHIP_SUPER_POD */
struct dcmi_spod_info {
    unsigned int sdid;
    unsigned int scale_type;
    unsigned int super_pod_id;
    unsigned int server_id;
    unsigned int chassis_id;
    unsigned int super_pod_type;
    unsigned int reserve[6];
};

struct dcmi_base_resource {
    unsigned long long token;
    unsigned long long token_max;
    unsigned long long task_timeout;
    unsigned int vfg_id;
    unsigned char vip_mode;
    unsigned char reserve[31];
};

/* memory_size in MB, the two vdev_memory fields in KB */
struct dcmi_computing_resource {
    float aic;
    float aiv;
    unsigned short dsa;
    unsigned short rtsq;
    unsigned short acsq;
    unsigned short cdqm;
    unsigned short c_core;
    unsigned short ffts;
    unsigned short sdma;
    unsigned short pcie_dma;
    unsigned long long memory_size;
    unsigned int event_id;
    unsigned int notify_id;
    unsigned int stream_id;
    unsigned int model_id;
    unsigned short topic_schedule_aicpu;
    unsigned short host_ctrl_cpu;
    unsigned short host_aicpu;
    unsigned short device_aicpu;
    unsigned short topic_ctrl_cpu_slot;
    unsigned int vdev_aicore_utilization;
    unsigned long long vdev_memory_total;
    unsigned long long vdev_memory_free;
    unsigned char reserve[12];
};

struct dcmi_media_resource {
    float jpegd;
    float jpege;
    float vpc;
    float vdec;
    float pngd;
    float venc;
    unsigned char reserve[32];
};

/* 0xFFFFFFFF in vdev_id or vfg_id leaves the choice to the driver. */
struct dcmi_create_vdev_res_stru {
    unsigned int vdev_id;
    unsigned int vfg_id;
    char template_name[32];
    unsigned char reserve[64];
};

struct dcmi_create_vdev_out {
    unsigned int vdev_id;
    unsigned int pcie_bus;
    unsigned int pcie_device;
    unsigned int pcie_func;
    unsigned int vfg_id;
    unsigned char reserve[32];
};

struct dcmi_vdev_query_info {
    char name[16];
    unsigned int status;
    unsigned int is_container_used;
    unsigned int vfid;
    unsigned int vfg_id;
    unsigned long long container_id;
    struct dcmi_base_resource base;
    struct dcmi_computing_resource computing;
    struct dcmi_media_resource media;
};

/* DCMI_VDEVICE_ONE and DCMI_VDEVICE_ACTIVITY; the caller sets vdev_id. */
struct dcmi_vdev_query_stru {
    unsigned int vdev_id;
    struct dcmi_vdev_query_info query_info;
};

/* DCMI_VDEVICE_FREE */
struct dcmi_soc_free_resource {
    unsigned int vfg_num;
    unsigned int vfg_bitmap;
    struct dcmi_base_resource base;
    struct dcmi_computing_resource computing;
    struct dcmi_media_resource media;
};

/* DCMI_VDEVICE_TOTAL */
struct dcmi_soc_total_resource {
    unsigned int vdev_num;
    unsigned int vdev_id[32];
    unsigned int vfg_num;
    unsigned int vfg_bitmap;
    struct dcmi_base_resource base;
    struct dcmi_computing_resource computing;
    struct dcmi_media_resource media;
};

enum dcmi_reset_channel { DCMI_OUTBAND = 0, DCMI_INBAND = 1 };

/* Ready is DCMI_BOOT_SERVING; DCMI_BOOT_FINISHED still lies before it. */
enum dcmi_boot_status {
    DCMI_BOOT_UNINIT = 0,
    DCMI_BOOT_BIOS = 1,
    DCMI_BOOT_OS = 2,
    DCMI_BOOT_FINISHED = 3,
    DCMI_BOOT_SERVING = 16
};

enum dcmi_multi_die_policy { DCMI_DIES_TOGETHER = 0, DCMI_DIES_APART = 1 };

typedef void (*dcmi_fault_event_callback)(struct dcmi_event *event);

/* Init, versions, enumeration */
int dcmi_init(void);
int dcmi_get_dcmi_version(char *version, unsigned int length);
int dcmi_get_driver_version(char *version, unsigned int length);
int dcmi_get_card_list(int *number, int *list, int length);
int dcmi_get_card_num_list(int *number, int *list, int length);
int dcmi_get_all_device_count(int *count);
int dcmi_get_device_num_in_card(int card, int *number);
int dcmi_get_device_id_in_card(int card, int *id_max, int *mcu_id, int *cpu_id);
int dcmi_get_device_type(int card, int device, enum dcmi_unit_type *type);
int dcmi_get_device_logic_id(int *logic, int card, int device);
int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned int logic);
int dcmi_get_card_id_device_id_from_phyid(int *card, int *device, unsigned int phy);
int dcmi_get_device_phyid_from_logicid(unsigned int logic, unsigned int *phy);
int dcmi_get_device_logicid_from_phyid(unsigned int phy, unsigned int *logic);

/* Identity */
int dcmi_get_device_chip_info(int card, int device, struct dcmi_chip_info *info);
int dcmi_get_device_chip_info_v2(int card, int device, struct dcmi_chip_info_v2 *info);
int dcmi_get_device_board_info(int card, int device, struct dcmi_board_info *info);
int dcmi_get_mainboard_id(int card, int device, unsigned int *id);
int dcmi_get_device_die_v2(int card, int device, enum dcmi_die_type type,
                           struct dcmi_die_id *die);
int dcmi_get_device_pcie_info_v2(int card, int device, struct dcmi_pcie_info_all *info);
int dcmi_get_product_type(int card, int device, char *type, int length);
int dcmi_get_card_elabel_v2(int card, struct dcmi_elabel_info *label);
int dcmi_get_affinity_cpu_info_by_device_id(int card, int device, char *cpus, int *length);
int dcmi_get_netdev_brother_device(int card, int device, int *brother);

/* Network and links */
int dcmi_get_device_network_health(int card, int device, unsigned int *health);
int dcmi_get_device_ip(int card, int device, enum dcmi_port_type port, int port_id,
                       struct dcmi_ip_addr *ip, struct dcmi_ip_addr *mask);
int dcmi_get_topo_info_by_device_id(int card, int device, int other_card, int other_device,
                                    int *link);

/* Health and faults */
int dcmi_get_device_health(int card, int device, unsigned int *health);
int dcmi_get_device_errorcode(int card, int device, int *count, unsigned int *codes, int *width);
int dcmi_get_device_errorcode_v2(int card, int device, int *count, unsigned int *codes,
                                 unsigned int length);
int dcmi_get_device_errorcode_string(int card, int device, unsigned int code,
                                     unsigned char *text, int length);
int dcmi_subscribe_fault_event(int card, int device, struct dcmi_event_filter filter,
                               dcmi_fault_event_callback callback);
int dcmi_get_fault_event(int card, int device, int timeout_ms, struct dcmi_event_filter filter,
                         struct dcmi_event *event);

/* Sensors, utilisation, memory, holders */
int dcmi_get_device_power_info(int card, int device, int *power);
int dcmi_mcu_get_power_info(int card, int *power);
int dcmi_get_device_temperature(int card, int device, int *celsius);
int dcmi_get_device_voltage(int card, int device, unsigned int *voltage);
int dcmi_get_device_frequency(int card, int device, enum dcmi_frequency_type type,
                              unsigned int *mhz);
int dcmi_get_device_utilization_rate(int card, int device, int type, unsigned int *percent);
int dcmi_get_device_multi_utilization_rate(int card, int device,
                                           struct dcmi_multi_utilization_info *info);
int dcmi_get_device_hbm_info(int card, int device, struct dcmi_hbm_info *info);
int dcmi_get_device_memory_info_v3(int card, int device, struct dcmi_memory_info *info);
int dcmi_get_device_ecc_info(int card, int device, enum dcmi_ecc_type type,
                             struct dcmi_ecc_info *info);
int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes,
                                  int *number);

/* Commands, vNPUs, settings; `size` is the buffer's size on entry and what was written after */
int dcmi_get_device_info(int card, int device, enum dcmi_main_cmd main, unsigned int sub,
                         void *buffer, unsigned int *size);
int dcmi_create_vdevice(int card, int device, struct dcmi_create_vdev_res_stru *wanted,
                        struct dcmi_create_vdev_out *made);
int dcmi_set_destroy_vdevice(int card, int device, unsigned int vdev_id);
int dcmi_get_vdevice_mode(int *mode);
int dcmi_set_vdevice_mode(int mode);
int dcmi_get_vnpu_config_recover_mode(unsigned int *mode);
int dcmi_set_vnpu_config_recover_mode(unsigned int mode);
int dcmi_get_multi_die_policy(enum dcmi_multi_die_policy *policy);
int dcmi_set_multi_die_policy(enum dcmi_multi_die_policy policy);
int dcmi_get_npu_work_mode(int card, unsigned char *mode);

/* Resets */
int dcmi_get_device_boot_status(int card, int device, enum dcmi_boot_status *status);
int dcmi_get_device_outband_channel_state(int card, int device, int *state);
int dcmi_pre_reset_soc(int card, int device);
int dcmi_set_device_pre_reset(int card, int device);
int dcmi_set_device_reset(int card, int device, enum dcmi_reset_channel channel);
int dcmi_rescan_soc(int card, int device);
int dcmi_set_device_rescan(int card, int device);

/* Second generation */
int dcmiv2_init(void);
int dcmiv2_get_dcmi_version(char *version, unsigned int length);
int dcmiv2_get_driver_version(char *version, unsigned int length);
int dcmiv2_get_device_list(int *list, int *number, int length);
int dcmiv2_get_all_device_count(int *count);
int dcmiv2_get_device_type(int device, enum dcmi_unit_type *type);
int dcmiv2_get_chip_phy_id_by_dev_id(int device, unsigned int *phy);
int dcmiv2_get_dev_id_by_chip_phy_id(unsigned int phy, unsigned int *device);
int dcmiv2_get_device_chip_info(int device, struct dcmi_chip_info_v2 *info);
int dcmiv2_get_device_board_info(int device, struct dcmi_board_info *info);
int dcmiv2_get_mainboard_id(int device, unsigned int *id);
int dcmiv2_get_device_die_id(int device, enum dcmi_die_type type, struct dcmi_die_id *die);
int dcmiv2_get_device_pcie_info(int device, struct dcmi_pcie_info_all *info);
int dcmiv2_get_device_elabel_info(int device, struct dcmi_elabel_info *label);
int dcmiv2_get_affinity_cpu_info_by_dev_id(int device, char *cpus, int *length);
int dcmiv2_get_device_network_health(int device, unsigned int *health);
int dcmiv2_get_topo_info_by_device_id(int device, int other, int *link);
int dcmiv2_get_device_health(int device, unsigned int *health);
int dcmiv2_get_device_error_code_list(int device, int *count, unsigned int *codes,
                                      unsigned int length);
int dcmiv2_get_device_error_info(int device, unsigned int code, unsigned char *text, int length);
int dcmiv2_subscribe_fault_event(int device, struct dcmi_event_filter filter,
                                 dcmi_fault_event_callback callback);
int dcmiv2_get_fault_event(int device, int timeout_ms, struct dcmi_event_filter filter,
                           struct dcmi_event *event);
int dcmiv2_get_device_power_info(int device, int *power);
int dcmiv2_get_device_temperature(int device, int *celsius);
int dcmiv2_get_device_voltage(int device, unsigned int *voltage);
int dcmiv2_get_device_frequency(int device, enum dcmi_frequency_type type, unsigned int *mhz);
int dcmiv2_get_device_utilization_rate(int device, int type, unsigned int *percent);
int dcmiv2_get_device_multi_utilization_rate(int device,
                                             struct dcmi_multi_utilization_info *info);
int dcmiv2_get_device_hbm_info(int device, struct dcmi_hbm_info *info);
int dcmiv2_get_device_ecc_info(int device, enum dcmi_ecc_type type, struct dcmi_ecc_info *info);
int dcmiv2_get_device_info(int device, enum dcmi_main_cmd main, unsigned int sub, void *buffer,
                           unsigned int *size);
int dcmiv2_get_device_boot_status(int device, enum dcmi_boot_status *status);
int dcmiv2_get_device_outband_channel_state(int device, int *state);
int dcmiv2_pre_reset_device(int device);
int dcmiv2_reset_device(int device, enum dcmi_reset_channel channel);
int dcmiv2_rescan_device(int device);
int dcmiv2_get_device_proc_mem_info(int device, struct dcmi_proc_mem_info *processes,
                                    int *number);

#ifdef __cplusplus
}
#endif

#endif
