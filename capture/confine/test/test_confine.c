/* SPDX-License-Identifier: Apache-2.0 */
/* A user exists if a line of the map has the number.
 *
 * The confined program can still write its files, and an intruder in it cannot escape. Each try is
 * a process of its own, first without the part of the confinement that is to stop it, where it must
 * succeed, and then with it, by the program's own functions, where it must not. As root the process
 * also becomes the user of the output directory, as the program does. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/test/scratch.h"
#include "confine/confine.h"

#define ORDINARY    65534 /* a user and a group */
#define PAGE        4096
#define TRIED_LEAST 8

/* Exit codes of a try. Any other end, but by the filter of calls, is a failure of this test. */
enum end { ESCAPED = 0, HELD = 1, NOT_SET_UP = 9 };

static struct directory directory;
static struct identity identity;
static int place_fd; /* a folder of the user with captures/ and secret */
static int file_fd, listener, terminal;
static struct sockaddr_in address;
static pid_t neighbor; /* a process of the same user */

static bool write_beside(void) {
    return openat(place_fd, "made", O_WRONLY | O_CREAT, 0600) >= 0;
}

static bool write_up_from_the_directory(void) {
    return openat(directory.fd, "../made", O_WRONLY | O_CREAT, 0600) >= 0;
}

static bool read_another_file_of_the_owner(void) {
    return openat(directory.fd, "../secret", O_RDONLY) >= 0;
}

static bool remove_another_file_of_the_owner(void) {
    return !unlinkat(place_fd, "secret", 0);
}

static bool rename_into_the_parent(void) {
    return !renameat(directory.fd, "code", place_fd, "made");
}

static bool make_a_directory(void) {
    return !mkdirat(directory.fd, "made", 0700);
}

static bool link_to_elsewhere(void) {
    return !symlinkat("/etc/passwd", directory.fd, "made");
}

static bool read_of_the_system(void) {
    return open("/etc/passwd", O_RDONLY) >= 0;
}

static bool be_root_for_files(void) {
    return !setfsuid((uid_t)-1);
}

static bool become_root(void) {
    return !setresuid(0, 0, 0);
}

static bool map_executable(void) {
    return mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

static bool map_only_executable(void) {
    return mmap(NULL, PAGE, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static bool map_a_file_executable(void) {
    return mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_fd, 0) != MAP_FAILED;
}

static bool make_executable(void) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page != MAP_FAILED && !mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

static bool make_executable_by_key(void) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page != MAP_FAILED &&
           !syscall(SYS_pkey_mprotect, page, (size_t)PAGE, PROT_READ | PROT_EXEC, -1);
}

static bool attach_executable(void) {
    int memory = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0700);
    void *page = memory < 0 ? (void *)-1 : shmat(memory, NULL, SHM_EXEC);
    if (memory >= 0)
        shmctl(memory, IPC_RMID, NULL);
    return page != (void *)-1;
}

static bool make_a_file_in_memory(void) {
    return memfd_create("code", 0) >= 0;
}

static bool make_all_memory_executable(void) {
    return personality(READ_IMPLIES_EXEC) >= 0;
}

static bool run_a_program(void) {
    execl("/bin/true", "true", NULL);
    return false; /* where it can be run, its exit code is that of success here */
}

static bool make_a_process(void) {
    pid_t child = fork();
    if (!child)
        _exit(0);
    return child > 0;
}

static bool connect_by_tcp(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof address);
}

static int early_tcp; /* made before the confinement, as one that a bug may leave open */

static bool connect_an_earlier_socket(void) {
    return !connect(early_tcp, (struct sockaddr *)&address, sizeof address);
}

static bool bind_an_earlier_socket(void) {
    struct sockaddr_in any = {.sin_family = AF_INET};
    return !bind(early_tcp, (struct sockaddr *)&any, sizeof any);
}

static bool send_by_udp(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address) == 1;
}

static bool signal_another_process(void) {
    return !kill(neighbor, 0);
}

static struct sockaddr_un abstract = {.sun_family = AF_UNIX};

static bool send_to_an_abstract_socket(void) {
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    return sendto(fd, "x", 1, 0, (struct sockaddr *)&abstract, sizeof abstract) == 1;
}

static bool control_a_terminal(void) {
    struct winsize size;
    return !ioctl(terminal, TIOCGWINSZ, &size);
}

