/* SPDX-License-Identifier: Apache-2.0 */
/* Empties batches, reads, filters, decodes and counts the packets of their chunks, and sorts them
 * by flow. Packets that are filtered keep their place in the batch, without data. A batch is never
 * freed before the reader is: its pages are reused, and those that a smaller capacity leaves unused
 * return to the kernel. */
#include "pipeline/batch.h"

#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "decode/step.h"
#include "format/packet_origin.h"
#include "local/host_ids.h"

#define GROUP_BITS     14 /* bits of the hash; flows that share them are processed together */
#define GROUPS         (1u << GROUP_BITS)
#define SELECTED_STAYS ((size_t)8 << 20) /* bytes; their pages are not returned */

_Static_assert(GROUP_BITS >= SHARD_BITS, "a shard is some groups");

/* Returns the whole huge pages of a list behind its first `first` bytes to the kernel; they are
 * zero if they are used again. Partial pages stay, because other lists of the batch share them. */
static void give_back(void *list, size_t size, size_t first) {
    uintptr_t from = ((uintptr_t)list + first + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t until = ((uintptr_t)list + size) / HUGE_PAGE * HUGE_PAGE;
    if (from < until)
        madvise((void *)from, until - from, MADV_DONTNEED);
}

void batch_begin(struct batch *batch, size_t most) {
    if (most < batch->most) {
        give_back(batch->decoded, sizeof batch->decoded, most * sizeof *batch->decoded);
        give_back(batch->extras, sizeof batch->extras, most * sizeof *batch->extras);
        give_back(batch->in_order, sizeof batch->in_order, most * sizeof *batch->in_order);
        give_back(batch->by_flow, sizeof batch->by_flow, most * sizeof *batch->by_flow);
        give_back(batch->headers, sizeof batch->headers, 0);
    }
    if (batch->selected_bytes > SELECTED_STAYS)
        give_back(batch->selected, sizeof batch->selected, SELECTED_STAYS);
    batch->most = most;
    batch->count = batch->entries = batch->mark_count = 0;
    batch->selectable = 0;
    batch->out_of_memory = false;
    batch->extras_used = batch->header_count = 0;
    batch->selected_bytes = batch->selected_count = 0;
}

/* --- in file order, before decoding ----------------------------------------------------------- */

/* Returns the clock of the file, or a little before it: two packets that are successive in a shard
 * were not in the capture. */
static NOINLINE int64_t shard_clock(const struct packet *packet) {
    int64_t clock_ns = packet->shard & SHARD_ORIGIN ? packet_origin_of(packet).used_ns
                                                    : packet->time_ns - CLOCK_LAG_NS;
    return clock_ns > TIME_LEAST_NS ? clock_ns : TIME_LEAST_NS;
}

NOINLINE void wanted_packets_exclude(struct excluded_packets *excluded, int64_t time_ns) {
    excluded->count++;
    if (time_ns < excluded->first_ns)
        excluded->first_ns = time_ns;
    if (time_ns > excluded->last_ns)
        excluded->last_ns = time_ns;
}

/* Returns the time that counts for a packet without one. */
static NOINLINE int64_t other_time(int64_t previous_ns, const struct packet *packet) {
    return packet->shard & SHARD_ORIGIN ? packet_origin_of(packet).used_ns : previous_ns;
}

static void set_mark(const struct reader_input *input, struct batch *batch) {
    batch->marks[batch->mark_count++] = (struct mark){
        .count = (uint32_t)batch->count,
        .bytes_read = merged_input_bytes_read(input->files),
        .now_ns = input->clock.now_ns,
        .timed = input->clock.timed,
    };
}

bool chunk_has_room(const struct batch *batch) {
    return batch->count + MARK_PACKETS <= batch->most && batch->mark_count < MARKS &&
           batch->selectable + MARK_SELECTED <= BATCH_SELECTED;
}

/* Notes the packets up to a mark. Those that are not wanted lose their data and do not advance the
 * clock. It advances only if two successive packets agree, so that one wrong time stamp ends no
 * flow. */
static void note_packets(struct packet_chunk *chunk, struct reader_input *input, size_t count) {
    struct batch *batch = chunk->batch;
    struct packet *packet = &chunk->packets[chunk->count];
    int64_t previous_ns = input->clock.previous_ns, now_ns = input->clock.now_ns;
    size_t selectable = batch->selectable;
    for (uint32_t i = chunk->count; i < chunk->count + count; i++, packet++) {
        bool timed = LIKELY(packet_is_timed(packet));
        int64_t time_ns = timed ? packet->time_ns : other_time(previous_ns, packet);
        bool wanted = LIKELY(is_wanted(&input->wanted, packet, time_ns));
        selectable += packet->captured < STREAM_BYTES ? packet->captured : STREAM_BYTES;
        chunk->times_ns[i] = time_ns;
        if (!wanted)
            packet->data = NULL;
        if (!timed || !wanted)
            continue;
        int64_t agreed_ns = time_ns < previous_ns ? time_ns : previous_ns;
        if (!LIKELY(!packet->shard && input->clock.timed))
            agreed_ns = packet->shard ? shard_clock(packet) : time_ns;
        now_ns = agreed_ns > now_ns || !input->clock.timed ? agreed_ns : now_ns;
        previous_ns = time_ns;
        input->clock.timed = true;
    }
    input->clock.previous_ns = previous_ns;
    input->clock.now_ns = now_ns;
    batch->selectable = selectable;
    batch->count += count;
    chunk->count += (uint32_t)count;
    set_mark(input, batch);
}

/* Marks depend on the files alone: the next read would move the window if one has few packets. */
void chunk_read(struct packet_chunk *chunk, struct reader_input *input, struct batch *batch,
                size_t most) {
    chunk->batch = batch;
    chunk->first = (uint32_t)batch->count;
    chunk->decoded = false;
    chunk->next = NULL;
    chunk->count = chunk->pending_count = chunk->next_extras = chunk->end_extras = 0;
    size_t count = merged_input_read(input->files, chunk->packets, MARK_PACKETS);
    while (count) {
        note_packets(chunk, input, count);
        if (!chunk_has_room(batch) || chunk->count + MARK_PACKETS > most)
            break;
        count = merged_input_read_on(input->files, &chunk->packets[chunk->count], MARK_PACKETS);
    }
}

bool chunk_keep(struct packet_chunk *chunk, struct reader_input *input) {
    return merged_input_keep(input->files, chunk->packets, chunk->count, &chunk->bytes);
}

/* --- decoding --------------------------------------------------------------------------------- */

/* Returns the index of the next unused extras. */
static inline uint32_t next_extras(struct packet_chunk *chunk) {
    if (!LIKELY(chunk->next_extras < chunk->end_extras)) {
        chunk->next_extras = atomic_fetch_add(&chunk->batch->extras_used, EXTRAS_BLOCK);
        chunk->end_extras = chunk->next_extras + EXTRAS_BLOCK;
    }
    return chunk->next_extras;
}

/* Gives a packet that has none extras. */
static struct packet_extras *extras_of(struct packet_chunk *chunk, struct decoded_packet *decoded) {
    if (decoded->extras == NO_EXTRAS) {
        decoded->extras = next_extras(chunk);
        chunk->next_extras++;
    }
    return &chunk->batch->extras[decoded->extras];
}

/* Returns whether the packet must be completed with its headers. */
static inline bool decode(struct packet_chunk *chunk, const struct updater *updater, uint32_t i,
                          struct headers *headers) {
    struct batch *batch = chunk->batch;
    const struct packet *packet = &chunk->packets[i];
    struct decoded_packet *decoded = &batch->decoded[chunk->first + i];
    uint32_t extras = next_extras(chunk);
    if (!LIKELY(packet->data))
        return true;
    bool pending = packet_decode(updater, decoded, &batch->extras[extras], headers, packet,
                                 chunk->times_ns[i]);
    if (!LIKELY(!updater->identified) && decoded->keyed)
        packet_identify(&batch->identities[chunk->first + i], headers);
    decoded->extras = decoded->extra_kinds ? extras : NO_EXTRAS;
    chunk->next_extras += decoded->extra_kinds != 0;
    return pending || !headers_are_ordinary(headers) || packet->shard || updater->choice ||
           local_concerns(headers);
}

void chunk_decode(struct packet_chunk *chunk, const struct reader_input *input) {
    for (uint32_t i = 0; i < chunk->count; i++)
        if (!LIKELY(!decode(chunk, input->updater, i, &chunk->headers[chunk->pending_count])))
            chunk->pending[chunk->pending_count++] = i;
    chunk->pending[chunk->pending_count] = chunk->count;
}

/* --- in file order, after decoding ------------------------------------------------------------ */

/* Sets the state that packets of other shards would have left. Returns the step back. */
static NOINLINE int64_t set_origin(const struct packet *packet, struct decoded_packet *decoded) {
    struct packet_origin origin = {0};
    if (packet->shard & SHARD_ORIGIN)
        origin = packet_origin_of(packet);
    decoded->info.clock_step_us = origin.clock_step_us;
    if (origin.flags & ORIGIN_QUOTE_ONLY)
        decoded->extra_kinds |= decoded->extra_kinds & EXTRA_HEADERS ? EXTRA_QUOTE_ONLY : 0;
    if (origin.flags & ORIGIN_NOT_QUOTED)
        decoded->extra_kinds |= EXTRA_NOT_QUOTED;
    return origin.step_back_ns;
}

/* Returns whether a second pass must process the packet. An ICMP error may be wanted for one of its
 * two flows alone. */
static NOINLINE bool is_chosen(const struct pair_choice *pairs, struct decoded_packet *decoded,
                               const struct packet_extras *extras) {
    const struct flow_key *key = &decoded->key;
    bool own =
        decoded->keyed && pair_choice_has(pairs, shard_of_addresses(&pairs->key, key->address[0],
                                                                    key->address[1], PAIRS));
    if (LIKELY(!quotes_packet(decoded)))
        return own;
    const struct headers *headers = extras[decoded->extras].headers;
    bool quoted = pair_choice_has(pairs, shard_of_quoted(&pairs->key, headers, PAIRS));
    decoded->extra_kinds |= own ? 0 : EXTRA_QUOTE_ONLY;
    decoded->extra_kinds |= quoted ? 0 : EXTRA_NOT_QUOTED;
    return own || quoted;
}

/* Copies what was decoded and points into the chunk. */
static NOINLINE void keep_extras(struct batch *batch, struct decoded_packet *decoded,
                                 struct packet_extras *extras, const struct headers *headers) {
    if (decoded->extra_kinds & EXTRA_HEADERS) {
        batch->headers[batch->header_count] = *headers;
        extras->headers = &batch->headers[batch->header_count++];
    }
    if (!(decoded->extra_kinds & EXTRA_APPLICATION))
        return;
    extras->selected_at = batch->selected_bytes;
    memcpy(batch->selected + batch->selected_bytes, headers->payload, extras->selected.length);
    batch->selected_bytes += extras->selected.length;
    batch->selected_count++;
}

/* Counts a packet by its time. */
static inline void count_packet(struct packet_chunk *chunk, struct reader_input *input,
                                struct interface_count *count, const struct packet *packet,
                                struct decoded_packet *decoded) {
    int64_t step_back_ns = interface_count_packet(count, packet, decoded->info.time_ns);
    bursts_add(&count->bursts, count->last_ns, count->bytes - packet->length, count->bytes,
               packet->frame, &input->counts.rings_bytes);
    decoded->info.clock_step_us = count->clock_step_us;
    if (!LIKELY(!packet->shard))
        step_back_ns = set_origin(packet, decoded);
    if (!LIKELY(!step_back_ns)) {
        extras_of(chunk, decoded)->step_back_ns = step_back_ns;
        decoded->extra_kinds |= EXTRA_STEP_BACK;
    }
    if (!LIKELY(!packet->process)) {
        extras_of(chunk, decoded)->process = packet->process;
        decoded->extra_kinds |= EXTRA_PROCESS;
    }
}

/* Takes the packet's IPv4 ID; a shard has what all packets of the host showed. */
static inline void take_host_id(struct reader_input *input, const struct packet *packet,
                                struct decoded_packet *decoded) {
    struct packet_info *info = &decoded->info;
    info->ids_before = 0;
    if (!info->ip_id)
        return;
    info->ids_before =
        LIKELY(!packet->shard)
            ? host_ids_before(input->host_ids, load_le32(decoded->key.address[decoded->swapped]),
                              packet->interface, info->ip_id)
            : (uint8_t)(packet->shard >> SHARD_IDS_SHIFT);
}

/* Adds a packet to those that are processed. */
static inline void add_entries(struct batch *batch, uint32_t at) {
    const struct decoded_packet *decoded = &batch->decoded[at];
    batch->in_order[batch->entries++] = (struct batch_entry){.hash = decoded->hash, .packet = at};
    if (!LIKELY(!(decoded->extra_kinds & EXTRA_HEADERS)) && quotes_packet(decoded))
        batch->in_order[batch->entries++] = (struct batch_entry){
            .hash = batch->extras[decoded->extras].quoted_hash, .packet = at | ENTRY_QUOTED};
}

/* Selects first bytes of a packet, or notes what else packet_decode() left. */
static NOINLINE void finish_packet(struct packet_chunk *chunk, struct updater *updater,
                                   const struct packet *packet, struct decoded_packet *decoded,
                                   const struct headers *headers) {
    struct headers again;
    if (!headers) {
        decode_packet(packet, &again);
        headers = &again;
    }
    struct packet_extras *extras = extras_of(chunk, decoded);
    packet_complete(updater, decoded, extras, headers, packet);
    keep_extras(chunk->batch, decoded, extras, headers);
}

static void count_headers(struct reader_input *input, struct interface_count *count,
                          const struct packet *packet, const struct headers *headers) {
    interface_count_headers(count, packet, headers);
    if (input->local && local_concerns(headers))
        local_take(input->local, packet, headers);
}

/* `headers` is NULL for an ordinary packet. A stream may have begun since it was decoded, unless it
 * was decoded `now`. */
static ALWAYS_INLINE void complete(struct packet_chunk *chunk, struct reader_input *input,
                                   uint32_t i, const struct headers *headers, bool now) {
    struct batch *batch = chunk->batch;
    struct updater *updater = input->updater;
    const struct packet *packet = &chunk->packets[i];
    struct decoded_packet *decoded = &batch->decoded[chunk->first + i];
    struct interface_count *count = interface_count_of(&input->counts, packet->interface);
    if (!LIKELY(count)) {
        batch->out_of_memory = true;
        return;
    }
    if (headers && !packet->data) {
        count->filtered++;
        return;
    }
    if (headers)
        count_headers(input, count, packet, headers);
    else
        count->reasons[REASON_NONE]++;
    if (headers || (!now && !LIKELY(!packet_may_continue(updater, decoded))))
        finish_packet(chunk, updater, packet, decoded, headers);
    count_packet(chunk, input, count, packet, decoded);
    if (LIKELY(decoded->keyed))
        take_host_id(input, packet, decoded);
    if (headers && updater->choice && !is_chosen(updater->choice, decoded, batch->extras))
        return;
    if (!headers || decoded->keyed || decoded->extra_kinds)
        add_entries(batch, chunk->first + i);
}

static NOINLINE void complete_pending(struct packet_chunk *chunk, struct reader_input *input,
                                      uint32_t i, const struct headers *headers) {
    complete(chunk, input, i, headers, true);
}

void chunk_complete(struct packet_chunk *chunk, struct reader_input *input) {
    const struct headers *headers = chunk->headers;
    const uint32_t *pending = chunk->pending;
    for (uint32_t i = 0; i < chunk->count; i++) {
        if (LIKELY(i != *pending)) {
            complete(chunk, input, i, NULL, false);
        } else {
            complete_pending(chunk, input, i, headers++);
            pending++;
        }
    }
}

void chunk_decode_alone(struct packet_chunk *chunk, struct reader_input *input) {
    struct headers *headers = chunk->headers;
    for (uint32_t i = 0; i < chunk->count; i++) {
        if (LIKELY(!decode(chunk, input->updater, i, headers)))
            complete(chunk, input, i, NULL, true);
        else
            complete_pending(chunk, input, i, headers);
    }
}

/* --- sorting ---------------------------------------------------------------------------------- */

/* A counting sort by the upper bits of the hash, in two passes over the packets. It is stable, so
 * packets of one flow stay in file order, which TCP state depends on. A group may mix the packets
 * of several flows; that costs some cache misses, but no correctness. The list of places takes
 * 64 KiB of the stack, so STACK_BYTES of the reader must have room for it. */
void batch_sort(struct batch *batch, bool by_flow) {
    uint32_t places[GROUPS] = {0}, sum = 0;
    uint32_t mask = (by_flow ? GROUPS - 1 : (SHARDS - 1) * (GROUPS / SHARDS)) << (32 - GROUP_BITS);
    for (size_t i = 0; i < batch->entries; i++)
        places[(batch->in_order[i].hash & mask) >> (32 - GROUP_BITS)]++;
    for (size_t group = 0; group < GROUPS; group++) {
        uint32_t size = places[group];
        if (group % (GROUPS / SHARDS) == 0)
            batch->parts[group / (GROUPS / SHARDS)] = sum;
        places[group] = sum;
        sum += size;
    }
    batch->parts[SHARDS] = sum;
    for (size_t i = 0; i < batch->entries; i++) {
        uint32_t group = (batch->in_order[i].hash & mask) >> (32 - GROUP_BITS);
        batch->by_flow[places[group]++] = batch->in_order[i];
    }
}
