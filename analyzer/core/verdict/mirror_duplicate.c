/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/mirror_duplicate.h"

#define COPIES_SURE 8u /* of which every second packet is one: a mirror that began late */

/* RFC 2883 takes SACK. A receiver with gaps may put its reports together, and leave this one out.
 */
enum copy_doubt mirror_doubt(const struct step *step, int64_t start, int64_t end) {
    const struct tcp_stream *stream = step->stream;
    const struct tcp_trouble *trouble = tcp_trouble_of(stream);
    bool agreed = stream->sack_permitted && step->other->sack_permitted;
    bool gaps = stream->gaps.count > stream->gaps.acked || trouble->sacked_count;
    return agreed && !gaps && start >= 0 && end > start ? COPY_REPORTABLE : COPY_UNKNOWN;
}

bool mirror_is_throughout(const struct tcp_trouble *trouble, uint64_t packets) {
    uint64_t copies = trouble->mirror_duplicates;
    if (2 * copies >= packets || (copies > 1 && 4 * copies > packets))
        return true;
    return copies >= COPIES_SURE && 4 * copies > packets - trouble->packets_uncopied;
}

bool mirror_is_likely(const struct flow *flow) {
    uint64_t copies = 0, since = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct direction *direction = &flow->directions[i];
        const struct tcp_trouble *trouble = tcp_trouble_of(&direction->tcp);
        if (!trouble->mirror_duplicates)
            continue;
        copies += trouble->mirror_duplicates;
        since += direction->packets - trouble->packets_uncopied;
    }
    return copies > 1 && 4 * copies > since;
}

/* The receiver had cause to report it, and reported nothing. */
static bool is_unreported(const struct tcp_stream *stream, const struct judged *copy) {
    return copy->doubt == COPY_REPORTABLE && stream->acked_known && stream->acked >= copy->end;
}

bool mirror_may_be_none(const struct tcp_stream *stream, const struct judged *copy) {
    return copy->kind == WORD_MIRROR_DUPLICATE && copy->doubt != COPY_OF_TWO_PORTS &&
           !copy->reported && !is_unreported(stream, copy);
}

void mirror_give_up(struct tcp_trouble *trouble, struct judged *copy) {
    copy->kind = WORD_UNKNOWN_DUPLICATE;
    trouble->mirror_duplicates--;
    trouble->unknown_duplicates++;
}

void mirror_settle(struct tcp_stream *stream, uint64_t packets, mirror_unknown *unknown,
                   void *context) {
    struct tcp_trouble *trouble = stream->trouble;
    if (!trouble || !trouble->mirror_duplicates || mirror_is_throughout(trouble, packets))
        return;
    for (uint32_t i = 0; i < trouble->judged_count; i++) {
        struct judged *copy = &trouble->judged[i];
        if (!mirror_may_be_none(stream, copy))
            continue;
        mirror_give_up(trouble, copy);
        unknown(context, copy);
    }
}
