/* SPDX-License-Identifier: Apache-2.0 */
/* The applications of flows, by their first bytes: DNS, TLS and HTTP/1. Nothing is decrypted.
 *
 *   selection (reader's thread) -> application_segment(), application_datagram() (worker) -> rows/
 *
 * The reader's thread selects the payload that matters, because only there all of it is at hand:
 * the first FIRST_BYTES of both directions of a TCP stream that begins like one of these protocols,
 * and datagrams of DNS. A worker places the bytes by their stream position, gives those that are
 * complete from the beginning on to the parser of the protocol, and frees them when it needs no
 * more. A flow without such a payload has no state. All input is hostile: a length is checked
 * before it is used, and each list has a bound. */
#ifndef WIRETALE_APPLICATION_H
#define WIRETALE_APPLICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "application/quic.h"
#include "base/packet.h"
#include "base/pool.h"
#include "base/vocabulary.h"
#include "decode/headers.h"

#define PORT_DNS          53
#define FIRST_BYTES       4096u   /* of each direction of a stream */
#define FIRST_BYTES_FLOWS 100000u /* flows that may hold first bytes at once */
#define FIRST_PIECES      4u      /* pieces behind the first missing byte */
#define DATAGRAM_BYTES    2048u   /* most bytes of a datagram that are selected */
#define NAME_TEXT_MAX     1024u   /* a name of 255 bytes, escaped, with its NUL */

/* --- selection.c: which payload a worker needs ----------------------------------------------- */

#define SELECTION_BUCKETS (1u << 16)

struct selection_entry;

struct selection {
    struct selection_entry *entries;
    uint32_t used; /* entries */
    /* By selection_bucket(): directions whose first bytes may follow; UINT8_MAX is for ever. */
    uint8_t open[SELECTION_BUCKETS];
};

static inline uint8_t *selection_bucket(struct selection *selection, uint32_t hash, unsigned end) {
    return &selection->open[(hash ^ end) % SELECTION_BUCKETS];
}

/* Returns whether selection_segment() may select a payload that begins with this byte. Most
 * segments are of a stream that is past its first bytes, or unknown, and cost this much alone: the
 * first byte of a known protocol is one of few. */
static inline bool selection_may_begin(struct selection *selection, uint32_t hash, unsigned end,
                                       uint8_t first) {
    bool of_known_protocol = (uint8_t)(first - 'C') <= 'T' - 'C' || (first & ~3) == 0x14;
    return *selection_bucket(selection, hash, end) | of_known_protocol;
}

/* Returns NULL without memory. */
struct selection *selection_open(void);
/* `selection` may be NULL. */
void selection_close(struct selection *selection);

/* A selected payload. */
struct selected {
    uint32_t length;   /* bytes; 0: none */
    uint32_t position; /* in its TCP stream, below FIRST_BYTES; 0 of a datagram */
};
/* Returns which part of the beginning of headers->payload is selected, at most DATAGRAM_BYTES of a
 * datagram and FIRST_BYTES of a segment. `end` is the sender's end of the flow key; `hash` is that
 * of the key. Packets must be given in file order. */
struct selected selection_segment(struct selection *selection, uint32_t hash, unsigned end,
                                  const struct headers *headers);
struct selected selection_datagram(const struct headers *headers);

/* --- application.c ---------------------------------------------------------------------------- */

struct dns_query;

/* A packet with selected payload, and the means to take it. */
struct arrival {
    struct pool *pool;
    /* Takes a question that was answered or given up; `context` is that of the arrival. */
    void (*finish_query)(void *context, const struct dns_query *query);
    void *context;
    int64_t time_ns; /* TIME_UNKNOWN without a time */
    uint64_t frame;
    uint16_t ip_id; /* as in struct packet_info */
    uint8_t direction;
    bool dns_port; /* one of the ports is 53 */
};

/* A message that was seen: its frame is 0 if it was not. */
struct moment {
    int64_t time_ns; /* TIME_UNKNOWN without a time */
    uint64_t frame;
};

/* The first bytes of one direction. `bytes` are those from position 0 on; the first `ready` of them
 * are complete, and `pieces` are those behind a missing one. */
struct first_bytes {
    uint8_t *bytes; /* `room` bytes; NULL if there are none, or if the parser needs no more */
    uint16_t room, ready;
    uint16_t parsed; /* the parser's: bytes that it has read, or will not read */
    bool over;       /* the parser needs no more */
    uint8_t piece_count;
    struct {
        uint16_t start, end;
    } pieces[FIRST_PIECES];
};

/* A question, until it is answered. */
struct dns_query {
    char *name; /* escaped; NULL if the question was not captured */
    struct moment first, answer;
    int64_t last_ns; /* time of the last query */
    uint32_t sent;
    uint16_t id, type, code; /* code: of the answer */
    uint16_t ip_id;          /* of the last query */
    uint8_t direction;
};

