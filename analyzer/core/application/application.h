/* SPDX-License-Identifier: Apache-2.0 */
/* The applications of flows, by their first bytes: DNS, TLS and HTTP. Nothing is decrypted.
 *
 *   selection (in file order) -> application_segment(), application_datagram() (worker) -> rows/
 *
 * The payload that matters is selected before a packet goes to a worker, while all of it is at
 * hand: the first FIRST_BYTES of both directions of a TCP stream that begins like one of these
 * protocols, STREAM_BYTES of TLS and DNS, and datagrams of DNS. A worker places the bytes by their
 * stream position, gives those that are complete to the parser of the protocol, and drops them when
 * it has read or skipped them, so that no more than FIRST_BYTES are held. A flow without such a
 * payload has no state. All input is hostile: a length is checked before it is used, and each list
 * has a bound. */
#ifndef WIRETALE_APPLICATION_H
#define WIRETALE_APPLICATION_H

#include "application/state.h"
#include "decode/headers.h"

/* --- selection.c: which payload a worker needs ----------------------------------------------- */

#define SELECTION_BUCKETS (1u << 16)
#define SELECTION_SHIFT   6u /* a table of flows has the bits of the hash behind these */

struct selection_entry;

#define SELECTIONS_MOST (1u << 21) /* connections whose first bytes are selected */
struct selection {
    struct selection_entry *entries;
    uint32_t mask;       /* entries of the table less one, a power of 2 */
    uint32_t used;       /* entries */
    uint32_t open_count; /* directions whose first bytes may follow */
    /* The same by the hash of a table and the end; UINT8_MAX is for ever. */
    uint8_t open[SELECTION_BUCKETS];
};

/* Returns whether first bytes may follow in a direction of a flow, by the hash of its table. Other
 * threads may change that. Most segments are of a stream that is past its first bytes, or unknown,
 * and cost this much alone: in many captures no first bytes may follow. */
static inline bool selection_is_open(const struct selection *selection, uint32_t hash,
                                     unsigned end) {
    const uint8_t *bucket = &selection->open[(hash ^ end) % SELECTION_BUCKETS];
    return __atomic_load_n(&selection->open_count, __ATOMIC_RELAXED) &&
           __atomic_load_n(bucket, __ATOMIC_RELAXED);
}

/* Returns whether a stream may begin with this byte: those of known protocols are few. */
static inline bool selection_may_begin(uint8_t first) {
    return (uint8_t)(first - 'C') <= 'U' - 'C' || (first & ~3) == 0x14;
}

/* Returns NULL without memory. */
struct selection *selection_open(void);
/* `selection` may be NULL. */
void selection_close(struct selection *selection);

/* A selected payload. */
struct selected {
    uint32_t length;   /* bytes; 0: none */
    uint32_t position; /* in its TCP stream, below STREAM_BYTES; 0 of a datagram */
};
/* Returns which part of the beginning of headers->payload is selected, at most DATAGRAM_BYTES of a
 * datagram and STREAM_BYTES of a segment. `end` is the sender's end of the flow key; `hash` is that
 * of the key, all of whose bits count. Packets must be given in file order. */
struct selected selection_segment(struct selection *selection, uint32_t hash, unsigned end,
                                  const struct headers *headers);
struct selected selection_datagram(const struct headers *headers);

/* Passes a segment whose payload a part of captures (shard/split.h) left out because
 * selection_segment() needs none of it. */
void selection_pass(struct selection *selection, uint32_t hash, unsigned end,
                    const struct headers *headers);
/* Returns whether a part must keep the payload of a segment because of its own bytes. */
bool selection_begins(const struct headers *headers);

/* --- application.c ---------------------------------------------------------------------------- */

/* Takes the selected payload of a TCP segment. Does nothing without memory. */
void application_segment(struct application *application, const struct arrival *arrival,
                         uint32_t position, const uint8_t *bytes, uint32_t length);
/* Takes the selected payload of a datagram of `length` bytes. */
void application_datagram(struct application *application, const struct arrival *arrival,
                          const uint8_t *bytes, uint32_t captured, uint32_t length);
/* Returns whether it holds first bytes. */
bool application_holds_bytes(const struct application *application);
/* Gives up the questions that wait for an answer. Those that the data of the other direction may
 * answer, because it exceeds what was read, are dropped: unread[] has its directions. */
void application_finish_queries(struct application *application, const struct arrival *arrival,
                                const bool unread[static 2]);
/* Frees what the state holds, not the state itself. */
void application_free(struct application *application, struct pool *pool);

#endif
