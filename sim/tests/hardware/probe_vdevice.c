/*
 * The part of the test program that is about vNPUs, settings of the node and resets.
 */
#include <stdio.h>
#include <string.h>

#include "dcmi.h"
#include "layout.h"
#include "probe.h"

#define ANY 0xFFFFFFFFU
#define GUARD 0xA5

static int is(const char *word, const char *command)
{
    return strcmp(word, command) == 0;
}

/* AI cores, MB, AI CPUs, then VPC, VENC, VDEC, JPEGD, JPEGE, PNGD. */
static void describe(char *line, size_t size, const struct dcmi_computing_resource *computing,
                     const struct dcmi_media_resource *media)
{
    snprintf(line, size, "%g %llu %u %g %g %g %g %g %g", (double)computing->aic,
             computing->memory_size, computing->device_aicpu, (double)media->vpc,
             (double)media->venc, (double)media->vdec, (double)media->jpegd,
             (double)media->jpege, (double)media->pngd);
}

/* card, device, template, vdev id or -1, vgroup or -1 */
static void create(const char *text, char *line, size_t size)
{
    struct dcmi_create_vdev_res_stru wanted;
    struct dcmi_create_vdev_out made;
    char name[64] = "";
    int card = 0, device = 0, vdev = -1, vgroup = -1;
    memset(&wanted, 0, sizeof(wanted));
    memset(&made, 0, sizeof(made));
    sscanf(text, "%*s %i %i %63s %i %i", &card, &device, name, &vdev, &vgroup);
    wanted.vdev_id = (unsigned int)vdev;
    wanted.vfg_id = (unsigned int)vgroup;
    /* A name that fills the field has no end mark. */
    memcpy(wanted.template_name, name, sizeof(wanted.template_name));
    int code = DCMI(dcmi_create_vdevice)(card, device, &wanted, &made);
    if (made.vfg_id == ANY || code != 0) {
        snprintf(line, size, "%d %u -", code, made.vdev_id);
    } else {
        snprintf(line, size, "%d %u %u", code, made.vdev_id, made.vfg_id);
    }
}

/* Buffers begin one byte off any alignment: the call takes bytes. */
static void query(const char *text, const char *word, char *line, size_t size)
{
    unsigned char space[1 + 512];
    unsigned char *buffer = space + 1;
    int card = 0, device = 0, vdev = 0, room = 0;
    char parts[256] = "";
    memset(space, GUARD, sizeof(space));
    int code;
    unsigned int written;

    if (is(word, "total")) {
        struct dcmi_soc_total_resource total;
        room = (int)sizeof(total);
        sscanf(text, "%*s %i %i %i", &card, &device, &room);
        written = (unsigned int)room;
        code = DCMI(dcmi_get_device_info)(card, device, DCMI_MAIN_VDEVICE, DCMI_VDEVICE_TOTAL,
                                          buffer, &written);
        memcpy(&total, buffer, sizeof(total));
        if (code == 0) {
            describe(parts, sizeof(parts), &total.computing, &total.media);
            snprintf(line, size, "%d %u vdevs %u %u vgroups %u %#x: %s", code, written,
                     total.vdev_num, total.vdev_id[0], total.vfg_num, total.vfg_bitmap, parts);
        }
    } else if (is(word, "free")) {
        struct dcmi_soc_free_resource left;
        room = (int)sizeof(left);
        sscanf(text, "%*s %i %i %i", &card, &device, &room);
        written = (unsigned int)room;
        code = DCMI(dcmi_get_device_info)(card, device, DCMI_MAIN_VDEVICE, DCMI_VDEVICE_FREE,
                                          buffer, &written);
        memcpy(&left, buffer, sizeof(left));
        if (code == 0) {
            describe(parts, sizeof(parts), &left.computing, &left.media);
            snprintf(line, size, "%d %u vgroups %u %#x: %s", code, written, left.vfg_num,
                     left.vfg_bitmap, parts);
        }
    } else {
        struct dcmi_vdev_query_stru one;
        int activity = is(word, "activity");
        room = (int)sizeof(one);
        sscanf(text, "%*s %i %i %i %i", &card, &device, &vdev, &room);
        memcpy(buffer, &vdev, sizeof(vdev));
        written = (unsigned int)room;
        code = DCMI(dcmi_get_device_info)(card, device, DCMI_MAIN_VDEVICE,
                                          activity ? DCMI_VDEVICE_ACTIVITY : DCMI_VDEVICE_ONE,
                                          buffer, &written);
        memcpy(&one, buffer, sizeof(one));
        describe(parts, sizeof(parts), &one.query_info.computing, &one.query_info.media);
        if (code == 0 && activity) {
            snprintf(line, size, "%d %u %u %llu %llu", code, one.vdev_id,
                     one.query_info.computing.vdev_aicore_utilization,
                     one.query_info.computing.vdev_memory_total,
                     one.query_info.computing.vdev_memory_free);
        } else if (code == 0) {
            snprintf(line, size, "%d %u %u %.16s used %u vgroup %d: %s", code, written,
                     one.vdev_id, one.query_info.name, one.query_info.is_container_used,
                     (int)one.query_info.vfg_id, parts);
        }
    }
    if (code != 0) {
        snprintf(line, size, "%d %u", code, written);
    }
    for (size_t i = code == 0 ? written : (size_t)room; i < sizeof(space) - 1; i++) {
        if (buffer[i] != GUARD) {
            snprintf(line, size, "overrun at %zu", i);
        }
    }
}

