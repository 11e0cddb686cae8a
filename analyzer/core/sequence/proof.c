/* SPDX-License-Identifier: Apache-2.0 */
/* Shares that no network makes: a mirror of several ports makes up to MIRRORED_MOST copies, all of
 * them with equal payload; a lossy path keeps some consecutive numbers, unless the sender offers
 * far more than the link carries, and then its clock still keeps pace with the capture's. */
#include "sequence/proof.h"

#define SECOND        ((int64_t)1000000000)
#define PROOF_NS      (10 * SECOND)
#define TRIAL_PACKETS 64u
#define PACE_MOST     8    /* between the sender's clock and the capture's */
#define STILL_MOST    1024 /* packets of RTP with one timestamp, a picture of over 1 MB */
#define MIRRORED_MOST 8    /* copies of a packet */

static void collect(void *context, const struct sequence_event *event) {
    struct sequence_proof *proof = context;
    if (proof->waiting_count < PROOF_EVENTS_MOST)
        proof->waiting[proof->waiting_count++] = *event;
    else
        proof->is_overfull = true;
}

bool sequence_proof_begin(struct sequence_proof *proof, struct pool *pool) {
    proof->waiting = pool_alloc(pool, PROOF_EVENTS_MOST * sizeof *proof->waiting);
    return proof->waiting;
}

const struct sequence_listener *sequence_proof_listener(struct sequence_proof *proof,
                                                        const struct sequence_listener *listener) {
    if (proof->is_settled)
        return listener;
    proof->collector = (struct sequence_listener){collect, proof};
    return &proof->collector;
}

/* Returns whether the sender's clock went with the capture's, within PACE_MOST; true if one of both
 * is not known. A clock that was set back is a clock. */
static bool keeps_pace(const struct sequence_proof *proof, const struct sequence_item *item,
                       int64_t arrived) {
    int64_t moved = item->sent - proof->first_sent;
    return moved < 0 || (moved >= arrived / PACE_MOST && moved / PACE_MOST <= arrived);
}

bool sequence_proof_take(struct sequence_proof *proof, const struct sequence_layout *layout,
                         const struct sequence_item *item) {
    int64_t arrived;
    if (!proof->begun || (item->time_known && !proof->is_timed)) {
        proof->begun = true;
        proof->is_timed = item->time_known;
        proof->first_ns = item->time_ns;
        proof->first_sent = item->sent;
    }
    proof->has_moved |= item->sent != proof->first_sent;
    if (proof->has_clock || layout->ticks || !item->time_known ||
        __builtin_sub_overflow(item->time_ns, proof->first_ns, &arrived) || arrived < PROOF_NS)
        return true;
    proof->has_clock = true;
    return keeps_pace(proof, item, arrived);
}

bool sequence_proof_is_due(const struct sequence_proof *proof,
                           const struct sequence_summary *counts) {
    uint64_t least = proof->has_moved ? TRIAL_PACKETS : STILL_MOST;
    return !proof->is_settled &&
           (proof->is_overfull || counts->received + counts->contrary >= least);
}

/* Returns whether the counts can be those of a numbered stream. */
static bool is_plausible(const struct sequence_layout *layout,
                         const struct sequence_summary *sums) {
    uint64_t lost = sums->expected - sums->unique;
    bool few_consecutive = sums->next * 8 < sums->received;
    return sums->contrary * 4 <= sums->received &&
           sums->duplicates <= MIRRORED_MOST * sums->unique &&
           (sums->out_of_order + sums->late) * 2 <= sums->received &&
           sums->restarts * 2 <= sums->received + 4 &&
           !(layout->ticks && few_consecutive && lost > 9 * sums->unique);
}

bool sequence_proof_settle(struct sequence_proof *proof, const struct sequence_layout *layout,
                           const struct sequence_summary *sums,
                           const struct sequence_listener *listener) {
    if (!is_plausible(layout, sums) || !proof->has_moved)
        return false;
    proof->is_settled = true;
    for (uint32_t i = 0; listener && i < proof->waiting_count; i++)
        listener->report(listener->context, &proof->waiting[i]);
    return true;
}

void sequence_proof_free(struct sequence_proof *proof, struct pool *pool) {
    if (proof->waiting)
        pool_free(pool, proof->waiting, PROOF_EVENTS_MOST * sizeof *proof->waiting);
    proof->waiting = NULL;
    proof->waiting_count = 0;
}
