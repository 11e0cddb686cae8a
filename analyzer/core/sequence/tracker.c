/* SPDX-License-Identifier: Apache-2.0 */
/* A track is in one of three states. Unknown: the first candidate is in the track itself; once a
 * second one looks alike, both go into a trial of eight. Believed: a format was accepted, and its
 * sources, at most 16, are judged by sender_state.c. None: the flow was given up after 16 packets,
 * after 64 of STUN, DTLS or RTCP, without memory, or because it did not prove itself (proof.h); its
 * packets cost one comparison from then on.
 *
 * A packet of an unknown source is a candidate until a second one follows it, because a random
 * payload can look like a packet of RTP with a new SSRC. All memory comes from the pool and is
 * freed by sequence_free(). */
#include "sequence/tracker.h"

#include <string.h>

#include "sequence/proof.h"

#define TRIED_MOST  16u /* packets until the flow is given up */
#define BESIDE_MOST 64u /* call setup may take long before media starts */

#define SOURCES_MOST    16u
#define CANDIDATES_MOST 4u

struct sequence_belief {
    struct sequence_summary counts;
    uint64_t heard;
    uint64_t newest_key;
    uint32_t source_count, candidate_count;
    struct sequence_proof proof;
    struct sequence_source *sources[SOURCES_MOST];
    struct sequence_item
        candidates[CANDIDATES_MOST]; /* each the only packet of its source, newest first */
};

_Static_assert(sizeof(struct sequence_source) <= 3000, "as the header says");

/* Frees the track and marks it, so that no packet is tried any more. */
static void give_up(struct sequence_track *track, struct pool *pool) {
    sequence_free(track, pool);
    track->given_up = true;
}

/* --- sources --------------------------------------------------------------------------------- */

static struct sequence_source *find_source(const struct sequence_belief *belief, uint64_t key) {
    for (uint32_t i = 0; i < belief->source_count; i++)
        if (belief->sources[i]->key == key)
            return belief->sources[i];
    return NULL;
}

/* Reuses the source that was idle longest. */
static struct sequence_source *reuse_source(const struct sequence_belief *belief,
                                            const struct sequence_judge *judge) {
    struct sequence_source *oldest = belief->source_count ? belief->sources[0] : NULL;
    for (uint32_t i = 1; i < belief->source_count; i++)
        if (belief->sources[i]->heard < oldest->heard)
            oldest = belief->sources[i];
    if (oldest) {
        sequence_source_settle(oldest, judge);
        sequence_source_sum(oldest, judge->counts);
    }
    return oldest;
}

/* Returns a new source, or the longest idle one if there are 16 or memory has run out. The counts
 * of that one are added to the sums first. */
static struct sequence_source *add_source(struct sequence_belief *belief, uint64_t key,
                                          const struct sequence_judge *judge) {
    struct sequence_source *source = NULL;
    if (belief->source_count < SOURCES_MOST)
        source = pool_alloc(judge->pool, sizeof *source);
    if (source)
        belief->sources[belief->source_count++] = source;
    else
        source = reuse_source(belief, judge);
    if (!source)
        return NULL;
    sequence_source_begin(source, key);
    judge->counts->sources++;
    return source;
}

/* Another SSRC or run is a restart; another stream of the same run is not. */
static bool is_another_run(const struct sequence_layout *layout, uint64_t old, uint64_t new) {
    return layout->ticks || old >> 16 != new >> 16;
}

/* Begins a source, which is a restart of the sender if it replaces an SSRC or a run. */
static struct sequence_source *begin_source(struct sequence_belief *belief,
                                            const struct sequence_judge *judge,
                                            const struct sequence_item *item) {
    uint64_t key = item->key;
    const struct sequence_source *newest = find_source(belief, belief->newest_key);
    uint64_t frame_before = newest ? newest->last_frame : 0;
    struct sequence_source *source = add_source(belief, key, judge);
    if (source && is_another_run(judge->layout, belief->newest_key, key)) {
        judge->counts->restarts++;
        sequence_report(judge, WORD_BLOCK_RESTART, item, frame_before);
    }
    return source;
}