/* Questions of a flow that wait for their answer, the oldest first. */
struct dns_queries {
    struct dns_query *list;
    uint32_t count, room;
};

#define TLS_1_3        0x0304
#define TLS_SESSION_ID 32u
struct tls_handshake {
    struct moment hello, answer, end; /* ClientHello, ServerHello, the Finished that ends it */
    char *alpn;                       /* escaped; NULL without one */
    int64_t turn_ns;                  /* time of the latest message */
    int64_t wait_ns[2];     /* sum of the times from messages of the other direction to those of
                               this one */
    uint16_t version;       /* that the server chose; 0 if it is not known */
    uint8_t turns[2];       /* number of such times */
    uint8_t turn_direction; /* of the latest message */
    uint8_t client;         /* direction of the ClientHello */
    bool begun;             /* a message was seen: turn_direction is set */
    bool untimed;           /* a message had no time */
    bool psk;               /* the server accepted a PSK */
    bool echoed;            /* the server echoed the session id of the ClientHello */
    bool alpn_chosen;       /* `alpn` is that of the server */
    bool encrypted[2];      /* ChangeCipherSpec was seen, before TLS 1.3 */
    bool alerted;           /* `alert` and alert_direction are set */
    uint8_t alert, alert_direction;
    uint8_t session_id[TLS_SESSION_ID], session_id_length;
};

struct http_request {
    char method[16]; /* empty if it was not captured */
    char *host;      /* escaped; NULL without one */
    uint16_t status; /* 0 if it is not known */
    struct moment requested, answered;
};

/* The state of a flow, from the first selected payload on. */
struct application {
    enum word protocol; /* WORD_NONE until it is recognised: the union below is zero */
    bool counted;       /* it holds first bytes, and counts as one of FIRST_BYTES_FLOWS */
    struct first_bytes streams[2];
    char *server_name; /* escaped; NULL without one */
    struct quic *quic; /* NULL until a datagram may be QUIC */
    union {
        struct dns_queries dns;
        struct tls_handshake tls;
        struct http_request http;
    };
};

/* Takes the selected payload of a TCP segment. Does nothing without memory. */
void application_segment(struct application *application, const struct arrival *arrival,
                         uint32_t position, const uint8_t *bytes, uint32_t length);
/* Takes the selected payload of a datagram. */
void application_datagram(struct application *application, const struct arrival *arrival,
                          const uint8_t *bytes, uint32_t length);
/* Returns whether it holds first bytes. */
bool application_holds_bytes(const struct application *application);
/* Gives up the questions that wait for an answer. */
void application_finish_queries(struct application *application, const struct arrival *arrival);
/* Frees what the state holds, not the state itself. */
void application_free(struct application *application, struct pool *pool);

static inline struct moment moment_of(const struct arrival *arrival) {
    return (struct moment){arrival->time_ns, arrival->frame};
}

/* --- name.c: names as printable ASCII --------------------------------------------------------- */

/* Returns a copy of a name, as printable ASCII: other bytes, and the backslash, become \DDD (RFC
 * 1035 section 5.1). At most 255 bytes of it are read. NULL without memory, or if it is empty. */
char *name_copy(struct pool *pool, const uint8_t *bytes, size_t length);
/* The same of a text that is escaped already. */
char *text_copy(struct pool *pool, const char *text);
void name_free(struct pool *pool, char *name);
/* Appends bytes in the same form; returns the new length of `text`. Bytes without room are left
 * out. */
size_t name_escape(char text[static NAME_TEXT_MAX], size_t used, const uint8_t *bytes,
                   size_t length);

/* --- parsers: those of streams read stream->bytes up to stream->ready, from stream->parsed on, and
 * set stream->over if they need no more. */

/* dns.c: RFC 1035. */
/* Returns whether the message is one of DNS: then it is taken. */
bool dns_take(struct application *application, const struct arrival *arrival, const uint8_t *bytes,
              size_t length);
void dns_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream);
void dns_finish(struct dns_queries *queries, const struct arrival *arrival);
void dns_free(struct dns_queries *queries, struct pool *pool);
#define DNS_TEXT_MAX 16
/* Write the name of a type of question or of a code, as in A or TYPE65280. */
void dns_type_text(uint16_t type, char text[static DNS_TEXT_MAX]);
void dns_code_text(uint16_t code, char text[static DNS_TEXT_MAX]);

/* tls.c: RFC 8446, 5246. */
bool tls_begins(const uint8_t *bytes, size_t length);
void tls_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream);
#define TLS_TEXT_MAX 40
/* Write a version, as in 1.3, and the name of an alert. */
void tls_version_text(uint16_t version, char text[static TLS_TEXT_MAX]);
void tls_alert_text(uint8_t alert, char text[static TLS_TEXT_MAX]);

/* http.c: RFC 9112. */
bool http_begins(const uint8_t *bytes, size_t length);
void http_parse(struct application *application, const struct arrival *arrival,
                struct first_bytes *stream);

#endif
