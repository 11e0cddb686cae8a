/* SPDX-License-Identifier: Apache-2.0 */
/* Packets as they pass one capture point: what tells one packet from all others, so that the same
 * packet is found again in a capture taken elsewhere. Nothing here survives a router's changes but
 * is relied on: addresses, ports and TTL are told apart from what a packet carries.
 */
#ifndef WIRETALE_OBSERVATION_H
#define WIRETALE_OBSERVATION_H

#include "format/merged_input.h"

#define OBSERVATION_UNKNOWN      INT64_MIN /* of an int64 column: null */
#define OBSERVATION_ENDS_MAX     448       /* two addresses, ports and the longest path, as text */
#define OBSERVATION_DIGEST_MAX   128u      /* payload bytes that the long digest covers */
#define OBSERVATION_DIGEST_LEAST 16u /* and the short one, for captures of a small snap length */

/* One row. A datagram in fragments has a row for each of them, all of one `datagram`; a datagram of
 * several blocks (UDP segmentation offload) has a row for each block. */
struct observation {
    int64_t packet;        /* its number in the order of reading, over all files */
    int64_t frame;         /* its number in its file */
    int64_t time_ns;       /* OBSERVATION_UNKNOWN without a time stamp */
    uint64_t conversation; /* of two ends and a path, whoever sends */
    uint64_t digest;       /* of the payload's first bytes; of a TCP segment without payload, of its
                              window, flags and options; 0 when nothing was captured */
    uint64_t digest_short; /* of fewer bytes */
    int64_t run;           /* block: OBSERVATION_UNKNOWN when it is none */
    int64_t number;        /* its sequence */
    int64_t datagram;      /* of fragments, else OBSERVATION_UNKNOWN */
    uint32_t interface;
    uint32_t sequence, acknowledgment; /* TCP */
    uint32_t payload;                  /* bytes behind the transport header */
    uint32_t ip_bytes;
    uint32_t fragment_start, fragment_end; /* bytes of the IP payload */
    uint16_t ip_id;                        /* 0 tells nothing */
    uint16_t flags, mss;                   /* TCP */
    uint16_t stream;                       /* block */
    uint16_t part;                         /* blocks before it in the same datagram */
    uint8_t side;                          /* which end of the conversation sent it */
    uint8_t protocol, ttl;
    uint8_t digested;  /* bytes that `digest` covers */
    uint8_t completes; /* a fragment: the last that was missing */
    bool ends_told;    /* `ends` is set: not for every packet, but for each conversation */
    char ends[OBSERVATION_ENDS_MAX]; /* protocol|source|port|destination|port|path, the sender first
                                      */
};

/* Name, Arrow type (of arrow_stream.h's formats), member. Text columns are told apart by 'u'. */
#define OBSERVATION_COLUMNS(X)                                                                     \
    X(packet, "l")                                                                                 \
    X(frame, "l")                                                                                  \
    X(time_ns, "l")                                                                                \
    X(conversation, "L")                                                                           \
    X(digest, "L")                                                                                 \
    X(digest_short, "L")                                                                           \
    X(run, "l")                                                                                    \
    X(number, "l")                                                                                 \
    X(datagram, "l")                                                                               \
    X(interface, "I")                                                                              \
    X(sequence, "I")                                                                               \
    X(acknowledgment, "I")                                                                         \
    X(payload, "I")                                                                                \
    X(ip_bytes, "I")                                                                               \
    X(fragment_start, "I")                                                                         \
    X(fragment_end, "I")                                                                           \
    X(ip_id, "S")                                                                                  \
    X(flags, "S")                                                                                  \
    X(mss, "S")                                                                                    \
    X(stream, "S")                                                                                 \
    X(part, "S")                                                                                   \
    X(side, "C")                                                                                   \
    X(protocol, "C")                                                                               \
    X(ttl, "C")                                                                                    \
    X(digested, "C")                                                                               \
    X(completes, "C")

struct observation_reader;

/* What could not become a row. */
struct observation_counts {
    uint64_t packets;    /* read */
    uint64_t not_ip;     /* of them */
    uint64_t unread;     /* cut or broken before the transport's payload */
    uint64_t unassigned; /* fragments without memory for their datagram */
};

/* NULL with the error said. Paths are copied. */
struct observation_reader *observation_reader_open(const char *const *paths, size_t count,
                                                   struct error *error);
void observation_reader_close(struct observation_reader *reader);

/* Fills up to `most` rows; 0 at the end of the input. */
size_t observation_read(struct observation_reader *reader, struct observation *rows, size_t most);

struct observation_counts observation_reader_counts(const struct observation_reader *reader);
const struct merged_input *observation_reader_captures(const struct observation_reader *reader);

#endif