static void super_pod(const char *text, const char *word, char *line, size_t size)
{
    struct dcmi_spod_info pod;
    unsigned int written = sizeof(pod);
    int a = 0, b = 0;
    memset(&pod, 0, sizeof(pod));
    sscanf(text, "%*s %i %i", &a, &b);
    int code = is(word, "spod") ? DCMI(dcmi_get_device_info)(a, b, DCMI_MAIN_CHIP,
                                                             DCMI_CHIP_SUPER_POD, &pod, &written)
                                : DCMI(dcmiv2_get_device_info)(a, DCMI_MAIN_CHIP,
                                                               DCMI_CHIP_SUPER_POD, &pod,
                                                               &written);
    snprintf(line, size, "%d %#x %u %u %u %u %u", code, pod.sdid, pod.scale_type,
             pod.super_pod_id, pod.server_id, pod.chassis_id, pod.super_pod_type);
}

static int execute_setting(const char *word, int a, int b, char *line, size_t size)
{
    int number = -1;
    unsigned int u = 99;
    unsigned char byte = 99;
    enum dcmi_multi_die_policy policy = DCMI_DIES_TOGETHER;
    if (is(word, "vmode")) {
        int code = DCMI(dcmi_get_vdevice_mode)(&number);
        snprintf(line, size, "%d %d", code, number);
    } else if (is(word, "set-vmode")) {
        snprintf(line, size, "%d", DCMI(dcmi_set_vdevice_mode)(a));
    } else if (is(word, "recover")) {
        int code = DCMI(dcmi_get_vnpu_config_recover_mode)(&u);
        snprintf(line, size, "%d %u", code, u);
    } else if (is(word, "set-recover")) {
        snprintf(line, size, "%d", DCMI(dcmi_set_vnpu_config_recover_mode)((unsigned int)a));
    } else if (is(word, "policy")) {
        int code = DCMI(dcmi_get_multi_die_policy)(&policy);
        snprintf(line, size, "%d %u", code, (unsigned int)policy);
    } else if (is(word, "set-policy")) {
        policy = (enum dcmi_multi_die_policy)a;
        snprintf(line, size, "%d", DCMI(dcmi_set_multi_die_policy)(policy));
    } else if (is(word, "workmode")) {
        int code = DCMI(dcmi_get_npu_work_mode)(a, &byte);
        snprintf(line, size, "%d %u", code, byte);
    } else if (is(word, "rawinfo")) {
        /* main, sub on card 0 device 0 */
        unsigned char buffer[512];
        unsigned int written = sizeof(buffer);
        snprintf(line, size, "%d",
                 DCMI(dcmi_get_device_info)(0, 0, (enum dcmi_main_cmd)a, (unsigned int)b, buffer,
                                            &written));
    } else {
        return 0;
    }
    return 1;
}

