/* SPDX-License-Identifier: Apache-2.0 */
/* Every prefix of every packet of the samples and of the captures beside: nothing is read beyond
 * the bytes, and a cut never makes a good packet malformed. */
#include <string.h>

#include "common/test/check.h"
#include "common/test/folder.h"
#include "decode/headers.h"
#include "format/merged_input.h"

#define PREFIX_MOST 400u /* bytes: headers end before */

static unsigned long packets, prefixes, answers[DECODE_MALFORMED + 1];
static bool reasons_met[REASON_COUNT];

static void check_bounds(const struct packet *packet, const struct headers *headers) {
    CHECK(headers->reason < REASON_COUNT && headers->path_depth <= PATH_DEPTH_MAX);
    CHECK_INT(headers->answer, decode_reason_answer(headers->reason));
    if (headers->layer < LAYER_NETWORK)
        return;
    CHECK(headers->payload >= packet->data);
    CHECK(headers->payload + headers->payload_captured <= packet->data + packet->captured);
    CHECK(headers->payload_captured <= headers->payload_length);
    CHECK((uint64_t)headers->outer_length + headers->ip_length <= packet->length ||
          packet->length < packet->captured || headers->length_over_record);
}

/* The bytes in memory of exactly their size, so that the sanitizer sees a step beyond. */
static void check_prefixes(const struct packet *whole) {
    struct headers full, cut;
    decode_packet(whole, &full);
    check_bounds(whole, &full);
    answers[full.answer]++;
    reasons_met[full.reason] = true;
    uint32_t most = whole->captured < PREFIX_MOST ? whole->captured : PREFIX_MOST;
    for (uint32_t size = 0; size < most; size++) {
        uint8_t *bytes = malloc(size + !size);
        struct packet prefix = *whole;
        CHECK(bytes);
        memcpy(bytes, whole->data, size);
        prefix.data = bytes;
        prefix.captured = size;
        if (prefix.length < whole->captured)
            prefix.length = whole->captured;
        decode_packet(&prefix, &cut);
        check_bounds(&prefix, &cut);
        CHECK(cut.answer != DECODE_MALFORMED || full.answer == DECODE_MALFORMED);
        reasons_met[cut.reason] = true;
        prefixes++;
        free(bytes);
    }
    packets++;
}

static void check_file(const char *path) {
    struct error error = {0};
    struct merged_input *set = merged_input_open(&path, NULL, 1, &error);
    struct packet packet;
    while (set && merged_input_read(set, &packet, 1) == 1)
        check_prefixes(&packet);
    merged_input_close(set);
}

int main(void) {
    unsigned met = 0;
    CHECK(each_capture("sample_pcaps", check_file));
    if (!each_capture("../shared/captures/tcpdump-tests", check_file))
        printf("    ../shared/captures is missing: left out\n");
    for (unsigned reason = 0; reason < REASON_COUNT; reason++)
        met += reasons_met[reason];
    CHECK(packets > 500 && prefixes > 20000 && answers[DECODE_OK] > 400);
    printf("    %lu packets, %lu prefixes; %u of %u reasons met\n", packets, prefixes, met,
           REASON_COUNT);
    return 0;
}
