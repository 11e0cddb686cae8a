/* SPDX-License-Identifier: Apache-2.0 */
/* Segments whose checksum is wrong (rules V14). Their receiver discards them, so that their data is
 * retransmitted: neither lost before the capture point nor behind it. If the receiver acknowledges
 * them instead, only the captured copy was damaged, or a tool has rewritten the packets.
 *
 * The list holds data that is neither retransmitted nor acknowledged; if it is full, the oldest
 * entry gives way. */
#include "flow/damage.h"

static void drop_damaged(struct tcp_recovery_state *recovery, uint32_t index) {
    recovery->damaged_count--;
    memmove(&recovery->damaged[index], &recovery->damaged[index + 1],
            (recovery->damaged_count - index) * sizeof *recovery->damaged);
}

/* Returns the entry for new data, NULL without memory. */
static struct damaged_data *next_damaged(const struct segment_context *seg,
                                         struct tcp_recovery_state *recovery) {
    if (recovery->damaged_count == recovery->damaged_room &&
        !pool_grow(seg->pool, (void **)&recovery->damaged, &recovery->damaged_room,
                   sizeof *recovery->damaged, 4, MAX_DAMAGED)) {
        if (!recovery->damaged_count)
            return NULL;
        drop_damaged(recovery, 0);
    }
    return &recovery->damaged[recovery->damaged_count++];
}

NOINLINE void note_damage(struct segment_context *seg, int64_t start, int64_t end) {
    bool certain = seg->damage == DAMAGE_CERTAIN;
    struct flow_event *event = NULL;
    if (certain)
        event = emit_event(seg, &(struct event){.kind = WORD_CHECKSUM_ERROR,
                                                .place = WORD_UPSTREAM,
                                                .evidence = WORD_CHECKSUM,
                                                .bytes = seg->packet->payload_bytes});
    if (start >= end)
        return;
    recovery_state(seg, seg->sender);
    struct tcp_recovery_state *recovery = seg->sender->recovery;
    struct damaged_data *entry = recovery ? next_damaged(seg, recovery) : NULL;
    if (entry)
        *entry = (struct damaged_data){start, end, event, seg->frame, certain};
}

uint32_t take_damage(struct segment_context *seg, int64_t start, int64_t end) {
    struct tcp_recovery_state *recovery = seg->sender->recovery;
    bool right = seg->packet->checksum == CHECKSUM_RIGHT;
    uint32_t frame = 0;
    for (uint32_t i = recovery ? recovery->damaged_count : 0; i-- > 0;) {
        const struct damaged_data *entry = &recovery->damaged[i];
        if (entry->start >= end || start >= entry->end)
            continue;
        if (entry->certain || (right && start == entry->start && end == entry->end))
            frame = entry->frame;
        drop_damaged(recovery, i);
    }
    return frame;
}

NOINLINE void settle_damage(struct segment_context *seg, int64_t position) {
    struct tcp_recovery_state *recovery = seg->receiver->recovery;
    for (uint32_t i = recovery->damaged_count; i-- > 0;) {
        const struct damaged_data *entry = &recovery->damaged[i];
        if (entry->end > position)
            continue;
        if (entry->certain)
            amend_event(entry->event, &(struct event){.kind = WORD_CHECKSUM_ERROR,
                                                      .place = WORD_CAPTURE,
                                                      .evidence = WORD_ACKNOWLEDGED});
        seg->effect.damage_delivered++;
        drop_damaged(recovery, i);
    }
}
