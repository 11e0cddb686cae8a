/* SPDX-License-Identifier: Apache-2.0 */
/* Observations (RFC 5476): packets at one capture point, with the fields that identify a packet, so
 * that it can be found in a capture from another point. Matching uses only fields that routers do
 * not change; addresses, ports and TTL are stored separately from the packet's content. */
#ifndef WIRETALE_OBSERVATION_H
#define WIRETALE_OBSERVATION_H

#include "export/export.h"
#include "format/merged_input.h"

#define OBSERVATION_UNKNOWN      INT64_MIN /* null of an int64 column */
#define OBSERVATION_ENDS_MAX     448  /* addresses, ports and the longest encapsulation, as text */
#define OBSERVATION_DIGEST_MAX   128u /* payload bytes covered by the long digest */
#define OBSERVATION_DIGEST_LEAST 16u  /* and by the short one */

/* One row. Each fragment has a row, with the number of its datagram; a datagram of several blocks
 * (UDP segmentation offload) has one row per block. */
struct observation {
    int64_t packet;        /* number in reading order, over all files */
    int64_t frame;         /* frame number in its file */
    int64_t time_ns;       /* OBSERVATION_UNKNOWN if it has no time stamp */
    uint64_t conversation; /* identifies two ends and an encapsulation, in both directions */
    uint64_t digest;       /* of the payload's first bytes; of a TCP segment without payload, of its
                              window, flags and options; 0 if nothing was captured */
    uint64_t digest_short; /* of fewer bytes */
    int64_t run;           /* run of the block, or OBSERVATION_UNKNOWN */
    int64_t number;        /* sequence number of the block */
    int64_t stamp;         /* TSval of a TCP segment, or OBSERVATION_UNKNOWN */
    int64_t datagram;      /* number of the fragments' datagram, or OBSERVATION_UNKNOWN */
    uint32_t interface;
    uint32_t sequence, acknowledgment; /* TCP */
    uint32_t payload;                  /* bytes after the transport header */
    uint32_t ip_bytes;
    uint32_t fragment_start, fragment_end; /* bytes of the IP payload */
    uint16_t ip_id;                        /* 0 is not usable */
    uint16_t flags, mss;                   /* TCP */
    uint16_t stream;                       /* of the block */
    uint16_t part;                         /* earlier blocks in the same datagram */
    uint8_t side;                          /* sending end of the conversation */
    uint8_t protocol, ttl;
    uint8_t digested;                /* bytes covered by `digest` */
    uint8_t completes;               /* true for the fragment that completes its datagram */
    bool has_ends;                   /* `ends` is set, at least once per conversation */
    char ends[OBSERVATION_ENDS_MAX]; /* protocol|source|port|destination|port|encapsulation, sender
                                        first */
};

/* Name, Arrow type (formats of arrow_stream.c), member. The type of text columns is 'u'. */
#define OBSERVATION_COLUMNS(X)                                                                     \
    X(packet, "l")                                                                                 \
    X(frame, "l")                                                                                  \
    X(time_ns, "l")                                                                                \
    X(conversation, "L")                                                                           \
    X(digest, "L")                                                                                 \
    X(digest_short, "L")                                                                           \
    X(run, "l")                                                                                    \
    X(number, "l")                                                                                 \
    X(stamp, "l")                                                                                  \
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

/* Packets read and those without a row, since the reader was opened. */
struct observation_counts {
    uint64_t packets;    /* packets read */
    uint64_t not_ip;     /* without IP */
    uint64_t unread;     /* truncated or malformed before the transport's payload */
    uint64_t unassigned; /* fragments whose datagram could not be allocated */
};

/* Opens captures, which are merged by time. Returns NULL with `error` set if that fails. Paths
 * are copied. The reader must be closed; closing NULL does nothing. */
struct observation_reader *observation_reader_open(const char *const *paths, size_t count,
                                                   struct error *error);
void observation_reader_close(struct observation_reader *reader);

/* Fills up to `most` rows. Returns their number, 0 at the end of the input. Blocks until `most`
 * rows are complete or the input ends. Damage ends a file early without an error: see
 * merged_input_damage(). */
size_t observation_read(struct observation_reader *reader, struct observation *rows, size_t most);

/* Complete at the end of the input; valid before, but still growing. The captures belong to the
 * reader. */
struct observation_counts observation_reader_counts(const struct observation_reader *reader);
const struct merged_input *observation_reader_captures(const struct observation_reader *reader);

/* --- observation_stream.c ----------------------------------------------------------------------
 */

/* Exports observations as an Arrow stream. Files are read as the consumer requests batches, so that
 * a capture of any size needs the memory of one batch. */

/* `ended` is called at most once, when the input was read to its end, and takes over the reader.
 * If the input cannot be opened or the stream is released early, it is not called. `disown` is
 * called once, at the release. Both may be called from any thread; `owner` must live until
 * `disown`. */
struct observation_listener {
    void (*ended)(void *owner, struct observation_reader *reader);
    void (*disown)(void *owner);
    void *owner;
};

/* Writes the schema, which is the same for all captures. Returns 0, or ENOMEM. */
int observation_schema_export(struct ArrowSchema *out);

/* Returns 0, or ENOMEM. The files are opened for the first batch; their errors are errors of the
 * stream. `paths` must live as long as the owner. */
int observation_stream_export(const char *const *paths, size_t count,
                              const struct observation_listener *listener,
                              struct ArrowArrayStream *out);

#endif