static bool become_dumpable(void) {
    return !prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* The kernel would send SIGIO for it: before Linux 6.12, whatever Landlock says. */
static bool own_a_process_by_fcntl(void) {
    return !fcntl(early_tcp, F_SETOWN, neighbor);
}

static bool own_a_process_by_ioctl(void) {
    return !ioctl(early_tcp, FIOSETOWN, &neighbor);
}

static bool own_a_group_by_ioctl(void) {
    return !ioctl(early_tcp, SIOCSPGRP, &neighbor);
}

static bool trace_a_process(void) {
    return !ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

enum part { CALLS, FILES, TCP, SCOPE, USER };

static const struct {
    const char *name;
    bool (*escapes)(void);
    enum part part;
} tries[] = {
    {"a file beside the directory", write_beside, FILES},
    {"a file above the directory", write_up_from_the_directory, FILES},
    {"another file of the owner, read", read_another_file_of_the_owner, FILES},
    {"another file of the owner, removed", remove_another_file_of_the_owner, FILES},
    {"a file moved out of the directory", rename_into_the_parent, FILES},
    {"a directory in the directory", make_a_directory, FILES},
    {"a link in the directory", link_to_elsewhere, FILES},
    {"a file of the system", read_of_the_system, FILES},
    {"root's files", be_root_for_files, USER},
    {"root", become_root, USER},
    {"memory to write and execute", map_executable, CALLS},
    {"memory to execute", map_only_executable, CALLS},
    {"a file as code", map_a_file_executable, CALLS},
    {"memory made executable", make_executable, CALLS},
    {"memory made executable by key", make_executable_by_key, CALLS},
    {"shared memory to execute", attach_executable, CALLS},
    {"a file in memory", make_a_file_in_memory, CALLS},
    {"memory that is executable where it can be read", make_all_memory_executable, CALLS},
    {"a program", run_a_program, CALLS},
    {"a process", make_a_process, CALLS},
    {"TCP", connect_by_tcp, CALLS},
    {"TCP with an earlier socket", connect_an_earlier_socket, TCP},
    {"TCP taken on an earlier socket", bind_an_earlier_socket, TCP},
    {"UDP", send_by_udp, CALLS},
    {"a signal", signal_another_process, CALLS},
    {"a signal, were the call allowed", signal_another_process, SCOPE},
    {"a signal by the owner of a socket", own_a_process_by_fcntl, CALLS},
    {"a signal by the owner of a socket, as an ioctl", own_a_process_by_ioctl, CALLS},
    {"a signal by the group of a socket", own_a_group_by_ioctl, CALLS},
    {"an abstract socket", send_to_an_abstract_socket, SCOPE},
    {"a terminal", control_a_terminal, CALLS},
    {"a process that can be looked into", become_dumpable, CALLS},
    {"a process that is traced", trace_a_process, CALLS},
};

static void make_place(void) {
    static char captures[SCRATCH_SIZE];
    struct settings settings = {.output = captures};
    scratch_path(captures, "captures");
    place_fd = open(scratch_folder(), O_RDONLY | O_DIRECTORY);
    CHECK(!mkdir(captures, 0700));
    CHECK(!close(openat(place_fd, "secret", O_WRONLY | O_CREAT, 0600)));
    file_fd = openat(place_fd, "captures/code", O_RDWR | O_CREAT, 0600);
    CHECK(!ftruncate(file_fd, PAGE));
    if (!getuid()) {
        static const char *const given[] = {"", "captures", "secret", "captures/code"};
        for (size_t i = 0; i < sizeof given / sizeof *given; i++)
            CHECK(!fchownat(place_fd, given[i], ORDINARY, ORDINARY, AT_EMPTY_PATH));
    }
    directory_open(&directory, &settings, "eth0");
    privilege_choose(&identity, NULL, &directory);
}

static void open_sockets(void) {
    socklen_t size = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 64));
    CHECK(!getsockname(listener, (struct sockaddr *)&address, &size));
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "%s", scratch_folder());
    int answers = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(!bind(answers, (struct sockaddr *)&abstract, sizeof abstract));
}

