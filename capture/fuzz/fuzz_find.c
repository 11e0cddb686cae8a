/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are indexed and searched. With a whole index, a search finds the packets that a scan of
 * the file finds. An index whose body was changed leads to no access outside of its tables. The
 * input is 16 bytes of changes, then the file. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "buffer/record.h"
#include "find/found_file.h"

#define CHANGES 16u
#define NAME    "capture"

static void require(bool holds) {
    if (!holds)
        abort();
}

static int folder_fd(void) {
    static char path[] = "/dev/shm/fuzz_find.XXXXXX";
    static int fd = -1;
    if (fd < 0) {
        require(mkdtemp(path));
        fd = open(path, O_RDONLY | O_DIRECTORY);
    }
    return fd;
}

static void write_capture(int folder, const uint8_t *bytes, size_t size) {
    int fd = openat(folder, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* Asks for the addresses of the first packet. */
static void make_query(struct query *query, const uint8_t *bytes, size_t size) {
    static const struct query all = {.start_ns = INT64_MIN, .end_ns = INT64_MAX};
    struct address list[ADDRESSES_MAX];
    *query = all;
    size_t begin = size > 70 ? 70 : size;
    size_t count = packet_addresses(1, bytes + begin, size - begin, list);
    for (size_t i = 0; i < count; i++)
        if (list[i].size == ADDRESS_PORT && query->port_count < PORTS_MAX)
            query->ports[query->port_count++] = list[i];
        else if (list[i].size != ADDRESS_PORT && query->host_count < HOSTS_MAX)
            query->hosts[query->host_count++] = (struct host){list[i], 8u * list[i].size};
}

/* Returns the packets found; the index is made if it is missing or does not count. */
static size_t search(const struct folder *folder, const struct query *query, bool whole) {
    struct found_file file = {.folder = folder, .name = NAME, .open_capture = whole, .fd = -1};
    struct excerpt excerpt = {0};
    enum file_state state = found_file_look_up(&file, query);
    if (state == FILE_CANDIDATE || state == FILE_WHOLE)
        state = found_file_collect(&file, query, &excerpt);
    size_t count = state == FILE_CANDIDATE ? file.match_count : 0;
    found_file_close(&file);
    for (uint32_t i = 0; i < excerpt.count; i++)
        free(excerpt.interfaces[i].block);
    free(excerpt.interfaces);
    return count;
}

/* Changes bytes of the index, whose checksum is right again then. */
static void change_index(int folder, const uint8_t *changes) {
    int fd = openat(folder, "." NAME INDEX_SUFFIX, O_RDWR);
    struct index_header header;
    if (fd < 0)
        return;
    off_t size = lseek(fd, 0, SEEK_END);
    for (unsigned i = 0; i + 4 <= CHANGES; i += 4)
        require(pwrite(fd, changes + i + 2, 2,
                       (changes[i] | changes[i + 1] << 8) % (size > 2 ? size - 2 : 1)) == 2);
    require(pread(fd, &header, sizeof header, 0) == sizeof header);
    header.sum = index_header_sum(&header);
    require(pwrite(fd, &header, sizeof header, 0) == sizeof header);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct folder folder = {.path = "/tmp", .fd = folder_fd()};
    struct query query;
    if (size <= CHANGES)
        return 0;
    make_query(&query, data + CHANGES, size - CHANGES);
    write_capture(folder.fd, data + CHANGES, size - CHANGES);
    index_file_remove(folder.fd, NAME);
    size_t scanned = search(&folder, &query, true);
    require(search(&folder, &query, false) == scanned); /* makes the index */
    require(search(&folder, &query, false) == scanned);
    change_index(folder.fd, data);
    search(&folder, &query, false);
    return 0;
}
