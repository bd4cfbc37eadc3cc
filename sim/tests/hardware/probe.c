/*
 * A driver user for the tests: loads the library, reads one command a line, prints one line for
 * each. `bg COMMAND` runs a command on a thread of its own and prints `bg LINE` when it returns.
 * What the interface fixes about sizes and offsets is checked when this file compiles, see
 * layout.h.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcmi.h"
#include "layout.h"
#include "probe.h"

static const char *library_path;
static void *library;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

void *find(const char *name)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        fprintf(stderr, "the library does not export %s\n", name);
        exit(3);
    }
    return symbol;
}

static void load(void)
{
    library = dlopen(library_path, RTLD_LAZY | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
}

static void say(const char *line)
{
    pthread_mutex_lock(&output);
    printf("%s\n", line);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void describe_event(char *line, size_t size, const char *word, const struct dcmi_event *e)
{
    snprintf(line, size, "%s %u %#x %u %u %u %s", word, e->type, e->dms_event.event_id,
             e->dms_event.deviceid, e->dms_event.severity, e->dms_event.assertion,
             e->dms_event.event_name);
}

static atomic_int last_serial;

static void on_event(struct dcmi_event *event)
{
    char line[512];
    atomic_store(&last_serial, event->dms_event.event_serial_num);
    describe_event(line, sizeof(line), "event", event);
    say(line);
}

static int is(const char *word, const char *command)
{
    return strcmp(word, command) == 0;
}

static int append_numbers(char *line, size_t size, int code, int count, const int *numbers)
{
    int used = snprintf(line, size, "%d", code);
    for (int i = 0; code == 0 && i < count; i++) {
        used += snprintf(line + used, size - (size_t)used, " %d", numbers[i]);
    }
    return used;
}

static int set_bytes(const void *field, size_t size)
{
    int set = 0;
    for (size_t i = 0; i < size; i++) {
        set += ((const unsigned char *)field)[i] != 0;
    }
    return set;
}

/* Fills `line` with the return code and, on success, what the call wrote. */
static void execute(const char *text, char *line, size_t size)
{
    char word[64] = "";
    int a = 0, b = 0, c = 0, d = 0, e = 0;
    sscanf(text, "%63s %i %i %i %i %i", word, &a, &b, &c, &d, &e);
    int numbers[256] = {0};
    unsigned int u = 0, v = 0;
    int code;

    if (is(word, "init")) {
        snprintf(line, size, "%d", DCMI(dcmi_init)());
    } else if (is(word, "init2")) {
        snprintf(line, size, "%d", DCMI(dcmiv2_init)());
    } else if (is(word, "reload")) {
        code = dlclose(library);
        load();
        snprintf(line, size, "%d", code);
    } else if (is(word, "symbol")) {
        char name[128] = "";
        sscanf(text, "%*s %127s", name);
        snprintf(line, size, "%s", dlsym(library, name) == NULL ? "absent" : "present");
    } else if (is(word, "unload")) {
        code = dlclose(library);
        library = NULL;
        void *still = dlopen(library_path, RTLD_LAZY | RTLD_NOLOAD);
        snprintf(line, size, "%d %s", code, still == NULL ? "gone" : "resident");
    } else if (is(word, "list")) {
        int count = 0;
        code = DCMI(dcmi_get_card_list)(&count, numbers, a);
        append_numbers(line, size, code, count, numbers);
    } else if (is(word, "list2")) {
        int count = 0;
        code = DCMI(dcmiv2_get_device_list)(numbers, &count, a);
        append_numbers(line, size, code, count, numbers);
    } else if (is(word, "count")) {
        code = DCMI(dcmi_get_all_device_count)(&a);
        append_numbers(line, size, code, 1, &a);
    } else if (is(word, "count2")) {
        code = DCMI(dcmiv2_get_all_device_count)(&a);
        append_numbers(line, size, code, 1, &a);
    } else if (is(word, "num")) {
        code = DCMI(dcmi_get_device_num_in_card)(a, &b);
        append_numbers(line, size, code, 1, &b);
    } else if (is(word, "ids")) {
        code = DCMI(dcmi_get_device_id_in_card)(a, &numbers[0], &numbers[1], &numbers[2]);
        append_numbers(line, size, code, 3, numbers);
    } else if (is(word, "type")) {
        enum dcmi_unit_type type = DCMI_UNIT_NPU;
        code = DCMI(dcmi_get_device_type)(a, b, &type);
        snprintf(line, size, "%d %u", code, (unsigned int)type);
    } else if (is(word, "logic")) {
        code = DCMI(dcmi_get_device_logic_id)(&c, a, b);
        append_numbers(line, size, code, 1, &c);
    } else if (is(word, "bylogic")) {
        code = DCMI(dcmi_get_card_id_device_id_from_logicid)(&numbers[0], &numbers[1],
                                                             (unsigned int)a);
        append_numbers(line, size, code, 2, numbers);
    } else if (is(word, "byphy")) {
        code = DCMI(dcmi_get_card_id_device_id_from_phyid)(&numbers[0], &numbers[1],
                                                           (unsigned int)a);
        append_numbers(line, size, code, 2, numbers);
    } else if (is(word, "phy")) {
        code = DCMI(dcmi_get_device_phyid_from_logicid)((unsigned int)a, &u);
        v = 0;
        DCMI(dcmi_get_device_logicid_from_phyid)(u, &v);
        snprintf(line, size, "%d %u %u", code, u, v);
    } else if (is(word, "phy2")) {
        code = DCMI(dcmiv2_get_chip_phy_id_by_dev_id)(a, &u);
        v = 0;
        DCMI(dcmiv2_get_dev_id_by_chip_phy_id)(u, &v);
        snprintf(line, size, "%d %u %u", code, u, v);
    } else if (is(word, "version")) {
        char version[64] = "";
        code = DCMI(dcmi_get_dcmi_version)(version, (unsigned int)a);
        snprintf(line, size, "%d %s", code, version);
    } else if (is(word, "chip")) {
        struct dcmi_chip_info_v2 info = {0};
        struct dcmi_chip_info old = {0};
        code = DCMI(dcmi_get_device_chip_info_v2)(a, b, &info);
        DCMI(dcmi_get_device_chip_info)(a, b, &old);
        snprintf(line, size, "%d %.32s %.32s %.32s %.32s %u %u", code, info.chip_type,
                 info.chip_name, info.chip_ver, info.npu_name, info.aicore_cnt, old.aicore_cnt);
    } else if (is(word, "chip2")) {
        struct dcmi_chip_info_v2 info = {0};
        code = DCMI(dcmiv2_get_device_chip_info)(a, &info);
        snprintf(line, size, "%d %s %s %u", code, info.chip_name, info.npu_name, info.aicore_cnt);
    } else if (is(word, "board")) {
        struct dcmi_board_info info = {0};
        code = DCMI(dcmi_get_device_board_info)(a, b, &info);
        snprintf(line, size, "%d %#x %u", code, info.board_id, info.slot_id);
    } else if (is(word, "mainboard")) {
        code = DCMI(dcmi_get_mainboard_id)(a, b, &u);
        snprintf(line, size, "%d %#x", code, u);
    } else if (is(word, "die")) {
        struct dcmi_die_id die = {{0}};
        code = DCMI(dcmi_get_device_die_v2)(a, b, (enum dcmi_die_type)c, &die);
        snprintf(line, size, "%d %08X-%08X-%08X-%08X-%08X", code, die.soc_die[0], die.soc_die[1],
                 die.soc_die[2], die.soc_die[3], die.soc_die[4]);
    } else if (is(word, "die2")) {
        struct dcmi_die_id die = {{0}};
        code = DCMI(dcmiv2_get_device_die_id)(a, (enum dcmi_die_type)b, &die);
        snprintf(line, size, "%d %08X-%08X-%08X-%08X-%08X", code, die.soc_die[0], die.soc_die[1],
                 die.soc_die[2], die.soc_die[3], die.soc_die[4]);
    } else if (is(word, "pcie")) {
        struct dcmi_pcie_info_all info = {0};
        code = DCMI(dcmi_get_device_pcie_info_v2)(a, b, &info);
        snprintf(line, size, "%d %04x %04x %04X:%02X:%02X.%X", code, info.venderid, info.deviceid,
                 (unsigned int)info.domain, info.bdf_busid, info.bdf_deviceid, info.bdf_funcid);
    } else if (is(word, "oldchip")) {
        struct dcmi_chip_info info = {0};
        code = DCMI(dcmi_get_device_chip_info)(a, b, &info);
        snprintf(line, size, "%d %.32s %.32s %u", code, info.chip_type, info.chip_name,
                 info.aicore_cnt);
    } else if (is(word, "rawchip")) {
        /* The last byte of each name, which is 0 unless the name fills its field. */
        struct dcmi_chip_info_v2 info = {0};
        code = DCMI(dcmi_get_device_chip_info_v2)(a, b, &info);
        snprintf(line, size, "%d %.32s %u %u %u %u", code, info.chip_name, info.chip_type[31],
                 info.chip_name[31], info.chip_ver[31], info.npu_name[31]);
    } else if (is(word, "product")) {
        char name[64] = "";
        code = DCMI(dcmi_get_product_type)(a, b, name, c);
        snprintf(line, size, "%d %s", code, name);
    } else if (is(word, "label")) {
        struct dcmi_elabel_info label = {0};
        code = DCMI(dcmi_get_card_elabel_v2)(a, &label);
        snprintf(line, size, "%d %s %s", code, label.model, label.serial_number);
    } else if (is(word, "affinity")) {
        char cpus[1024] = "";
        code = DCMI(dcmi_get_affinity_cpu_info_by_device_id)(a, b, cpus, &c);
        snprintf(line, size, "%d %s %d", code, cpus, c);
    } else if (is(word, "brother")) {
        code = DCMI(dcmi_get_netdev_brother_device)(a, b, &c);
        append_numbers(line, size, code, 1, &c);
    } else if (is(word, "link")) {
        code = DCMI(dcmi_get_topo_info_by_device_id)(a, b, c, d, &e);
        append_numbers(line, size, code, 1, &e);
    } else if (is(word, "link2")) {
        code = DCMI(dcmiv2_get_topo_info_by_device_id)(a, b, &c);
        append_numbers(line, size, code, 1, &c);
    } else if (is(word, "network")) {
        code = DCMI(dcmi_get_device_network_health)(a, b, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "network2")) {
        code = DCMI(dcmiv2_get_device_network_health)(a, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "ip")) {
        /* card, device, port, port number, type of address */
        struct dcmi_ip_addr ip, mask;
        char texts[2][INET6_ADDRSTRLEN] = {"", ""};
        memset(&ip, 0xA5, sizeof(ip));
        memset(&mask, 0xA5, sizeof(mask));
        ip.ip_type = (unsigned int)e;
        code = DCMI(dcmi_get_device_ip)(a, b, (enum dcmi_port_type)c, d, &ip, &mask);
        if (code == 0) {
            int family = ip.ip_type == DCMI_IP_V6 ? AF_INET6 : AF_INET;
            inet_ntop(family, &ip.u_addr, texts[0], sizeof(texts[0]));
            inet_ntop(family, &mask.u_addr, texts[1], sizeof(texts[1]));
        }
        snprintf(line, size, "%d %s %s", code, texts[0], texts[1]);
    } else if (is(word, "reserved")) {
        /* Bytes of reserved fields that are not zero: PCI, memory, utilisation. */
        struct dcmi_pcie_info_all pcie = {0};
        struct dcmi_memory_info memory = {0};
        struct dcmi_multi_utilization_info rates = {0};
        DCMI(dcmi_get_device_pcie_info_v2)(a, b, &pcie);
        DCMI(dcmi_get_device_memory_info_v3)(a, b, &memory);
        DCMI(dcmi_get_device_multi_utilization_rate)(a, b, &rates);
        snprintf(line, size, "%d %d %d", set_bytes(pcie.reserve, sizeof(pcie.reserve)),
                 set_bytes(memory.reserve, sizeof(memory.reserve)),
                 set_bytes(rates.reserve, sizeof(rates.reserve)));
    } else if (is(word, "board2")) {
        struct dcmi_board_info info = {0};
        code = DCMI(dcmiv2_get_device_board_info)(a, &info);
        snprintf(line, size, "%d %#x %u", code, info.board_id, info.slot_id);
    } else if (is(word, "mainboard2")) {
        code = DCMI(dcmiv2_get_mainboard_id)(a, &u);
        snprintf(line, size, "%d %#x", code, u);
    } else if (is(word, "health")) {
        code = DCMI(dcmi_get_device_health)(a, b, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "health2")) {
        code = DCMI(dcmiv2_get_device_health)(a, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "codes") || is(word, "codes2")) {
        unsigned int codes[128] = {0};
        int count = 0;
        int used;
        code = is(word, "codes")
                   ? DCMI(dcmi_get_device_errorcode_v2)(a, b, &count, codes, (unsigned int)c)
                   : DCMI(dcmiv2_get_device_error_code_list)(a, &count, codes, (unsigned int)b);
        used = snprintf(line, size, "%d", code);
        for (int i = 0; code == 0 && i < count; i++) {
            used += snprintf(line + used, size - (size_t)used, " %#x", codes[i]);
        }
    } else if (is(word, "oldcodes")) {
        unsigned int codes[128] = {0};
        code = DCMI(dcmi_get_device_errorcode)(a, b, &c, codes, &d);
        snprintf(line, size, "%d %d %d %#x", code, c, d, codes[0]);
    } else if (is(word, "text")) {
        unsigned char message[64] = "";
        code = DCMI(dcmi_get_device_errorcode_string)(a, b, (unsigned int)c, message, d);
        snprintf(line, size, "%d %s", code, message);
    } else if (is(word, "subscribe") || is(word, "subscribe2")) {
        /* card, device, filter flag, event id, severity; the second generation without card */
        int first = is(word, "subscribe") ? c : b;
        struct dcmi_event_filter filter = {0};
        filter.filter_flag = (unsigned long long)first;
        filter.event_id = (unsigned int)(is(word, "subscribe") ? d : c);
        filter.severity = (unsigned char)(is(word, "subscribe") ? e : d);
        memset(filter.resv, 0xA5, sizeof(filter.resv));
        code = is(word, "subscribe") ? DCMI(dcmi_subscribe_fault_event)(a, b, filter, on_event)
                                     : DCMI(dcmiv2_subscribe_fault_event)(a, filter, on_event);
        snprintf(line, size, "%d", code);
    } else if (is(word, "serial")) {
        snprintf(line, size, "%d", atomic_load(&last_serial));
    } else if (is(word, "subscribe-null")) {
        struct dcmi_event_filter filter = {0};
        snprintf(line, size, "%d", DCMI(dcmi_subscribe_fault_event)(-1, -1, filter, NULL));
    } else if (is(word, "getevent")) {
        /* card, device, timeout, filter flag, event id */
        struct dcmi_event_filter filter = {0};
        struct dcmi_event event;
        memset(&event, 0, sizeof(event));
        filter.filter_flag = (unsigned long long)d;
        filter.event_id = (unsigned int)e;
        code = DCMI(dcmi_get_fault_event)(a, b, c, filter, &event);
        char number[16];
        snprintf(number, sizeof(number), "%d", code);
        describe_event(line, size, number, &event);
    } else if (is(word, "temperature")) {
        code = DCMI(dcmi_get_device_temperature)(a, b, &c);
        append_numbers(line, size, code, 1, &c);
    } else if (is(word, "power")) {
        code = DCMI(dcmi_get_device_power_info)(a, b, &c);
        append_numbers(line, size, code, 1, &c);
    } else if (is(word, "mcupower")) {
        code = DCMI(dcmi_mcu_get_power_info)(a, &c);
        append_numbers(line, size, code, 1, &c);
    } else if (is(word, "voltage")) {
        code = DCMI(dcmi_get_device_voltage)(a, b, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "frequency")) {
        code = DCMI(dcmi_get_device_frequency)(a, b, (enum dcmi_frequency_type)c, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "utilization")) {
        u = 77;
        code = DCMI(dcmi_get_device_utilization_rate)(a, b, c, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "utilization2")) {
        code = DCMI(dcmiv2_get_device_utilization_rate)(a, b, &u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "multi")) {
        struct dcmi_multi_utilization_info info = {0};
        code = DCMI(dcmi_get_device_multi_utilization_rate)(a, b, &info);
        snprintf(line, size, "%d %d", code, info.npu_util >= info.aicore_util);
    } else if (is(word, "hbm")) {
        struct dcmi_hbm_info info = {0};
        code = DCMI(dcmi_get_device_hbm_info)(a, b, &info);
        snprintf(line, size, "%d %llu %llu %d", code, info.memory_size, info.memory_usage,
                 info.temp);
    } else if (is(word, "hbm2")) {
        struct dcmi_hbm_info info = {0};
        code = DCMI(dcmiv2_get_device_hbm_info)(a, &info);
        snprintf(line, size, "%d %llu", code, info.memory_size);
    } else if (is(word, "memory")) {
        struct dcmi_memory_info info = {0};
        code = DCMI(dcmi_get_device_memory_info_v3)(a, b, &info);
        snprintf(line, size, "%d %llu %llu %lu %u", code, info.memory_size, info.memory_available,
                 info.hugepagesize, info.utiliza);
    } else if (is(word, "ecc")) {
        /* Watches that no more than 28 bytes are written. */
        unsigned char space[40];
        memset(space, 0xA5, sizeof(space));
        code = DCMI(dcmi_get_device_ecc_info)(a, b, (enum dcmi_ecc_type)c,
                                              (struct dcmi_ecc_info *)(void *)space);
        int kept = 0;
        for (size_t i = sizeof(struct dcmi_ecc_info); i < sizeof(space); i++) {
            kept += space[i] == 0xA5;
        }
        snprintf(line, size, "%d %d", code, kept);
    } else if (is(word, "processes")) {
        struct dcmi_proc_mem_info processes[64];
        memset(processes, 0, sizeof(processes));
        code = DCMI(dcmi_get_device_resource_info)(a, b, processes, &c);
        snprintf(line, size, "%d %d %d %lu", code, c, processes[0].proc_id,
                 processes[0].proc_mem_usage);
    } else if (is(word, "null")) {
        numbers[0] = DCMI(dcmi_get_device_health)(a, b, NULL);
        numbers[1] = DCMI(dcmi_get_card_list)(NULL, &c, 1);
        numbers[2] = DCMI(dcmi_get_device_temperature)(a, b, NULL);
        numbers[3] = DCMI(dcmi_get_device_die_v2)(a, b, DCMI_VDIE, NULL);
        numbers[4] = DCMI(dcmiv2_get_device_health)(a, NULL);
        append_numbers(line, size, 0, 5, numbers);
    } else if (!execute_vdevice(text, line, size)) {
        snprintf(line, size, "unknown command %s", word);
    }
}

static void *in_background(void *argument)
{
    char *command = argument;
    char line[4096] = "";
    char answer[4200];
    execute(command, line, sizeof(line));
    snprintf(answer, sizeof(answer), "bg %s", line);
    say(answer);
    free(command);
    return NULL;
}

int main(int argc, char **argv)
{
    char command[256];
    if (argc != 2) {
        fprintf(stderr, "usage: probe LIBRARY\n");
        return 2;
    }
    library_path = argv[1];
    load();
    while (fgets(command, sizeof(command), stdin) != NULL) {
        if (strncmp(command, "bg ", 3) == 0) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, in_background, strdup(command + 3)) != 0) {
                return 3;
            }
            pthread_detach(thread);
        } else {
            char line[4096] = "";
            execute(command, line, sizeof(line));
            say(line);
        }
    }
    return 0;
}