static void judge_item(struct sequence_belief *belief, struct sequence_source *source,
                       const struct sequence_judge *judge, const struct sequence_item *item) {
    source->heard = ++belief->heard;
    belief->newest_key = source->key;
    sequence_source_take(source, judge, item);
}

/* Removes the candidate of `key` from the list; returns false if none is stored. */
static bool take_candidate(struct sequence_belief *belief, uint64_t key,
                           struct sequence_item *candidate) {
    for (uint32_t i = 0; i < belief->candidate_count; i++) {
        if (belief->candidates[i].key != key)
            continue;
        *candidate = belief->candidates[i];
        belief->candidate_count--;
        memmove(&belief->candidates[i], &belief->candidates[i + 1],
                (belief->candidate_count - i) * sizeof *candidate);
        return true;
    }
    return false;
}

static void put_candidate(struct sequence_belief *belief, const struct sequence_item *item) {
    if (belief->candidate_count < CANDIDATES_MOST)
        belief->candidate_count++;
    memmove(&belief->candidates[1], &belief->candidates[0],
            (belief->candidate_count - 1) * sizeof *item);
    belief->candidates[0] = *item;
}

/* A packet of a new source: accepted with its second packet in sequence (RFC 3550 A.1), or if it
 * has the first flag and is intact. Until then it counts as other_packets. */
static void admit(struct sequence_belief *belief, const struct sequence_judge *judge,
                  const struct sequence_item *item) {
    struct sequence_item before;
    struct sequence_source *source = NULL;
    bool has_before = take_candidate(belief, item->key, &before);
    int64_t step = has_before ? sequence_step(judge->layout, before.sequence, item->sequence) : 0;
    bool follows = step >= 1 && step <= judge->layout->follow_most;
    if (follows || (item->first && !item->corrupt))
        source = begin_source(belief, judge, follows ? &before : item);
    if (!source) {
        judge->counts->other_packets++;
        put_candidate(belief, item);
        return;
    }
    if (follows) {
        judge->counts->other_packets--;
        judge_item(belief, source, judge, &before);
    }
    judge_item(belief, source, judge, item);
}

static void sum_sources(const struct sequence_belief *belief, struct sequence_summary *sums) {
    *sums = belief->counts;
    for (uint32_t i = 0; i < belief->source_count; i++)
        sequence_source_sum(belief->sources[i], sums);
    sums->lost = sums->expected - sums->unique;
}

static void judge_any(struct sequence_belief *belief, const struct sequence_judge *judge,
                      const struct sequence_item *item) {
    struct sequence_source *source = find_source(belief, item->key);
    if (source)
        judge_item(belief, source, judge, item);
    else
        admit(belief, judge, item);
}

/* Judges a packet of a believed format. Returns false if belief must be withdrawn. */
static bool judge_proven(struct sequence_belief *belief, const struct sequence_judge *judge,
                         const struct sequence_item *item,
                         const struct sequence_listener *listener) {
    struct sequence_summary sums;
    judge_any(belief, judge, item);
    if (!sequence_proof_take(&belief->proof, judge->layout, item))
        return false;
    if (!sequence_proof_is_due(&belief->proof, &belief->counts))
        return true;
    sum_sources(belief, &sums);
    return sequence_proof_settle(&belief->proof, judge->layout, &sums, listener);
}

/* --- from trial to belief -------------------------------------------------------------------- */

/* Replaces the trial by a belief. Packets that were tried and not stored count as others. */
static void believe(struct sequence_track *track, const struct sequence_layout *layout,
                    uint64_t key, struct pool *pool, const struct sequence_listener *listener) {
    struct sequence_trial *trial = track->more;
    struct sequence_belief *belief = pool_alloc(pool, sizeof *belief);
    if (!belief) {
        give_up(track, pool);
        return;
    }
    *belief = (struct sequence_belief){.newest_key = key};
    belief->proof.is_settled = belief->proof.has_clock = layout->application == WORD_BLOCKS;
    struct sequence_judge judge = {layout, &belief->counts,
                                   sequence_proof_listener(&belief->proof, listener), pool};
    belief->counts.application = layout->application;
    belief->counts.other_packets = (uint64_t)track->tried + track->beside - trial->count;
    if ((!belief->proof.is_settled && !sequence_proof_begin(&belief->proof, pool)) ||
        !add_source(belief, key, &judge)) {
        sequence_proof_free(&belief->proof, pool);
        pool_free(pool, belief, sizeof *belief);
        give_up(track, pool);
        return;
    }
    for (uint32_t i = 0; i < trial->count; i++) {
        struct sequence_item item;
        if (sequence_read(layout, &item, &trial->kept[i]))
            judge_proven(belief, &judge, &item, listener);
        else
            belief->counts.other_packets++;
    }
    pool_free(pool, trial, sizeof *trial);
    track->more = belief;
    track->layout = layout;
}

