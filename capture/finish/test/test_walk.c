/* SPDX-License-Identifier: Apache-2.0 */
/* The last whole block of a file is found, whatever follows it and whatever the bytes are. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/test/check.h"
#include "finish/recover.h"
#include "finish/test/made_file.h"

#define DAMAGED_FILES 300000

static struct made_file made;  /* of the running test */
static struct recovered found; /* by the last walk */

/* Returns a file in memory with these bytes, the same one each time. */
static int file_of(const uint8_t *data, size_t size) {
    static int fd = -1;
    if (fd < 0)
        CHECK((fd = memfd_create("left", MFD_CLOEXEC)) >= 0);
    CHECK(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    return fd;
}

static void walk(size_t size) {
    recover_walk(&found, file_of(made.bytes.data, size), size);
    CHECK(!found.error);
}

static unsigned packets_before(size_t size) {
    unsigned count = 0;
    while (count < made.packets && made.ends[count] <= size)
        count++;
    return count;
}

static void test_a_cut_at_any_byte_keeps_every_whole_packet(void) {
    make_file(&made, 2, 40);
    for (size_t size = made.head; size <= made.bytes.fill; size++) {
        unsigned packets = packets_before(size);
        walk(size);
        CHECK(found.ours && !found.classic && !found.closed);
        CHECK_INT(found.packets, packets);
        CHECK_INT(found.whole, packets ? made.ends[packets - 1] : made.head);
        CHECK_INT(found.interfaces, 2);
        CHECK_INT(found.of[0].packets + found.of[1].packets, packets);
    }
}

static void test_a_cut_within_the_section_header_is_not_ours(void) {
    make_file(&made, 1, 1);
    uint32_t section = get_u32(made.bytes.data + 4);
    for (size_t size = 0; size < section; size++) {
        walk(size);
        CHECK(!found.ours);
        CHECK_INT(found.whole, 0);
    }
}

static void test_counts_at_the_end_say_that_nothing_is_missing(void) {
    make_file(&made, 1, 3);
    struct pcapng_statistics note = {.end_ns = 5},
                             counts = {.start_ns = 1, .end_ns = 5, .drops_known = true};
    pcapng_statistics(&made.bytes, &note, "the clock was set", NULL);
    walk(made.bytes.fill);
    CHECK(!found.closed);
    pcapng_statistics(&made.bytes, &counts, NULL, NULL);
    walk(made.bytes.fill);
    CHECK(found.closed);
    CHECK_INT(found.whole, made.bytes.fill);
}

static void test_packets_of_an_interface_that_is_not_described_are_damage(void) {
    make_file(&made, 1, 2);
    put_u32(made.bytes.data + made.ends[0] + 8, 1);
    walk(made.bytes.fill);
    CHECK_INT(found.packets, 1);
    CHECK_INT(found.whole, made.ends[0]);
}

static void test_files_of_others_are_not_ours(void) {
    make_file(&made, 1, 1);
    for (size_t i = 0; i + 16 < made.head; i++)
        if (!memcmp(made.bytes.data + i, PCAPNG_APPLICATION, 16)) {
            memcpy(made.bytes.data + i, "Dumpcap (Wiresh)", 16);
            break;
        }
    walk(made.bytes.fill);
    CHECK(!found.ours);
}

/* Bytes changed, inserted zeros, cut: what is called whole must be whole when walked again. */
static void test_random_damage_never_leaves_the_file(void) {
    make_file(&made, 3, 30);
    struct recovered again;
    size_t size = made.bytes.fill;
    uint8_t *copy = malloc(size);
    srandom(7);
    for (int round = 0; round < DAMAGED_FILES; round++) {
        memcpy(copy, made.bytes.data, size);
        size_t cut = (size_t)random() % (size + 1);
        for (int change = (int)(random() % 4); change-- && cut;) {
            size_t at = (size_t)random() % cut;
            if (random() % 2)
                copy[at] = (uint8_t)random();
            else
                put_u32(copy + (at < size - 4 ? at & ~3ul : 0),
                        (uint32_t)(random() % 5 ? random() % 512 : random()));
        }
        int fd = file_of(copy, cut);
        recover_walk(&found, fd, cut);
        CHECK(found.whole <= cut && found.whole % 4 == 0 && !found.error);
        recover_walk(&again, fd, found.whole);
        CHECK_INT(again.whole, found.whole);
        CHECK_INT(again.packets, found.packets);
    }
    free(copy);
}

/* More than one piece is read, and blocks cross its end. */
static void test_a_long_file_is_walked_in_pieces(void) {
    enum { REPEATS = 5000 };
    make_file(&made, 1, 3);
    size_t packets = made.bytes.fill - made.head, size = made.head + REPEATS * packets;
    uint8_t *bytes = malloc(size);
    memcpy(bytes, made.bytes.data, made.head);
    for (size_t i = 0; i < REPEATS; i++)
        memcpy(bytes + made.head + i * packets, made.bytes.data + made.head, packets);
    recover_walk(&found, file_of(bytes, size - 1), size - 1);
    CHECK_INT(found.packets, 3 * REPEATS - 1);
    recover_walk(&found, file_of(bytes, size), size);
    CHECK_INT(found.packets, 3 * REPEATS);
    CHECK_INT(found.whole, size);
    free(bytes);
}

/* A bad sector, or another program that truncates the file during the walk. */
static void test_a_read_error_ends_the_walk(void) {
    make_file(&made, 1, 40);
    size_t size = made.bytes.fill;
    for (size_t shrunk = 0; shrunk < size; shrunk++) {
        recover_walk(&found, file_of(made.bytes.data, shrunk), size);
        CHECK_INT(found.error, ENODATA);
        CHECK_INT(found.readable, shrunk);
        CHECK_INT(found.packets, packets_before(shrunk));
        CHECK(found.ours == (shrunk >= get_u32(made.bytes.data + 4)));
    }
    int directory = open("/", O_RDONLY | O_DIRECTORY);
    recover_walk(&found, directory, size);
    CHECK_INT(found.error, EISDIR);
    CHECK(!found.ours && !found.readable);
    close(directory);
}

static void test_classic_files_are_cut_after_their_last_record(void) {
    uint8_t bytes[24 + 3 * (16 + 33)];
    struct pcapng_buffer header = {0};
    pcapng_classic_header(&header, 65535, 1);
    memcpy(bytes, header.data, 24);
    static const uint8_t data[33];
    for (size_t i = 0; i < 3; i++)
        record_put_pcap(bytes + 24 + i * 49, 1500000000, 33, 60, data);
    for (size_t size = 24; size <= sizeof bytes; size++) {
        recover_walk(&found, file_of(bytes, size), size);
        CHECK(found.ours && found.classic);
        CHECK_INT(found.packets, (size - 24) / 49);
        CHECK_INT(found.whole, 24 + found.packets * 49);
    }
    pcapng_free(&header);
}

int main(void) {
    test_a_cut_at_any_byte_keeps_every_whole_packet();
    test_a_cut_within_the_section_header_is_not_ours();
    test_counts_at_the_end_say_that_nothing_is_missing();
    test_packets_of_an_interface_that_is_not_described_are_damage();
    test_files_of_others_are_not_ours();
    test_random_damage_never_leaves_the_file();
    test_a_long_file_is_walked_in_pieces();
    test_a_read_error_ends_the_walk();
    test_classic_files_are_cut_after_their_last_record();
    return 0;
}
