/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker/time_accounting.h"
#include "verdict/stall.h"

const struct tcp_trouble no_trouble;

static void free_trouble(struct tcp_trouble *trouble, struct allowance *allowance) {
    if (!trouble)
        return;
    allowance_release(allowance, trouble->judged, trouble->judged_room, sizeof *trouble->judged);
    stall_free(trouble, allowance);
    allowance_give(allowance, trouble, sizeof *trouble);
}

void tcp_stream_free(struct tcp_stream *stream, struct allowance *allowance) {
    range_set_free(&stream->gaps, allowance);
    segment_ring_free(&stream->unacked, allowance);
    sample_set_free(&stream->rtt, allowance);
    limit_free(stream, allowance);
    allowance_release(allowance, stream->marks, stream->mark_room, sizeof *stream->marks);
    stream->marks = NULL;
    stream->mark_room = 0;
    block_stream_free(stream->blocks, allowance);
    stream->blocks = NULL;
    free_trouble(stream->trouble, allowance);
    stream->trouble = NULL;
}
