/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, and that no link is followed to make one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/test/scratch.h"
#include "directory/directory.h"

static struct directory made_directory(void) {
    struct directory made;
    struct settings settings = {.output = scratch_folder()};
    directory_open(&made, &settings, "eth0");
    return made;
}

static struct directory directory; /* of most tests */

static void check_shown(const char *text, const char *expected) {
    if (strcmp(text, expected))
        fprintf(stderr, "%s is there, %s was expected\n", text, expected);
    CHECK(!strcmp(text, expected));
}

static void test_names_tell_the_time_in_utc_and_a_number(void) {
    char name[NAME_SIZE], final[NAME_SIZE];
    directory_next_name(&directory, INT64_C(1795270500123456789), name);
    check_shown(name, "eth0_20261121T141500.123456789Z_00001.pcapng");
    CHECK(directory_owns_name(&directory, name));
    CHECK(directory_final_name(".eth0_20261121T141500.123456789Z_00001.pcapng.part", final));
    check_shown(final, name);
    CHECK(directory_final_name(".x.pcapng.2.part", final));
    check_shown(final, "x.pcapng");
}

static void test_files_of_others_are_not_own(void) {
    static const char *const others[] = {"eth0.pcapng",
                                         "_20261121T141500.123456789Z_00001.pcapng",
                                         "eth1_20261121T141500.123456789Z_00001",
                                         "eth0_20261121T141500.123456789Z_00001.pcapng.gz",
                                         "eth0_20261121T141500.12345678xZ_00001.pcapng",
                                         ".eth0_20261121T141500.123456789Z_00001.pcapng.part"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!directory_owns_name(&directory, others[i]));
    CHECK(directory_owns_name(&directory, "eth0_20261121T141500.123456789Z_123456.pcapng.zst"));
    CHECK(!directory_owns_name(&directory, "eth0_20261121T141500.123456789Z_00001-.pcapng"));
    CHECK(!directory_owns_name(&directory, "eth0_20261121T141500.123456789Z_00001-1-2.pcapng"));
    char final[NAME_SIZE];
    CHECK(!directory_final_name(".notes.txt.part", final));
    CHECK(!directory_final_name("x.pcapng.part", final));
    CHECK(!directory_final_name(".part", final));
}

static void check_other_name(const char *name, const char *expected) {
    char other[NAME_SIZE];
    directory_other_name(name, 7, other);
    check_shown(other, expected);
}

static void test_a_name_that_was_taken_is_own_by_another(void) {
    char other[NAME_SIZE];
    check_other_name("a.pcap.b_1.pcapng", "a.pcap.b_1-7.pcapng");
    check_other_name("x.pcapng.zst", "x-7.pcapng.zst");
    check_other_name("trace", "trace-7");
    directory_other_name("eth0_20261121T141500.123456789Z_00001.pcapng.zst", 12, other);
    CHECK(directory_owns_name(&directory, other));
}

static void test_a_directory_and_prefix_have_one_holder(void) {
    struct directory first = made_directory(), second = made_directory(), other = made_directory();
    strcpy(other.prefix, "eth1");
    CHECK(directory_lock(&first) && directory_lock(&first) && directory_lock(&other));
    CHECK(!directory_lock(&second) && errno == EBUSY);
    directory_unlock(&first);
    CHECK(directory_lock(&second));
    directory_unlock(&second);
    directory_unlock(&other);
    CHECK(faccessat(first.fd, ".eth0.pcapng.lock", F_OK, 0));
}

static void test_a_link_in_the_place_of_a_file_is_not_followed(void) {
    char temporary[NAME_SIZE], victim[SCRATCH_SIZE];
    struct stat info;
    scratch_path(victim, "victim");
    CHECK(!symlinkat(victim, directory.fd, ".x.pcapng.part"));
    int fd = directory_create(&directory, "x.pcapng", temporary);
    CHECK(fd >= 0);
    check_shown(temporary, ".x.pcapng.1.part");
    CHECK(lstat(victim, &info) && errno == ENOENT);
    CHECK(!fstat(fd, &info));
    CHECK_INT(info.st_mode & 0022, 0);
    close(fd);
}

int main(void) {
    umask(0);
    directory = made_directory();
    test_names_tell_the_time_in_utc_and_a_number();
    test_files_of_others_are_not_own();
    test_a_name_that_was_taken_is_own_by_another();
    test_a_directory_and_prefix_have_one_holder();
    test_a_link_in_the_place_of_a_file_is_not_followed();
    return 0;
}
