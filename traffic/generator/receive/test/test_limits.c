/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a receiver's disk and slots for others. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/test/scratch.h"
#include "session/exchange.h"

#define S(seconds) ((seconds)*NS_PER_S)

static void test_a_test_must_move_in_each_minute(void) {
    struct rate_floor floor = {.ns = S(5)};
    CHECK(rate_floor_holds(&floor, 1000, 0, S(64), false));       /* not a minute yet */
    CHECK(rate_floor_holds(&floor, 1000, 7500, S(65), false));    /* 1000 bit/s */
    CHECK(!rate_floor_holds(&floor, 1000, 14000, S(125), false)); /* less, since then */
    CHECK(rate_floor_holds(&floor, 1000, 1000000, S(185), false));
    /* what was before counts no more */
    CHECK(!rate_floor_holds(&floor, 1000, 1000000, S(245), false));
    CHECK(rate_floor_holds(&floor, 1000, 1000000, S(400), true)); /* this end hashes a file */
    CHECK(rate_floor_holds(&floor, 1000, 1000000, S(420), true));
    CHECK(rate_floor_holds(&floor, 1000, 1000000, S(479), false));
    CHECK(!rate_floor_holds(&floor, 1000, 1000000, S(480), false));
    floor.ns = S(500); /* the test begins later */
    CHECK(rate_floor_holds(&floor, 1000, 1000000, S(470), false));
    CHECK(rate_floor_holds(&floor, 1000, 1007500, S(560), false));
}

static void make_file(const char *name, size_t bytes) {
    static const char zeros[20000];
    char path[SCRATCH_SIZE];
    scratch_path(path, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(write(fd, zeros, bytes) == (ssize_t)bytes && !fsync(fd) && !close(fd));
}

static void test_files_have_a_common_limit(void) {
    struct folder_room room = {.most_bytes = 50000, .lock = PTHREAD_MUTEX_INITIALIZER};
    char error[ERROR_SIZE];
    int fd = open(scratch_folder(), O_RDONLY | O_DIRECTORY);
    make_file("before", 20000); /* takes 20480 */
    CHECK(folder_room_begin(&room, fd, error, sizeof error));
    CHECK(folder_room_begin(&room, fd, error, sizeof error));
    CHECK_INT(folder_room_take(&room, fd, 15000), 0);
    CHECK_INT(folder_room_take(&room, fd, 8000), EDQUOT);
    CHECK(!folder_room_begin(&room, fd, error, sizeof error) && strstr(error, "--total-size"));
    folder_room_end(&room, 23000); /* it was removed */
    CHECK_INT(folder_room_take(&room, fd, 15000), 0);
    folder_room_end(&room, 0);
    make_file("after", 20000);
    CHECK(folder_room_begin(&room, fd, error, sizeof error)); /* it is read anew */
    CHECK_INT(folder_room_take(&room, fd, 4000), 0);
    CHECK_INT(folder_room_take(&room, fd, 5000), EDQUOT);
    close(fd);
}

/* A sender that goes on after the limit must not make room for others. */
static void test_a_file_returns_what_it_took(void) {
    static const uint8_t bytes[30000];
    struct folder_room room = {.most_bytes = 1000000, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct content_target target = {.folder = scratch_folder(), .room = &room};
    struct content content;
    char error[ERROR_SIZE];
    int fd = open(scratch_folder(), O_RDONLY | O_DIRECTORY);
    CHECK(folder_room_begin(&room, fd, error, sizeof error)); /* another file is being written */
    CHECK_INT(folder_room_take(&room, fd, 900000), 0);
    CHECK(content_receive(&content, &target, "late", 1, error, sizeof error));
    uint64_t used = room.used;
    for (unsigned i = 0; i < 40; i++)
        content_take(&content, i * sizeof bytes, bytes, sizeof bytes);
    CHECK_INT(content.error, EDQUOT);
    content_end(&content);
    CHECK_INT(room.used, used);
    close(fd);
}

static void test_a_disk_keeps_its_floor(void) {
    struct folder_room room = {.min_free = UINT64_MAX - 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    char error[ERROR_SIZE];
    int fd = open(scratch_folder(), O_RDONLY | O_DIRECTORY);
    CHECK(!folder_room_begin(&room, fd, error, sizeof error) && strstr(error, "--min-free"));
    room.min_free = 0;
    CHECK(folder_room_begin(&room, fd, error, sizeof error));
    room.min_free = UINT64_MAX - 1; /* the disk fills meanwhile */
    CHECK_INT(folder_room_take(&room, fd, 1000), 0);
    CHECK_INT(folder_room_take(&room, fd, 1 << 20), ENOSPC);
    close(fd);
}

int main(void) {
    test_a_test_must_move_in_each_minute();
    test_files_have_a_common_limit();
    test_a_file_returns_what_it_took();
    test_a_disk_keeps_its_floor();
    return 0;
}
