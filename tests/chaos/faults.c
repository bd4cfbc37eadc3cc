/*
 * Preloaded into the agent: kills it at a chosen write, or makes its disk refuse.
 *
 * The file named by ASCEND_TEST_FAULTS is looked for at each write to a file or to kubelet and at each
 * sync. "kill N" ends the process with SIGKILL at the Nth such step from then on: before a write, and
 * before and after a sync. "errno N" makes every change of a regular file fail with that number for
 * as long as the file is there. Standard streams and the driver host are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static const char *order;
static long steps_left = -1;

__attribute__((constructor)) static void begin(void)
{
    char line[4096] = {0};
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    const char *word = got > 0 ? line + strlen(line) + 1 : "";
    if (strcmp(word, "run") == 0)
        order = getenv("ASCEND_TEST_FAULTS");
}

/* Counts one step; returns the error number that a change of a regular file shall fail with. */
static int step(int regular)
{
    char text[32] = {0};
    if (!order)
        return 0;
    long fd = syscall(SYS_openat, AT_FDCWD, order, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long got = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    long number;
    if (got > 0 && sscanf(text, "errno %ld", &number) == 1)
        return regular ? (int)number : 0;
    if (got > 0 && sscanf(text, "kill %ld", &number) == 1) {
        long unset = -1;
        __atomic_compare_exchange_n(&steps_left, &unset, number, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (__atomic_sub_fetch(&steps_left, 1, __ATOMIC_SEQ_CST) == 0) {
            kill(getpid(), SIGKILL);
            for (;;)
                pause();
        }
    }
    return 0;
}

enum kind { OTHER, REGULAR, SOCKET };

/* Only kubelet connects there; other sockets have a traffic of their own. */
static int is_plugin_socket(int fd)
{
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name - 1;
    return getsockname(fd, (struct sockaddr *)&name, &length) == 0 && name.sun_family == AF_UNIX
        && strstr(name.sun_path, "/dp/") != NULL;
}

static enum kind kind_of(int fd)
{
    struct stat about;
    if (fd <= 2 || !order || fstat(fd, &about) != 0)
        return OTHER;
    if (S_ISREG(about.st_mode))
        return REGULAR;
    return S_ISSOCK(about.st_mode) && is_plugin_socket(fd) ? SOCKET : OTHER;
}

static int refused(int fd)
{
    enum kind kind = kind_of(fd);
    int number = kind == OTHER ? 0 : step(kind == REGULAR);
    if (number != 0)
        errno = number;
    return number != 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    return refused(fd) ? -1 : REAL(pwrite64)(fd, bytes, count, at);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    return refused(fd) ? -1 : REAL(write)(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return refused(fd) ? -1 : REAL(writev)(fd, parts, count);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    return refused(fd) ? -1 : REAL(send)(fd, bytes, count, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return refused(fd) ? -1 : REAL(sendmsg)(fd, message, flags);
}

int ftruncate64(int fd, off64_t length)
{
    return refused(fd) ? -1 : REAL(ftruncate64)(fd, length);
}

int fsync(int fd)
{
    if (refused(fd))
        return -1;
    int done = REAL(fsync)(fd);
    step(0);
    return done;
}

int fdatasync(int fd)
{
    if (refused(fd))
        return -1;
    int done = REAL(fdatasync)(fd);
    step(0);
    return done;
}