static int execute_reset(const char *word, int a, int b, int c, char *line, size_t size)
{
    enum dcmi_boot_status status = DCMI_BOOT_UNINIT;
    int state = 0;
    if (is(word, "boot")) {
        int code = DCMI(dcmi_get_device_boot_status)(a, b, &status);
        snprintf(line, size, "%d %u", code, (unsigned int)status);
    } else if (is(word, "boot2")) {
        int code = DCMI(dcmiv2_get_device_boot_status)(a, &status);
        snprintf(line, size, "%d %u", code, (unsigned int)status);
    } else if (is(word, "outband")) {
        int code = DCMI(dcmi_get_device_outband_channel_state)(a, b, &state);
        snprintf(line, size, "%d %d", code, state);
    } else if (is(word, "outband2")) {
        int code = DCMI(dcmiv2_get_device_outband_channel_state)(a, &state);
        snprintf(line, size, "%d %d", code, state);
    } else if (is(word, "prereset")) {
        snprintf(line, size, "%d", DCMI(dcmi_pre_reset_soc)(a, b));
    } else if (is(word, "oldprereset")) {
        snprintf(line, size, "%d", DCMI(dcmi_set_device_pre_reset)(a, b));
    } else if (is(word, "prereset2")) {
        snprintf(line, size, "%d", DCMI(dcmiv2_pre_reset_device)(a));
    } else if (is(word, "reset")) {
        snprintf(line, size, "%d", DCMI(dcmi_set_device_reset)(a, b, (enum dcmi_reset_channel)c));
    } else if (is(word, "reset2")) {
        snprintf(line, size, "%d", DCMI(dcmiv2_reset_device)(a, (enum dcmi_reset_channel)b));
    } else if (is(word, "rescan")) {
        snprintf(line, size, "%d", DCMI(dcmi_rescan_soc)(a, b));
    } else if (is(word, "oldrescan")) {
        snprintf(line, size, "%d", DCMI(dcmi_set_device_rescan)(a, b));
    } else if (is(word, "rescan2")) {
        snprintf(line, size, "%d", DCMI(dcmiv2_rescan_device)(a));
    } else {
        return 0;
    }
    return 1;
}

int execute_vdevice(const char *text, char *line, size_t size)
{
    char word[64] = "";
    int a = 0, b = 0, c = 0;
    sscanf(text, "%63s %i %i %i", word, &a, &b, &c);
    if (is(word, "create")) {
        create(text, line, size);
    } else if (is(word, "destroy")) {
        snprintf(line, size, "%d", DCMI(dcmi_set_destroy_vdevice)(a, b, (unsigned int)c));
    } else if (is(word, "vdev") || is(word, "activity") || is(word, "total") ||
               is(word, "free")) {
        query(text, word, line, size);
    } else if (is(word, "spod") || is(word, "spod2")) {
        super_pod(text, word, line, size);
    } else if (is(word, "null-rows")) {
        struct dcmi_create_vdev_out made;
        unsigned int written = 264;
        snprintf(line, size, "%d %d %d %d %d %d", DCMI(dcmi_create_vdevice)(a, b, NULL, &made),
                 DCMI(dcmi_get_device_info)(a, b, DCMI_MAIN_VDEVICE, 0, NULL, &written),
                 DCMI(dcmi_get_device_info)(a, b, DCMI_MAIN_VDEVICE, 0, &made, NULL),
                 DCMI(dcmi_get_device_boot_status)(a, b, NULL), DCMI(dcmi_get_vdevice_mode)(NULL),
                 DCMI(dcmi_get_multi_die_policy)(NULL));
    } else {
        return execute_setting(word, a, b, line, size) ||
               execute_reset(word, a, b, c, line, size);
    }
    return 1;
}
