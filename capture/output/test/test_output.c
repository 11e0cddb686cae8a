/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of packets to files: where the next file begins, and that each packet is counted once. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/test/scratch.h"
#include "finish/recover.h"
#include "finish/test/made_file.h"
#include "output/file.h"

#define BEGIN_NS INT64_C(1795270500000000000) /* a multiple of 60 s */

struct bench {
    char place[SCRATCH_SIZE];
    struct settings settings;
    struct capture capture;
    struct device devices[2];
    struct directory directory;
    struct ring ring;
    struct finisher finisher;
    struct jobs jobs;
    struct output output;
    struct writer writer;
    /* Result of end(): the content of all files. */
    unsigned files;
    uint64_t packets;
    bool ordered; /* in each file no time is before that of the packet ahead of it */
};

/* Of all tests, so that no memory is without owner at the end. */
static struct bench benches[9];

static struct bench *begin(const struct settings *settings) {
    static struct bench *next = benches;
    struct bench *bench = next++;
    scratch_path(bench->place, "captures");
    CHECK(!mkdir(bench->place, 0700));
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
    ring_open(&bench->ring, &bench->settings, &bench->directory);
    bench->jobs = (struct jobs){.ring = &bench->ring, .directory = &bench->directory};
    jobs_open(&bench->jobs);
    bench->finisher = (struct finisher){
        .directory = &bench->directory, .ring = &bench->ring, .publisher = {.jobs = &bench->jobs}};
    CHECK(finisher_start(&bench->finisher));
    bench->output = (struct output){
        .capture = &bench->capture, .directory = &bench->directory, .finisher = &bench->finisher};
    bench->writer.output = &bench->output;
    CHECK(chunk_queue_open(&bench->capture.queue, 0, 2));
    output_open(&bench->output);
    return bench;
}

/* Reads one finished file. */
static void read_file(struct bench *bench, int fd) {
    static uint8_t data[1 << 20];
    struct recovered found;
    int64_t last = 0;
    ssize_t size = read(fd, data, sizeof data);
    recover_walk(&found, fd, (uint64_t)size);
    CHECK(found.ours && found.closed);
    CHECK_INT(found.whole, size);
    bench->packets += found.packets;
    bench->files++;
    for (size_t at = 0; at < found.whole; at += get_u32(data + at + 4)) {
        struct record_view record = record_view(RECORD_PCAPNG, data + at);
        if (get_u32(data + at) != RECORD_PACKET_TYPE)
            continue;
        bench->ordered = bench->ordered && record.time_ns >= last;
        last = record.time_ns;
    }
    close(fd);
}

/* Ends the capture, reads what the finished files hold and removes them. */
static void end(struct bench *bench, unsigned files, unsigned packets) {
    output_close(&bench->output);
    finisher_end(&bench->finisher);
    directory_unlock(&bench->directory);
    DIR *listing = opendir(bench->place);
    bench->ordered = true;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (*entry->d_name == '.')
            continue;
        read_file(bench, openat(dirfd(listing), entry->d_name, O_RDONLY));
        unlinkat(dirfd(listing), entry->d_name, 0);
        index_file_remove(dirfd(listing), entry->d_name);
    }
    closedir(listing);
    CHECK(!rmdir(bench->place));
    CHECK_INT(bench->files, files);
    CHECK_INT(bench->packets, packets);
    CHECK(bench->ordered);
}

/* Writes `count` records of one device into `data`. */
static struct span fill(uint8_t *data, uint32_t device, int64_t first_ns, int64_t apart_ns,
                        unsigned count, uint32_t size) {
    struct span span = {
        .data = data, .description = device, .packets = count, .first_ns = first_ns};
    for (unsigned i = 0; i < count; i++) {
        span.last_ns = first_ns + i * apart_ns;
        span.size += made_record(data + span.size, device, (uint64_t)span.last_ns, size);
    }
    return span;
}

static struct span left; /* by the last take() */

static void take(struct bench *bench, unsigned count, int64_t first_ns, int64_t apart_ns,
                 uint32_t size) {
    static uint8_t data[1 << 20];
    struct span span = fill(data, 0, first_ns, apart_ns, count, size);
    counter_add(&bench->capture.descriptions.items[0].counts.received, count);
    left = output_take(&bench->output, &span);
}

static void test_files_end_after_so_many_packets(void) {
    struct bench *bench = begin(&(struct settings){.file_packets = 7});
    take(bench, 100, BEGIN_NS, 1000, 60);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0].counts.written), 100);
    end(bench, 15, 100);
}

static void test_no_file_exceeds_its_size_but_for_one_packet(void) {
    struct bench *bench = begin(&(struct settings){.file_bytes = 4096});
    take(bench, 50, BEGIN_NS, 1000, 900);
    CHECK(bench->output.bytes <= 4096);
    end(bench, 13, 50);
}

static void test_aligned_files_begin_at_multiples(void) {
    struct bench *bench = begin(&(struct settings){.file_ns = 60 * NS_PER_S, .align = true});
    output_close(&bench->output);
    take(bench, 20, BEGIN_NS + 10 * NS_PER_S, 10 * NS_PER_S, 60); /* 10 s to 200 s */
    CHECK_INT(bench->output.boundary_ns, BEGIN_NS + 240 * NS_PER_S);
    end(bench, 5, 20);
}

