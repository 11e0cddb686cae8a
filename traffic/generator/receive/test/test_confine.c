/* SPDX-License-Identifier: Apache-2.0 */
/* A confined receiver writes its files and opens its sockets, and an intruder in it cannot leave.
 * Each try is a process of its own; what is to be refused succeeds before the confinement. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/test/scratch.h"
#include "receive/confine.h"

#define ORDINARY 65534

static struct receive_options options;
static char folder[SCRATCH_SIZE], file[SCRATCH_SIZE], beside[SCRATCH_SIZE];
static int earlier; /* a socket */

static bool make_a_file(void) {
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    return fd >= 0 && write(fd, "x", 1) == 1 && !unlink(file);
}

static bool open_datagrams(void) {
    return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0 &&
           socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
}

static bool read_counters(void) {
    return host_udp_drops() >= 0;
}

static bool make_a_file_beside(void) {
    return open(beside, O_RDWR | O_CREAT, 0600) >= 0;
}

static bool read_of_the_system(void) {
    return open("/etc/passwd", O_RDONLY) >= 0;
}

static bool open_tcp(void) {
    return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static bool open_unix(void) {
    return socket(AF_UNIX, SOCK_DGRAM, 0) >= 0;
}

static bool own_by_fcntl(void) {
    return !fcntl(earlier, F_SETOWN, getppid());
}

static bool own_by_ioctl(void) {
    int parent = getppid();
    return !ioctl(earlier, FIOSETOWN, &parent);
}

static bool signal_the_parent(void) {
    return !kill(getppid(), 0);
}

static bool run_a_program(void) {
    execl("/bin/true", "true", NULL);
    return false;
}

static bool be_root(void) {
    return !setresuid(0, 0, 0);
}

static const struct {
    bool (*succeeds)(void);
    bool stays; /* with the confinement */
} tries[] = {
    {make_a_file, true},        {open_datagrams, true},      {read_counters, true},
    {open_tcp, false},          {open_unix, false},          {own_by_fcntl, false},
    {own_by_ioctl, false},      {run_a_program, false},      {be_root, false},
    {signal_the_parent, false}, {make_a_file_beside, false}, {read_of_the_system, false},
};
#define OF_LANDLOCK 2u /* the last ones */

/* Returns the status of the process. */
static int try_it(size_t number, bool confined) {
    int status;
    pid_t child = fork();
    if (!child) {
        if (confined)
            receive_confine(&options);
        if (confined && options.target.folder && !getuid())
            _exit(2);
        _exit(!tries[number].succeeds());
    }
    CHECK(waitpid(child, &status, 0) == child);
    unlink(beside);
    return status;
}

/* It would stay what it is, with its rights. */
static void test_only_root_chooses_a_user(void) {
    const struct receive_options chosen = {.user = "nobody"};
    int status;
    pid_t child = fork();
    if (!child) {
        if (!getuid() && setresuid(ORDINARY, ORDINARY, ORDINARY))
            _exit(0);
        receive_confine(&chosen);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(WEXITSTATUS(status), EXIT_MISSING);
}

int main(void) {
    bool has_landlock =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;
    size_t count = sizeof tries / sizeof *tries;
    bool is_root = !getuid();
    scratch_path(folder, "in");
    scratch_path(file, "in/made");
    scratch_path(beside, "made");
    CHECK(!mkdir(folder, 0700));
    CHECK(!is_root || !chown(folder, ORDINARY, ORDINARY));
    CHECK(!is_root || !chmod(scratch_folder(), 0711));
    options.target.folder = folder;
    earlier = socket(AF_INET, SOCK_STREAM, 0);
    for (size_t i = 0; i < count - (has_landlock ? 0 : OF_LANDLOCK); i++) {
        bool possible = !try_it(i, false);
        CHECK(possible || !tries[i].stays);
        CHECK(!try_it(i, true) == (possible && tries[i].stays));
    }
    test_only_root_chooses_a_user();
    return 0;
}
