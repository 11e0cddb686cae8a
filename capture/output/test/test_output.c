/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of packets to files: where the next file begins, and that each packet is counted once. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "finish/recover.h"
#include "finish/test/made_file.h"
#include "output/writer.h"

#define BEGIN_NS INT64_C(1795270500000000000) /* a multiple of 60 s */

struct bench {
    char place[32];
    struct settings settings;
    struct capture capture;
    struct device devices[2];
    struct directory directory;
    struct ring ring;
    struct finisher finisher;
    struct output output;
};

static struct bench *begin(const struct settings *settings) {
    struct bench *bench = aligned_alloc(64, (sizeof *bench + 63) & ~63ul);
    memset(bench, 0, sizeof *bench);
    strcpy(bench->place, "/tmp/wiretale-test-XXXXXX");
    CHECK(mkdtemp(bench->place));
    bench->settings = *settings;
    bench->settings.output = bench->place;
    bench->capture.settings = &bench->settings;
    bench->capture.devices = bench->devices;
    bench->capture.device_count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        struct description described = {.device = i, .link_type = 1, .snaplen = 262144};
        CHECK_INT(description_add(&bench->capture.descriptions, &described), i);
    }
    directory_open(&bench->directory, &bench->settings, "eth0");
    ring_open(&bench->ring, &bench->settings);
    bench->finisher = (struct finisher){.directory = &bench->directory, .ring = &bench->ring};
    CHECK(finisher_start(&bench->finisher));
    bench->output = (struct output){
        .capture = &bench->capture, .directory = &bench->directory, .finisher = &bench->finisher};
    CHECK(chunk_queue_open(&bench->capture.queue, 0, 2));
    output_open(&bench->output);
    return bench;
}

/* Reads what the finished files hold and removes them: packets, and whether times go backwards. */
static unsigned read_files(const char *place, uint64_t *packets, bool *ordered) {
    unsigned files = 0;
    DIR *listing = opendir(place);
    int64_t last = 0;
    *packets = 0;
    *ordered = true;
    for (struct dirent *entry; (entry = readdir(listing));) {
        static uint8_t data[1 << 20];
        struct recovered found;
        if (*entry->d_name == '.')
            continue;
        int fd = openat(dirfd(listing), entry->d_name, O_RDONLY);
        ssize_t size = read(fd, data, sizeof data);
        recover_walk(&found, data, (size_t)size);
        CHECK(found.ours && found.closed);
        CHECK_INT(found.whole, size);
        *packets += found.packets;
        files++;
        last = 0;
        for (size_t at = 0; at < found.whole; at += get_u32(data + at + 4)) {
            struct record_view record = record_view(RECORD_PCAPNG, data + at);
            if (!record.is_packet)
                continue;
            *ordered = *ordered && record.time_ns >= last;
            last = record.time_ns;
        }
        close(fd);
        unlinkat(dirfd(listing), entry->d_name, 0);
    }
    closedir(listing);
    return files;
}

static unsigned end(struct bench *bench, uint64_t *packets, bool *ordered) {
    output_close(&bench->output);
    finisher_end(&bench->finisher);
    directory_unlock(&bench->directory);
    unsigned files = read_files(bench->place, packets, ordered);
    CHECK(!rmdir(bench->place));
    ring_close(&bench->ring);
    chunk_queue_close(&bench->capture.queue);
    description_list_free(&bench->capture.descriptions);
    free(bench);
    return files;
}

static void take(struct bench *bench, unsigned count, int64_t first_ns, int64_t apart_ns,
                 uint32_t size) {
    static uint8_t data[1 << 20];
    struct span span = {.data = data, .packets = count, .first_ns = first_ns};
    for (unsigned i = 0; i < count; i++) {
        span.last_ns = first_ns + i * apart_ns;
        span.size += made_record(data + span.size, 0, (uint64_t)span.last_ns, size);
    }
    counter_add(&bench->capture.descriptions.items[0]->counts.received, count);
    output_take(&bench->output, &span);
}

static void test_files_end_after_so_many_packets(void) {
    struct bench *bench = begin(&(struct settings){.file_packets = 7});
    uint64_t packets;
    bool ordered;
    take(bench, 100, BEGIN_NS, 1000, 60);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0]->counts.written), 100);
    CHECK_INT(end(bench, &packets, &ordered), 15);
    CHECK_INT(packets, 100);
    CHECK(ordered);
}

static void test_no_file_exceeds_its_size_but_for_one_packet(void) {
    struct bench *bench = begin(&(struct settings){.file_bytes = 4096});
    uint64_t packets;
    bool ordered;
    take(bench, 50, BEGIN_NS, 1000, 900);
    CHECK(bench->output.bytes <= 4096);
    CHECK(end(bench, &packets, &ordered) >= 50 / 4);
    CHECK_INT(packets, 50);
}

static void test_aligned_files_begin_at_multiples(void) {
    struct bench *bench = begin(&(struct settings){.file_ns = 60 * NS_PER_S, .align = true});
    uint64_t packets;
    bool ordered;
    output_close(&bench->output);
    take(bench, 20, BEGIN_NS + 10 * NS_PER_S, 10 * NS_PER_S, 60); /* 10 s to 200 s */
    CHECK_INT(bench->output.boundary_ns, BEGIN_NS + 240 * NS_PER_S);
    CHECK_INT(end(bench, &packets, &ordered), 5);
    CHECK_INT(packets, 20);
}

