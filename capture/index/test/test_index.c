/* SPDX-License-Identifier: Apache-2.0 */
/* Each address of a packet leads to its block, also in a file with more addresses than a segment
 * has keys; an index that is not whole, or of another file, is none. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer/record.h"
#include "common/test/check.h"
#include "finish/test/made_file.h"
#include "index/addresses.h"
#include "index/index_file.h"

#define PACKETS 400000u /* with two addresses and a port that no other packet has in its block */
#define NAME    "capture.pcapng"

static int directory_fd;

static uint32_t source_of(uint32_t number) {
    return number * 2654435761u;
}

static void put_be16(uint8_t *to, unsigned value) {
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static size_t make_packet(uint8_t *to, uint32_t number) {
    uint8_t data[42] = {[12] = 8, [14] = 0x45, [23] = 17};
    uint32_t source = source_of(number), destination = ~source;
    memcpy(data + 26, &source, 4);
    memcpy(data + 30, &destination, 4);
    put_be16(data + 34, number & 0xFFFF);
    put_be16(data + 36, 9);
    size_t size = record_epb_size(sizeof data, RECORD_UNKNOWN);
    record_put_epb(to, size, 0, 1000000000 + number, sizeof data, sizeof data, data,
                   RECORD_UNKNOWN);
    return size;
}

/* Writes a file of many packets and returns its descriptor; the offset of each is regular. */
static int make_capture(size_t *head, size_t *step) {
    struct made_file made = {0};
    make_file(&made, 1, 0);
    int fd = openat(directory_fd, NAME, O_CREAT | O_RDWR | O_CLOEXEC, 0640);
    uint8_t *bytes = malloc(PACKETS * 128), *at = bytes;
    CHECK(fd >= 0 && bytes);
    for (uint32_t i = 0; i < PACKETS; i++)
        at += *step = make_packet(at, i);
    *head = made.head;
    CHECK(write(fd, made.bytes.data, made.head) == (ssize_t)made.head);
    CHECK(write(fd, bytes, (size_t)(at - bytes)) == at - bytes);
    pcapng_free(&made.bytes);
    free(bytes);
    return fd;
}

static uint32_t block_of(const struct index_block *blocks, uint32_t count, uint64_t offset) {
    uint32_t i = 0;
    while (i + 1 < count && blocks[i + 1].offset <= offset)
        i++;
    return i;
}

static void test_each_address_leads_to_its_block(void) {
    size_t head, step;
    int fd = make_capture(&head, &step);
    struct file_index made;
    struct index_file index;
    struct stat status;
    CHECK(file_index_build(&made, fd) && !fstat(fd, &status));
    CHECK(index_file_write(&made, directory_fd, NAME, &status));
    CHECK(index_file_open(&index, directory_fd, NAME, &status));
    CHECK_INT(index.header.packets, PACKETS);
    CHECK(index.header.segments > 1 && index.header.size < (uint64_t)status.st_size / 6);
    struct index_block *blocks = index_file_blocks(&index);
    size_t bytes = index.header.blocks / 8 + 1, set = 0;
    uint8_t *bits = malloc(bytes);
    CHECK(blocks && bits);
    for (uint32_t i = 0; i < PACKETS; i += 997) {
        struct address addresses[3] = {{.size = ADDRESS_IPV4}, {.size = ADDRESS_IPV4}};
        uint32_t source = source_of(i), destination = ~source;
        memcpy(addresses[0].bytes, &source, 4);
        memcpy(addresses[1].bytes, &destination, 4);
        addresses[2].size = ADDRESS_PORT;
        put_be16(addresses[2].bytes, i & 0xFFFF);
        memset(bits, 0xFF, bytes);
        for (int j = 0; j < 3; j++)
            CHECK(index_file_narrow(&index, address_hash(&addresses[j]), bits));
        uint32_t block = block_of(blocks, index.header.blocks, head + i * step);
        CHECK(bits[block / 8] >> block % 8 & 1);
        for (uint32_t j = 0; j < index.header.blocks; j++)
            set += bits[j / 8] >> j % 8 & 1;
    }
    CHECK(set < 2 * (PACKETS / 997 + 1)); /* hardly any other block is named */
    free(blocks);
    free(bits);
    file_index_free(&made);
    index_file_close(&index);
    close(fd);
}

static void test_an_index_that_is_not_whole_or_of_another_file_is_none(void) {
    struct index_file index;
    struct stat status;
    CHECK(!fstatat(directory_fd, NAME, &status, 0));
    struct stat of = status, larger = status, later = status;
    larger.st_size++;
    later.st_mtim.tv_nsec ^= 1;
    CHECK(!index_file_open(&index, directory_fd, NAME, &larger));
    CHECK(!index_file_open(&index, directory_fd, NAME, &later));
    int fd = openat(directory_fd, "." NAME INDEX_SUFFIX, O_RDWR);
    CHECK(fd >= 0 && !fstat(fd, &status));
    uint8_t byte = 0;
    for (off_t at = 0; at < (off_t)sizeof(struct index_header); at++) {
        CHECK(pread(fd, &byte, 1, at) == 1);
        byte ^= 1;
        CHECK(pwrite(fd, &byte, 1, at) == 1);
        CHECK(!index_file_open(&index, directory_fd, NAME, &of));
        byte ^= 1;
        CHECK(pwrite(fd, &byte, 1, at) == 1);
    }
    CHECK(index_file_open(&index, directory_fd, NAME, &of));
    index_file_close(&index);
    CHECK(!ftruncate(fd, status.st_size - 1));
    CHECK(!index_file_open(&index, directory_fd, NAME, &of));
    close(fd);
}

static void test_an_index_without_its_file_is_removed(void) {
    index_file_remove_orphans(directory_fd);
    CHECK(!faccessat(directory_fd, "." NAME INDEX_SUFFIX, F_OK, 0));
    CHECK(!unlinkat(directory_fd, NAME, 0));
    index_file_remove_orphans(directory_fd);
    CHECK(faccessat(directory_fd, "." NAME INDEX_SUFFIX, F_OK, 0));
}

int main(void) {
    char folder[] = "/tmp/test_index.XXXXXX";
    CHECK(mkdtemp(folder));
    directory_fd = open(folder, O_RDONLY | O_DIRECTORY);
    CHECK(directory_fd >= 0);
    test_each_address_leads_to_its_block();
    test_an_index_that_is_not_whole_or_of_another_file_is_none();
    test_an_index_without_its_file_is_removed();
    rmdir(folder);
    return 0;
}
