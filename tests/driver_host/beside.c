/*
 * A driver library in front of the simulated one: it has what only A3 and A5 nodes answer, and answers
 * in ways that no healthy driver does. Linked against the simulated library, which answers the rest.
 *
 * ASCEND_TEST_POD_TYPE    kind of super pod; unset means not supported
 * ASCEND_TEST_POD_BYTES   bytes the library says it wrote; unset means all 48
 * ASCEND_TEST_POLICY_LOG  file that gets a line for each call of the multi-die policy
 * ASCEND_TEST_POLICY      "refuse": -8002; "keep": success without effect; "hang"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHIP_INFORMATION = 12, SUPER_POD = 1 };
enum { INVALID = -8001, NOT_PERMITTED = -8002, NOT_SUPPORTED = -8255 };

struct super_pod {
    unsigned sdid, size, id, server, chassis, type, reserved[6];
};

_Static_assert(sizeof(struct super_pod) == 48, "the size every driver has");

static unsigned policy;

static int super_pod(unsigned group, unsigned item, void *buffer, unsigned *bytes)
{
    const char *type = getenv("ASCEND_TEST_POD_TYPE");
    const char *written = getenv("ASCEND_TEST_POD_BYTES");
    struct super_pod pod = { .size = 8, .id = 3, .chassis = 1 };

    if (group != CHIP_INFORMATION || item != SUPER_POD)
        return INVALID;
    if (!type)
        return NOT_SUPPORTED;
    if (*bytes < sizeof(pod))
        return INVALID;
    pod.type = strtoul(type, NULL, 10);
    memset(pod.reserved, 0xa5, sizeof(pod.reserved));
    *bytes = written ? strtoul(written, NULL, 10) : sizeof(pod);
    memcpy(buffer, &pod, *bytes < sizeof(pod) ? *bytes : sizeof(pod));
    return 0;
}

int dcmi_get_device_info(int card, int device, unsigned group, unsigned item, void *buffer,
                         unsigned *bytes)
{
    return card < 0 || device < 0 ? INVALID : super_pod(group, item, buffer, bytes);
}

int dcmiv2_get_device_info(int device, unsigned group, unsigned item, void *buffer, unsigned *bytes)
{
    return device < 0 ? INVALID : super_pod(group, item, buffer, bytes);
}

static int is(const char *mood)
{
    const char *set = getenv("ASCEND_TEST_POLICY");

    return set && !strcmp(set, mood);
}

static void note(const char *what, unsigned value)
{
    const char *path = getenv("ASCEND_TEST_POLICY_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;

    if (!log)
        return;
    fprintf(log, "%s %u\n", what, value);
    fclose(log);
}

int dcmi_set_multi_die_policy(unsigned wanted)
{
    note("set", wanted);
    while (is("hang"))
        pause();
    if (is("refuse"))
        return NOT_PERMITTED;
    if (!is("keep"))
        policy = wanted;
    return 0;
}

int dcmi_get_multi_die_policy(unsigned *found)
{
    note("get", policy);
    *found = policy;
    return 0;
}