static void start_neighbor(void) {
    int ready[2];
    char byte;
    CHECK(!pipe(ready));
    neighbor = fork();
    if (!neighbor) {
        privilege_drop(&identity, false);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user forgets it */
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(NOT_SET_UP);
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
}

/* The user is dropped in any case, unless that itself is what is to stop the try. */
static void confine(enum part part, bool confined) {
    if (confined || part != USER)
        privilege_drop(&identity, true);
    bool set_up = true;
    if (confined && (part == FILES || part == TCP || part == SCOPE))
        set_up = sandbox_files(&directory); /* alone: not because of a call that is refused */
    if (confined && part == CALLS)
        set_up = sandbox_calls();
    if (!set_up)
        _exit(NOT_SET_UP);
}

static bool escapes(size_t number, bool confined) {
    int status;
    pid_t child = fork();
    if (!child) {
        early_tcp = socket(AF_INET, SOCK_STREAM, 0);
        confine(tries[number].part, confined);
        _exit(tries[number].escapes() ? ESCAPED : HELD);
    }
    CHECK(waitpid(child, &status, 0) == child);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS && confined;
    bool held = killed || (WIFEXITED(status) && WEXITSTATUS(status) == HELD);
    if (status && !held)
        fprintf(stderr, "%s: the try ended with status 0x%x\n", tries[number].name,
                (unsigned)status);
    CHECK(!status || held);
    bool ends = tries[number].escapes == run_a_program || tries[number].escapes == trace_a_process;
    CHECK(!confined || killed || !ends);
    return !status;
}

/* Makes a file in the directory with all parts of the confinement. */
static void test_files_can_be_made(void) {
    char temporary[NAME_SIZE];
    int status;
    pid_t child = fork();
    if (!child) {
        privilege_drop(&identity, true);
        if (!sandbox_files(&directory) || !sandbox_calls())
            _exit(NOT_SET_UP);
        int fd = directory_create(&directory, "x.pcapng", temporary);
        _exit(fd < 0 || write(fd, "x", 1) != 1 || ftruncate(fd, 0) ||
              renameat2(directory.fd, temporary, directory.fd, "x.pcapng", 0) ||
              unlinkat(directory.fd, "x.pcapng", 0));
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_SET_UP)
        fprintf(stderr, "a file in the directory: not tried\n");
    else
        CHECK_INT(WEXITSTATUS(status), 0);
}

/* A terminal gets requests of usbmon and does not know them; it gets none of its own. */
static void test_usbmon_may_be_asked(void) {
    static const unsigned long requests[] = {0x9203 /* MON_IOCG_STATS */, TIOCGWINSZ};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct winsize answer;
        int status;
        pid_t child = fork();
        if (!child) {
            confine(CALLS, true);
            _exit(ioctl(terminal, requests[i], &answer) && errno == ENOTTY ? ESCAPED : HELD);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK((status == ESCAPED) == !i);
    }
}

static bool can_be_confined(enum part part) {
    int version =
        (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    switch (part) {
    case FILES: return version >= 2; /* before, moving a file needed no rule: it was refused */
    case TCP: return version >= 4;
    case SCOPE: return version >= 6;
    case USER: return identity.changes;
    default: return true;
    }
}

/* What a try that succeeds leaves behind. */
static void tidy(void) {
    unlinkat(place_fd, "captures/made", AT_REMOVEDIR);
    unlinkat(place_fd, "captures/made", 0);
    if (!renameat2(place_fd, "made", place_fd, "captures/code", RENAME_NOREPLACE))
        return;
    unlinkat(place_fd, "made", 0);
    close(openat(place_fd, "secret", O_WRONLY | O_CREAT, 0600));
    if (!getuid())
        CHECK(!fchownat(place_fd, "secret", ORDINARY, ORDINARY, 0));
}

/* False when it means nothing here: a kernel without that confinement, a machine without that call.
 */
static bool try_to_escape(size_t number) {
    bool works = can_be_confined(tries[number].part) && escapes(number, false);
    tidy();
    bool escaped = works && escapes(number, true);
    tidy();
    if (escaped || !works)
        fprintf(stderr, "%s: %s\n", tries[number].name, escaped ? "ESCAPED" : "not tried");
    CHECK(!escaped);
    return works;
}

static bool map_has(const char *map, unsigned number) {
    char path[SCRATCH_SIZE];
    scratch_path(path, "uid_map");
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(map, file) >= 0 && !fclose(file));
    return user_map_has(path, number);
}

static void test_a_user_map_has_the_users_of_its_lines(void) {
    static const char all[] = "         0          0 4294967295\n";
    static const char one[] = "         0       1000          1\n";
    static const char two[] = "0 1000 1\n1 100000 65536\n";
    CHECK(map_has(all, 0) && map_has(all, 65534) && map_has(all, 4294967294u));
    CHECK(map_has(one, 0) && !map_has(one, 1) && !map_has(one, 1000) && !map_has(one, 65534));
    CHECK(map_has(two, 0) && map_has(two, 1) && map_has(two, 65534) && map_has(two, 65536) &&
          !map_has(two, 65537));
    CHECK(!map_has("", 0) && !map_has("nonsense\n", 0));
    CHECK(user_map_has("/nowhere/uid_map", 5)); /* a kernel without user namespaces */
    CHECK(user_map_has("/proc/self/uid_map", getuid()));
}

int main(void) {
    test_a_user_map_has_the_users_of_its_lines();
    make_place();
    open_sockets();
    start_neighbor();
    test_files_can_be_made();
    test_usbmon_may_be_asked();
    size_t tried = 0;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        tried += try_to_escape(i);
    CHECK(tried >= TRIED_LEAST);
    CHECK(!kill(neighbor, SIGKILL) && waitpid(neighbor, NULL, 0) == neighbor);
    return 0;
}
