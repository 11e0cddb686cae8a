/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that is anonymized and cut. The output must be a capture with as many
 * packets as were written. */
#define _GNU_SOURCE /* memfd_create */
#include "cut/address_map.h"
#include "cut/cut.h"
#include "fuzz/memory_file.h"
#include "fuzz/packet_mutator.h"

#define AT_ONCE 16 /* packets */

static const uint8_t section[] = {0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0,    0,    0x4d, 0x3c,
                                  0x2b, 0x1a, 1,    0,    0,  0, 0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 28, 0, 0,    0};

static void check_output(int out, uint64_t written) {
    char path[CAPTURE_PATH_SIZE];
    const char *paths[] = {path};
    struct error error;
    struct packet packets[AT_ONCE];
    snprintf(path, sizeof path, "/proc/self/fd/%d", out);
    struct merged_input *input = merged_input_open(paths, NULL, 1, &error);
    check(input);
    uint64_t count = 0;
    for (size_t n; (n = merged_input_read(input, packets, AT_ONCE)) > 0;)
        count += n;
    check(count == written && !merged_input_damage(input, 0)->present);
    merged_input_close(input);
}

/* Bits of the number of bytes decide on the options, so that a corpus covers all of them. */
static void choose(struct choice *choice, size_t size) {
    check(choice_open(choice, 1));
    choice->all = size % 7 != 0;
    for (uint64_t frame = 1; frame < 8; frame += 2)
        check(choice_add_frame(choice, 0, frame));
    choice->around_ns = size % 2 ? size % 4 == 1 ? 1 : INT64_MAX : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t key[ADDRESS_KEY_SIZE] = {1};
    char path[CAPTURE_PATH_SIZE];
    const char *paths[] = {path};
    struct error error;
    struct choice choice;
    int file = make_capture_file(data, size, path), out = memfd_create("cut", 0);
    choose(&choice, size);
    struct cut_options options = {.paths = paths,
                                  .path_count = 1,
                                  .fd = out,
                                  .head = section,
                                  .head_size = sizeof section,
                                  .headers_only = size % 3 == 0,
                                  .classic = size % 11 < 3,
                                  .key = size % 5 ? key : NULL,
                                  .choice = &choice};
    struct cut *cut = cut_open(&options, &error);
    enum cut_state state = CUT_MORE;
    while (cut && state == CUT_MORE)
        state = cut_step(cut, &error);
    if (cut && state == CUT_DONE)
        check_output(out, cut_packets_written(cut));
    cut_close(cut);
    choice_close(&choice);
    close(out);
    close(file);
    return 0;
}