static void test_a_step_of_the_clock_is_told_in_the_file(void) {
    struct bench *bench = begin(&(struct settings){0});
    uint64_t before = bench->output.bytes;
    char text[4096];
    struct note note = {.sentence = "the clock was set by -1.500000000 s"};
    CHECK(notes_add(&bench->output.notes, &note));
    output_poll(&bench->output, true);
    CHECK(bench->output.bytes > before);
    CHECK(pread(bench->output.fd, text, sizeof text, (off_t)before) > 0);
    CHECK(memmem(text, sizeof text, "the clock was set by -1.500000000 s", 35));
    end(bench, 1, 0);
}

/* A link that flaps cannot fill a file. */
static void test_a_file_has_a_bound_of_what_happened(void) {
    struct bench *bench = begin(&(struct settings){0});
    struct note note = {.sentence = "in0 lost its carrier"};
    unsigned written = 0;
    for (unsigned i = 0; i < 300; i++) {
        uint64_t before = bench->output.bytes;
        CHECK(notes_add(&bench->output.notes, &note));
        output_poll(&bench->output, true);
        written += bench->output.bytes > before;
    }
    CHECK_INT(written, 256);
    end(bench, 1, 0);
}

/* What cannot be written waits; at the end it is counted. */
static void test_a_file_that_takes_no_more_keeps_whole_packets(void) {
    struct bench *bench = begin(&(struct settings){0});
    take(bench, 10, BEGIN_NS, 1000, 60);
    int writable = bench->output.fd;
    bench->output.fd = open("/dev/full", O_RDWR);
    take(bench, 10, BEGIN_NS, 1000, 60);
    CHECK_INT(left.packets, 10);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0].counts.dropped_disk), 0);
    atomic_store(&bench->capture.stopping, true);
    bench->output.patience_ns = 1; /* it is over */
    take(bench, 10, BEGIN_NS, 1000, 60);
    CHECK_INT(left.size, 0);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0].counts.dropped_disk), 10);
    close(bench->output.fd);
    bench->output.fd = writable;
    bench->output.retry_ns = 0;
    take(bench, 10, BEGIN_NS + 20000, 1000, 60);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0].counts.written), 20);
    end(bench, 1, 20);
}

static void give(struct bench *bench, uint32_t device, int64_t first_ns, unsigned count) {
    struct chunk *chunk = chunk_queue_acquire(&bench->capture.queue);
    CHECK(chunk);
    chunk->left = fill(chunk->memory, device, first_ns, 20, count, 60);
    counter_add(&bench->capture.descriptions.items[device].counts.received, count);
    chunk_queue_push(&bench->capture.queue, device, chunk, 0);
}

static void test_packets_of_two_devices_are_in_the_order_of_their_times(void) {
    struct bench *bench = begin(&(struct settings){0});
    for (int round = 0; round < 50; round++) {
        give(bench, 0, BEGIN_NS + round * 2000, 100);
        give(bench, 1, BEGIN_NS + round * 2000 + 10 + round, 90);
        writer_merge(&bench->writer, 0);
    }
    chunk_queue_end(&bench->capture.queue, 0);
    chunk_queue_end(&bench->capture.queue, 1);
    writer_merge(&bench->writer, 0);
    CHECK(writer_has_ended(&bench->writer));
    CHECK_INT(counter_get(&bench->capture.descriptions.items[0].counts.written), 5000);
    CHECK_INT(counter_get(&bench->capture.descriptions.items[1].counts.written), 4500);
    end(bench, 1, 9500);
}

static void test_a_device_that_is_still_read_is_waited_for_at_the_end(void) {
    struct bench *bench = begin(&(struct settings){0});
    atomic_store(&bench->capture.stopping, true);
    give(bench, 0, BEGIN_NS + 10, 100);
    chunk_queue_end(&bench->capture.queue, 0);
    CHECK(!writer_merge(&bench->writer, 0));
    give(bench, 1, BEGIN_NS, 100);
    chunk_queue_end(&bench->capture.queue, 1);
    CHECK(writer_merge(&bench->writer, 0));
    CHECK(writer_has_ended(&bench->writer));
    end(bench, 1, 200);
}

static void test_a_ring_keeps_the_newest(void) {
    struct bench *bench = begin(&(struct settings){.file_packets = 1, .ring_files = 3});
    take(bench, 100, BEGIN_NS, 1000, 60);
    end(bench, 3, 3);
}

/* The finishing thread has hardly woken by then. */
static void test_a_file_that_waits_for_its_name_makes_room_too(void) {
    struct bench *bench = begin(&(struct settings){.file_packets = 1, .ring_files = 100});
    for (int round = 0; round < 20; round++) {
        take(bench, 1, BEGIN_NS + round, 0, 60);
        output_close(&bench->output);
        CHECK(finisher_make_room(&bench->finisher));
    }
    CHECK(!finisher_make_room(&bench->finisher));
    end(bench, 0, 0);
}

int main(void) {
    test_files_end_after_so_many_packets();
    test_no_file_exceeds_its_size_but_for_one_packet();
    test_aligned_files_begin_at_multiples();
    test_a_step_of_the_clock_is_told_in_the_file();
    test_a_file_has_a_bound_of_what_happened();
    test_a_file_that_takes_no_more_keeps_whole_packets();
    test_packets_of_two_devices_are_in_the_order_of_their_times();
    test_a_device_that_is_still_read_is_waited_for_at_the_end();
    test_a_ring_keeps_the_newest();
    test_a_file_that_waits_for_its_name_makes_room_too();
    return 0;
}
