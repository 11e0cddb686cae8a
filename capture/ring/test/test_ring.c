/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the bounds of a ring remove: in the order of capture, over all names of a folder, and
 * never those that are kept, of a running capture, or before their command. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/test/scratch.h"
#include "ring/ring.h"

/* In the order of capture, which is that of their numbers: the clock was set back by a day after
 * the first, and the interfaces changed. */
static const char *const captured[] = {
    "eth0_20261122T000000.000000000Z_00007.pcapng",
    "eth1_20261121T000000.000000000Z_00008.pcapng.zst",
    "eth0+eth1_20261121T000001.000000000Z_00009.pcap",
    "eth0_20261121T000002.000000000Z_100000.pcapng",
};
#define CAPTURED (sizeof captured / sizeof *captured)

static struct directory directory;

static void make_file(const char *name) {
    int fd = openat(directory.fd, name, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, "0123456789", 10) == 10 && !close(fd));
}

static bool is_there(const char *name) {
    struct stat info;
    return !fstatat(directory.fd, name, &info, AT_SYMLINK_NOFOLLOW);
}

static void make_hidden(const char *name, const char *suffix) {
    char hidden[NAME_SIZE];
    snprintf(hidden, sizeof hidden, ".%s%s", name, suffix);
    make_file(hidden);
}

/* Scans all files under these bounds; `expected` has a letter for each, x if it is removed. */
static void check(const struct settings *settings, const char *expected) {
    struct ring ring;
    char found[CAPTURED + 1] = "";
    ring_open(&ring, settings, &directory);
    ring_scan(&ring);
    for (size_t i = 0; i < CAPTURED; i++) {
        found[i] = is_there(captured[i]) ? '.' : 'x';
        make_file(captured[i]);
    }
    if (strcmp(found, expected))
        fprintf(stderr, "%s is removed, %s was expected\n", found, expected);
    CHECK(!strcmp(found, expected));
    CHECK(is_there("eth0_notes.pcapng"));
    while (ring_make_room(&ring))
        continue;
    for (size_t i = 0; i < CAPTURED; i++)
        make_file(captured[i]);
    free(ring.files);
    close(ring.directory_fd);
}

static void make_old(const char *name, int64_t age_ns) {
    struct timespec then = to_timespec(realtime_ns() - age_ns), times[] = {then, then};
    CHECK(!utimensat(directory.fd, name, times, 0));
}

static void test_bounds_hold_together_in_the_order_of_capture(void) {
    check(&(struct settings){.ring_files = 3}, "x...");
    check(&(struct settings){.ring_total_bytes = 20}, "xx..");
    check(&(struct settings){.ring_files = 3, .ring_total_bytes = 20}, "xx..");
    check(&(struct settings){.ring_total_bytes = 1}, "xxx."); /* never the newest */
    check(&(struct settings){.min_free_percent = 100}, "xxx.");
    check(&(struct settings){.min_free_bytes = 1}, "....");
    check(&(struct settings){.ring_files = 9}, "....");
}

/* A file of the future is not old. */
static void test_old_files_are_removed_whatever_their_number(void) {
    make_old(captured[1], 60 * NS_PER_S);
    make_old(captured[2], -3600 * NS_PER_S);
    make_old(captured[3], 61 * NS_PER_S);
    check(&(struct settings){.ring_age_ns = 59 * NS_PER_S}, ".x.x");
}

static void test_what_is_kept_or_has_no_command_yet_stays(void) {
    make_hidden(captured[0], MARKER_KEEP);
    check(&(struct settings){.ring_files = 1}, ".xx.");
    make_hidden(captured[1], MARKER_ON_CLOSE);
    check(&(struct settings){.ring_files = 1, .on_close = "true"}, "..x.");
    make_hidden(captured[1], MARKER_ON_CLOSE);
    check(&(struct settings){.ring_total_bytes = 10, .on_close = "true"}, ".xx."); /* for space */
    make_hidden(captured[1], MARKER_ON_CLOSE);
    check(&(struct settings){.ring_files = 1}, ".xx."); /* nobody runs one */
    CHECK(!unlinkat(directory.fd, ".eth0_20261122T000000.000000000Z_00007.pcapng.keep", 0));
}

/* A directory in place of the file cannot be removed either. */
static void test_a_file_that_cannot_be_removed_yet_stays_in_the_ring(void) {
    struct settings settings = {.ring_files = 1};
    struct ring ring;
    ring_open(&ring, &settings, &directory);
    CHECK(!unlinkat(directory.fd, captured[0], 0) && !mkdirat(directory.fd, captured[0], 0700));
    for (size_t i = 0; i < 3; i++)
        ring_add(&ring, directory.fd, captured[i], 10, false, false);
    CHECK(is_there(captured[0]) && !is_there(captured[1]) && is_there(captured[2]));
    CHECK(ring.count == 2 && ring.removed == 1);
    settings.ring_age_ns = 1;
    ring_check(&ring);
    CHECK(is_there(captured[0]) && !is_there(captured[2]) && ring.count == 1);
    CHECK(!ring_make_room(&ring)); /* it says so, or its caller would ask for ever */
    CHECK(!unlinkat(directory.fd, captured[0], AT_REMOVEDIR));
    make_file(captured[0]);
    ring_check(&ring);
    CHECK(!is_there(captured[0]) && !ring.count && ring.removed == 3);
    for (size_t i = 0; i < 3; i++)
        make_file(captured[i]);
    free(ring.files);
    close(ring.directory_fd);
}

static void test_files_of_another_running_capture_are_not_of_the_ring(void) {
    struct directory other = directory;
    other.lock_fd = -1;
    strcpy(other.prefix, "eth0+eth1");
    strcpy(other.suffix, ".pcap");
    CHECK(directory_lock(&other));
    check(&(struct settings){.ring_files = 1}, "xx..");
    directory_unlock(&other);
    check(&(struct settings){.ring_files = 1}, "xxx.");
}

/* -w DIR/eth0.pcapng has chosen the name, and leaves all others alone. */
static void test_a_name_that_was_chosen_is_a_ring_of_its_own(void) {
    directory.named = true;
    check(&(struct settings){.ring_files = 1}, "x...");
    directory.named = false;
}

static void test_numbers_go_on(void) {
    char name[NAME_SIZE];
    make_hidden("eth9_20261121T000002.000000000Z_100005.pcapng", TEMPORARY);
    make_file("x_20261121T000002.000000000Z_4000000001.pcapng");
    directory_continue_numbers(&directory);
    directory_next_name(&directory, 0, name);
    CHECK(!strcmp(name, "eth0_19700101T000000.000000000Z_100006.pcapng"));
}

int main(void) {
    struct settings settings = {.output = scratch_folder()};
    directory_open(&directory, &settings, "eth0");
    for (size_t i = 0; i < CAPTURED; i++)
        make_file(captured[i]);
    make_file("eth0_notes.pcapng");
    test_bounds_hold_together_in_the_order_of_capture();
    test_old_files_are_removed_whatever_their_number();
    test_what_is_kept_or_has_no_command_yet_stays();
    test_a_file_that_cannot_be_removed_yet_stays_in_the_ring();
    test_files_of_another_running_capture_are_not_of_the_ring();
    test_a_name_that_was_chosen_is_a_ring_of_its_own();
    test_numbers_go_on();
    return 0;
}
