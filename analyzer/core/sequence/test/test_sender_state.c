/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the newest numbers, which events refer to. */
#include "sequence/sender_state.h"

#include "common/test/check.h"

static struct sequence_source source;
static struct sequence_summary summary;

static void take(uint64_t number, uint64_t frame) {
    static const struct sequence_layout layout = {.bits = 64, .ahead_most = 1000000};
    struct sequence_judge judge = {.layout = &layout, .counts = &summary};
    struct sequence_item item = {.sequence = number, .frame = frame};
    sequence_source_take(&source, &judge, &item);
}

int main(void) {
    sequence_source_begin(&source, 0);
    take(1, 11);
    take(4, 12);
    take(3, 13);
    CHECK_INT(sequence_source_overtaker(&source, 2), 12);
    CHECK_INT(sequence_source_frame(&source, 2), 0);
    CHECK_INT(sequence_source_frame(&source, 1), 11);
    take(1 + SEQUENCE_FRAMES, 14);
    CHECK_INT(sequence_source_frame(&source, 1), 0); /* another number has its place */
    CHECK_INT(sequence_source_overtaker(&source, 1), 0);
    return 0;
}