static void test_a_step_of_the_clock_is_told_in_the_file(void) {
    struct bench *bench = begin(&(struct settings){0});
    uint64_t packets, before = bench->output.bytes;
    bool ordered;
    char text[4096];
    atomic_store(&bench->output.clock_step_ns, -1500 * NS_PER_MS);
    output_poll(&bench->output, true);
    CHECK(bench->output.bytes > before);
    CHECK(pread(bench->output.fd, text, sizeof text, (off_t)before) > 0);
    CHECK(memmem(text, sizeof text, "the clock was set by -1.500000000 s", 35));
    CHECK_INT(end(bench, &packets, &ordered), 1);
}

/* What cannot be written is counted, and what can be written of it is kept whole. */
static void test_a_file_that_takes_no_more_keeps_whole_packets(void) {
    struct bench *bench = begin(&(struct settings){0});
    uint64_t packets;
    bool ordered;
    take(bench, 10, BEGIN_NS, 1000, 60);
    int writable = bench->output.fd;
    bench->output.fd = open("/dev/full", O_RDWR);
    take(bench, 10, BEGIN_NS, 1000, 60);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0]->counts.dropped_disk), 10);
    close(bench->output.fd);
    bench->output.fd = writable;
    take(bench, 10, BEGIN_NS + 20000, 1000, 60);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0]->counts.written), 20);
    CHECK_INT(end(bench, &packets, &ordered), 1);
    CHECK_INT(packets, 20);
}

static void give(struct bench *bench, uint32_t device, int64_t first_ns, unsigned count) {
    struct chunk *chunk = chunk_queue_acquire(&bench->capture.queue);
    CHECK(chunk);
    for (unsigned i = 0; i < count; i++) {
        chunk->last_ns = first_ns + i * 20;
        chunk->fill += made_record(chunk->data + chunk->fill, device, (uint64_t)chunk->last_ns, 60);
    }
    chunk->packets = count;
    chunk->description = device;
    chunk->first_ns = first_ns;
    counter_add(&bench->capture.descriptions.items[device]->counts.received, count);
    chunk_queue_push(&bench->capture.queue, device, chunk, 0);
}

static void test_packets_of_two_devices_are_in_the_order_of_their_times(void) {
    struct bench *bench = begin(&(struct settings){0});
    struct merge merge = {.queue = &bench->capture.queue, .output = &bench->output};
    uint64_t packets;
    bool ordered;
    for (int round = 0; round < 50; round++) {
        give(bench, 0, BEGIN_NS + round * 2000, 100);
        give(bench, 1, BEGIN_NS + round * 2000 + 10 + round, 90);
        chunk_queue_pop_all(&bench->capture.queue, merge.lanes, 0);
        merge_write(&merge);
    }
    chunk_queue_end(&bench->capture.queue, 0);
    chunk_queue_end(&bench->capture.queue, 1);
    chunk_queue_pop_all(&bench->capture.queue, merge.lanes, 0);
    merge_write(&merge);
    CHECK(merge_has_ended(&merge));
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0]->counts.written), 5000);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[1]->counts.written), 4500);
    CHECK_INT(end(bench, &packets, &ordered), 1);
    CHECK_INT(packets, 9500);
    CHECK(ordered);
}

static void test_a_device_that_is_still_read_is_waited_for_at_the_end(void) {
    struct bench *bench = begin(&(struct settings){0});
    struct merge merge = {.queue = &bench->capture.queue, .output = &bench->output};
    uint64_t packets;
    bool ordered;
    atomic_store(&bench->capture.stopping, true);
    give(bench, 0, BEGIN_NS + 10, 100);
    chunk_queue_end(&bench->capture.queue, 0);
    chunk_queue_pop_all(&bench->capture.queue, merge.lanes, 0);
    CHECK(!merge_write(&merge));
    give(bench, 1, BEGIN_NS, 100);
    chunk_queue_end(&bench->capture.queue, 1);
    chunk_queue_pop_all(&bench->capture.queue, merge.lanes, 0);
    CHECK(merge_write(&merge));
    CHECK(merge_has_ended(&merge));
    CHECK_INT(end(bench, &packets, &ordered), 1);
    CHECK_INT(packets, 200);
    CHECK(ordered);
}

static void test_a_ring_keeps_the_newest(void) {
    struct bench *bench = begin(&(struct settings){.file_packets = 1, .ring_files = 3});
    uint64_t packets;
    bool ordered;
    take(bench, 100, BEGIN_NS, 1000, 60);
    CHECK_INT(end(bench, &packets, &ordered), 3);
    CHECK_INT(packets, 3);
}

/* The finishing thread has hardly woken by then. */
static void test_a_file_that_waits_for_its_name_makes_room_too(void) {
    struct bench *bench = begin(&(struct settings){.file_packets = 1, .ring_files = 100});
    uint64_t packets;
    bool ordered;
    for (int round = 0; round < 20; round++) {
        take(bench, 1, BEGIN_NS + round, 0, 60);
        output_close(&bench->output);
        CHECK(finisher_make_room(&bench->finisher, bench->directory.fd));
    }
    CHECK(!finisher_make_room(&bench->finisher, bench->directory.fd));
    CHECK_INT(end(bench, &packets, &ordered), 0);
}

int main(void) {
    test_files_end_after_so_many_packets();
    test_no_file_exceeds_its_size_but_for_one_packet();
    test_aligned_files_begin_at_multiples();
    test_a_step_of_the_clock_is_told_in_the_file();
    test_a_file_that_takes_no_more_keeps_whole_packets();
    test_packets_of_two_devices_are_in_the_order_of_their_times();
    test_a_device_that_is_still_read_is_waited_for_at_the_end();
    test_a_ring_keeps_the_newest();
    test_a_file_that_waits_for_its_name_makes_room_too();
    return 0;
}