/* The list starts with the second of two similar packets, because most flows never need it. Returns
 * false if memory is exhausted. */
static bool add_tried(struct sequence_track *track, const struct sequence_packet *packet,
                      struct pool *pool) {
    struct sequence_trial *trial = track->more;
    if (!trial && !(track->first.frame && sequence_look_alike(&track->first, packet))) {
        track->first = *packet;
        return true;
    }
    if (!trial) {
        trial = track->more = pool_alloc(pool, sizeof *trial);
        if (!trial)
            return false;
        trial->count = 1;
        trial->kept[0] = track->first;
    }
    sequence_trial_add(trial, packet);
    return true;
}

static void try_packet(struct sequence_track *track, const struct sequence_packet *packet,
                       struct pool *pool, const struct sequence_listener *listener) {
    if (sequence_is_beside_rtp(&packet->payload)) {
        if (++track->beside == BESIDE_MOST)
            give_up(track, pool);
        return;
    }
    uint64_t key;
    track->tried++;
    if (sequence_is_any(packet)) {
        if (!add_tried(track, packet, pool)) {
            give_up(track, pool);
            return;
        }
        const struct sequence_layout *layout =
            track->more ? sequence_trial_believed(track->more, &key) : NULL;
        if (layout)
            believe(track, layout, key, pool, listener);
    }
    if (!track->layout && track->tried == TRIED_MOST)
        give_up(track, pool);
}

/* --- interface --------------------------------------------------------------------------- */

void sequence_take(struct sequence_track *track, const struct sequence_packet *packet,
                   struct pool *pool, const struct sequence_listener *listener) {
    struct sequence_item item;
    if (track->given_up)
        return;
    if (!track->layout) {
        try_packet(track, packet, pool, listener);
        return;
    }
    struct sequence_belief *belief = track->more;
    struct sequence_judge judge = {track->layout, &belief->counts,
                                   sequence_proof_listener(&belief->proof, listener), pool};
    if (!sequence_read(track->layout, &item, packet)) {
        belief->counts.other_packets++;
        belief->counts.foreign += !sequence_is_beside_rtp(&packet->payload);
    } else if (!judge_proven(belief, &judge, &item, listener)) {
        give_up(track, pool);
    }
}

void sequence_summary(struct sequence_track *track, const struct sequence_listener *listener,
                      struct sequence_summary *summary) {
    *summary = (struct sequence_summary){0};
    if (!track->layout || track->withdrawn)
        return;
    struct sequence_belief *belief = track->more;
    struct sequence_judge judge = {track->layout, &belief->counts,
                                   sequence_proof_listener(&belief->proof, listener), NULL};
    for (uint32_t i = 0; i < belief->source_count; i++)
        sequence_source_settle(belief->sources[i], &judge);
    sum_sources(belief, summary);
    if (belief->proof.is_settled ||
        sequence_proof_settle(&belief->proof, track->layout, summary, listener))
        return;
    *summary = (struct sequence_summary){0};
    track->withdrawn = true;
}

void sequence_free(struct sequence_track *track, struct pool *pool) {
    if (track->layout) {
        struct sequence_belief *belief = track->more;
        for (uint32_t i = 0; i < belief->source_count; i++)
            pool_free(pool, belief->sources[i], sizeof *belief->sources[i]);
        sequence_proof_free(&belief->proof, pool);
        pool_free(pool, belief, sizeof *belief);
    } else if (track->more) {
        pool_free(pool, track->more, sizeof(struct sequence_trial));
    }
    *track = (struct sequence_track){0};
}
