/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of the samples with clocks that step over the whole range of 64 bits, analyzed: no
 * sum or difference of times may overflow (`make sanitize` shows it), and all packets count. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/test/check.h"
#include "common/test/folder.h"
#include "cut/pcapng_write.h"
#include "format/merged_input.h"
#include "pipeline/analysis.h"

#define PACKETS_MOST 500u /* of a sample */
#define AT_ONCE      16u  /* packets */

enum clock { CLOCK_RANDOM, CLOCK_SOMETIMES, CLOCK_FAST, CLOCKS };

static const uint8_t section[] = {0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0,    0,    0x4d, 0x3c,
                                  0x2b, 0x1a, 1,    0,    0,  0, 0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 28, 0, 0,    0};
static unsigned long analyzed;

static uint32_t next_random(void) {
    static uint64_t state = 19;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33);
}

/* One of the times at which sums overflow. */
static int64_t extreme_time(void) {
    static const int64_t times[] = {0,
                                    1,
                                    INT64_C(1000000000),
                                    INT64_C(3000000000000000000),
                                    INT64_MAX / 2,
                                    INT64_C(1) << 62,
                                    INT64_MAX - 1,
                                    INT64_MAX};
    return times[next_random() % (sizeof times / sizeof *times)];
}

static int64_t time_of(enum clock clock, int64_t before_ns, int64_t time_ns) {
    int64_t next_ns;
    if (clock == CLOCK_RANDOM || (clock == CLOCK_SOMETIMES && next_random() % 10 == 0))
        return extreme_time();
    int64_t step_ns = clock == CLOCK_FAST ? INT64_MAX / PACKETS_MOST : time_ns % 1000000;
    return __builtin_add_overflow(before_ns, step_ns, &next_ns) ? INT64_MAX : next_ns;
}

static void write_packet(struct pcapng_writer *writer, const struct packet *packet, uint32_t number,
                         int64_t time_ns) {
    struct packet moved = *packet;
    moved.time_ns = time_ns;
    CHECK(pcapng_packet(writer,
                        &(struct written_packet){.packet = &moved,
                                                 .number = number,
                                                 .resolution_ns = 1,
                                                 .data = packet->data,
                                                 .captured = packet->captured},
                        0));
}

/* Writes the first packets of a capture with the times of a clock. Returns how many. */
static unsigned rewrite(const char *path, enum clock clock, int out) {
    struct error error;
    struct packet read[AT_ONCE];
    struct pcapng_writer writer;
    uint32_t described = 0;
    unsigned packets = 0;
    int64_t time_ns = extreme_time();
    struct merged_input *input = merged_input_open(&path, NULL, 1, &error);
    CHECK(pcapng_writer_open(&writer, out, false) &&
          pcapng_bytes(&writer, section, sizeof section));
    for (size_t n;
         input && packets < PACKETS_MOST && (n = merged_input_read(input, read, AT_ONCE)) > 0;) {
        const struct interface_list *list = merged_input_interfaces(input);
        for (; described < list->count; described++) {
            struct interface interface = *list->items[described];
            interface.time_resolution_ns = 1;
            CHECK(pcapng_interface(&writer, &interface, true));
        }
        for (size_t i = 0; i < n; i++, packets++) {
            time_ns = time_of(clock, time_ns, packet_is_timed(&read[i]) ? read[i].time_ns : 0);
            write_packet(&writer, &read[i], read[i].interface, time_ns);
        }
    }
    CHECK(pcapng_finish(&writer));
    pcapng_writer_close(&writer);
    merged_input_close(input);
    return packets;
}

static void analyze(const char *path, unsigned packets) {
    const struct analysis_options options = {
        .start_ns = INT64_MIN, .end_ns = INT64_MAX, .max_flows = 100};
    const struct reading_mode mode = {.packets = {.kind = PACKETS_ALL},
                                      .packet_rows_most = PACKETS_MOST};
    const struct analysis_files files = {.paths = &path, .count = 1};
    struct error error;
    struct analysis *analysis = analysis_open(&files, &options, &mode, &error);
    CHECK(analysis);
    while (analysis_step(analysis, 1000, &error))
        continue;
    CHECK(analysis_finish(analysis, &error));
    CHECK_INT(analysis_totals(analysis)->packets, packets);
    analysis_close(analysis);
    analyzed += packets;
}

static void check_clock(const char *path, enum clock clock) {
    char moved[32];
    int out = memfd_create("clock", 0);
    CHECK(out >= 0);
    unsigned packets = rewrite(path, clock, out);
    snprintf(moved, sizeof moved, "/proc/self/fd/%d", out);
    if (packets)
        analyze(moved, packets);
    close(out);
}

static void check_file(const char *path) {
    for (unsigned clock = 0; clock < 2 * CLOCKS; clock++)
        check_clock(path, clock % CLOCKS);
}

int main(void) {
    CHECK(each_capture("sample_pcaps", check_file));
    CHECK(each_capture("sample_pcaps/findings", check_file));
    CHECK(analyzed > 1000);
    printf("%lu packets\n", analyzed);
    return 0;
}
