/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a flow's application, from the first selected payload on, and the parsers that fill
 * it. Those of streams read stream->bytes up to stream->ready, from stream->parsed on, and set
 * stream->over if they need no more. */
#ifndef WIRETALE_APPLICATION_STATE_H
#define WIRETALE_APPLICATION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/packet.h"
#include "base/pool.h"
#include "base/vocabulary.h"

#define PORT_DNS          53
#define PORT_NETBIOS      137 /* its name service has the form of DNS, but other names */
#define PORT_MDNS         5353
#define PORT_LLMNR        5355
#define FIRST_BYTES       4096u   /* of each direction of a stream, held at once */
#define STREAM_BYTES      16384u  /* the same, read in all if they are TLS or DNS */
#define FIRST_BYTES_FLOWS 100000u /* flows that may hold first bytes at once */
#define FIRST_PIECES      3u      /* pieces behind the first missing byte */
#define DATAGRAM_BYTES    2048u   /* most bytes of a datagram that are selected */
#define NAME_TEXT_MAX     1024u   /* a name of 255 bytes, escaped, with its NUL */

struct dns_query;
struct quic;

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
    bool multicast;    /* one of the addresses is */
    uint16_t dns_port; /* PORT_DNS, PORT_MDNS or PORT_LLMNR if one of the ports is; else 0 */
};

/* A message that was seen: its frame is 0 if it was not. */
struct moment {
    int64_t time_ns; /* TIME_UNKNOWN without a time */
    uint64_t frame;
};

/* The first bytes of one direction. `bytes` are those from position `base` on; the first `ready` of
 * them are complete, and `pieces` are those behind a missing one. */
struct first_bytes {
    uint8_t *bytes; /* `room` bytes; NULL if there are none, or if the parser needs no more */
    uint16_t base;
    uint16_t seen; /* position behind the last byte that came */
    uint16_t room, ready;
    uint16_t parsed; /* the parser's: bytes that it has read, or will not read; may exceed ready */
    bool over;       /* the parser needs no more */
    uint8_t piece_count;
    struct {
        uint16_t start, end;
    } pieces[FIRST_PIECES];
};
_Static_assert(sizeof(struct first_bytes) == 32, "each flow that is recognized has two");

/* The parser has read `count` bytes more, or will not read them. */
static inline void first_bytes_pass(struct first_bytes *stream, size_t count) {
    size_t most = UINT16_MAX - stream->base;
    stream->parsed = (uint16_t)(count < most - stream->parsed ? stream->parsed + count : most);
}

/* Returns whether no more bytes can come before the parser passes some. */
static inline bool first_bytes_full(const struct first_bytes *stream) {
    return !stream->parsed && stream->ready == FIRST_BYTES;
}

/* A question, until it is answered. */
#define DNS_COOKIE_BYTES 8u     /* that the client chooses (RFC 7873 section 4) */
#define DNS_WRONG_COOKIE 0xFFFF /* code of an answer with another one */

struct dns_query {
    char *name; /* escaped; NULL if the question was not captured */
    struct moment first, answer;
    int64_t last_ns; /* time of the last query */
    uint32_t sent;
    uint16_t id, type, code;          /* code: of the answer */
    uint8_t cookie[DNS_COOKIE_BYTES]; /* of the client; valid with has_cookie */
    bool has_cookie;
    uint16_t ip_id; /* of the last query */
    uint8_t direction;
    bool truncated;        /* the answer */
    const char *addresses; /* in the answer, spaces between; NULL before finish_query() */
};

/* Questions of a flow that wait for their answer, the oldest first. */
struct dns_queries {
    struct dns_query *list;
    uint32_t count, room;
    bool answered; /* an answer gave a time */
};

#define TLS_1_3        0x0304
#define TLS_SESSION_ID 32u
struct tls_handshake {
    struct moment hello, answer; /* ClientHello, ServerHello */
    struct moment end;           /* the Finished that ends it; the alert if `alerted` */
    char *alpn;                  /* escaped; NULL without one */
    int64_t turn_ns;             /* time of the latest message */
    int64_t wait_ns[2];     /* sum of the times from messages of the other direction to those of
                               this one */
    uint32_t rest[2];       /* bytes of a message that the next record continues */
    uint16_t version;       /* that the server chose; 0 if it is not known */
    uint8_t turns[2];       /* number of such times */
    uint8_t turn_direction; /* of the latest message */
    uint8_t client;         /* direction of the ClientHello */
    uint8_t encrypted;      /* bit of each direction: ChangeCipherSpec was seen, before TLS 1.3 */
    bool begun : 1;         /* a message was seen: turn_direction is set */
    bool untimed : 1;       /* a message had no time */
    bool psk : 1;           /* the server accepted a PSK */
    bool echoed : 1;        /* the server echoed the session id of the ClientHello */
    bool alpn_chosen : 1;   /* `alpn` is that of the server */
    bool hello_read : 1;    /* all of the ClientHello was */
    bool ech : 1;           /* the ClientHello has the extension encrypted_client_hello */
    bool early : 1;         /* it offers early data, which looks like the Finished */
    bool alerted : 1;       /* `alert` and alert_direction are set */
    bool alert_hidden : 1;  /* the alert is encrypted: `alert` is 0 */
    bool data : 1;          /* a record of application data was seen */
    uint8_t alert, alert_direction;
    uint8_t session_id[TLS_SESSION_ID], session_id_length;
};

struct http_request {
    char method[16]; /* empty if it was not captured */
    uint8_t client;  /* direction of the request */
    bool expects;    /* it asks the server for 100 Continue before it sends the content */
    bool upgrades;   /* it asks to switch to WebSocket */
    bool keyed;      /* it has the key of a WebSocket handshake, which proxies pass on */
    bool coded;      /* the response has chunks, or another encoding of its transfer */
    char *host;      /* escaped; NULL without one */
    uint64_t content_length, announced; /* bytes of the content, and with the header; 0: unknown */
    uint64_t answer_length, answer_announced; /* the same of the response */
    uint16_t status;                          /* 0 if it is not known */
    struct moment requested, answered;
};

/* The state of a flow, from the first selected payload on. */
struct application {
    enum word protocol; /* WORD_NONE until it is recognized: the union below is zero */
    bool counted;       /* it holds first bytes, and counts as one of FIRST_BYTES_FLOWS */
    bool proxy_header;  /* a header of the PROXY protocol precedes it */
    struct first_bytes streams[2];
    char *server_name; /* escaped; NULL without one */
    struct quic *quic; /* NULL until a datagram may be QUIC */
    union {
        struct dns_queries dns;
        struct tls_handshake tls; /* of QUIC, too: what its ClientHello has */
        struct http_request http;
    };
};

static inline struct moment moment_of(const struct arrival *arrival) {
    return (struct moment){arrival->time_ns, arrival->frame};
}

/* --- first_bytes.c: the window of a stream ---------------------------------------------------- */

/* Returns how many of the bytes were placed or are not needed, because the parser passed them; 0
 * without room or memory. */
uint32_t first_bytes_place(struct first_bytes *stream, struct pool *pool, uint32_t position,
                           const uint8_t *bytes, uint32_t length);
/* Forgets what the parser has passed, and frees a buffer that is empty then. */
void first_bytes_move_on(struct first_bytes *stream, struct pool *pool);
/* Removes `count` bytes from `at` on, all of which are complete; later bytes follow. */
void first_bytes_remove(struct first_bytes *stream, size_t at, size_t count);
/* The parser needs no more. */
void first_bytes_drop(struct first_bytes *stream, struct pool *pool);

/* --- name.c: names as printable ASCII --------------------------------------------------------- */

/* Returns a copy of a name, as printable ASCII: other bytes, and the backslash, become \DDD (RFC
 * 1035 section 5.1). At most 255 bytes of it are read. NULL without memory, or if it is empty. */
char *name_copy(struct pool *pool, const uint8_t *bytes, size_t length);
/* The same of a text that is escaped already. */
char *text_copy(struct pool *pool, const char *text);
void name_free(struct pool *pool, char *name);
/* Appends bytes in the same form; returns the new length of `text`. It ends in UTF8_CUT if bytes
 * had no room. */
size_t name_escape(char text[static NAME_TEXT_MAX], size_t used, const uint8_t *bytes,
                   size_t length);
/* Ends a text of name_escape() in UTF8_CUT, unless it does; returns its length. */
size_t name_cut(char text[static NAME_TEXT_MAX], size_t used);

/* dns.c: RFC 1035, 6762 (mDNS) and 4795 (LLMNR). */
#define DNS_LEAST 17u /* bytes of a message with a question for the root */
/* Returns whether dns_plausible() may: most datagrams cost this much. */
static inline bool dns_may_begin(const uint8_t *bytes, size_t captured) {
    return captured >= DNS_LEAST && !bytes[4] && bytes[5] == 1 && !(bytes[2] & 0x78) &&
           !(bytes[3] & 0x40);
}
/* Returns whether a message of `length` bytes is one of DNS by its content alone: its flags agree,
 * its names are printable, and its records fill it exactly, as far as they were captured. `port` is
 * PORT_MDNS, PORT_LLMNR, or 0 for another one. */
bool dns_plausible(const uint8_t *bytes, size_t captured, size_t length, uint16_t port);
/* Returns whether a stream begins with such a message and its length. */
bool dns_stream_begins(const uint8_t *bytes, size_t captured);
/* Returns whether the message is one of DNS: then it is taken. */
bool dns_take(struct application *application, const struct arrival *arrival, const uint8_t *bytes,
              size_t captured, size_t length);
static inline bool is_dns(enum word protocol) {
    return protocol == WORD_DNS || protocol == WORD_MDNS || protocol == WORD_LLMNR;
}
void dns_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream);
void dns_finish(struct dns_queries *queries, const struct arrival *arrival,
                const bool unread[static 2]);
void dns_free(struct dns_queries *queries, struct pool *pool);
#define DNS_TEXT_MAX 16
/* Write the name of a type of question or of a code, as in A or TYPE65280. */
void dns_type_text(uint16_t type, char text[static DNS_TEXT_MAX]);
void dns_code_text(uint16_t code, char text[static DNS_TEXT_MAX]);
/* Returns whether the server failed or refused (FORMERR, SERVFAIL, NOTIMP, REFUSED, NOTAUTH). */
static inline bool dns_code_is_failure(uint16_t code) {
    return code == 1 || code == 2 || code == 4 || code == 5 || code == 9;
}

/* tls.c: RFC 8446, 5246. */
bool tls_begins(const uint8_t *bytes, size_t length);
/* Takes the arrival of new bytes, before they are parsed. */
void tls_note(struct tls_handshake *tls, const struct arrival *arrival);
void tls_note_again(struct tls_handshake *tls, const struct arrival *arrival);
void tls_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream);
/* Reads the names of a ClientHello that came outside of records, as far as it came. */
void tls_read_client_hello(struct application *application, const struct arrival *arrival,
                           const uint8_t *hello, size_t length);
#define TLS_TEXT_MAX 40
/* Write a version, as in 1.3, and the name of an alert. */
void tls_version_text(uint16_t version, char text[static TLS_TEXT_MAX]);
void tls_alert_text(uint8_t alert, char text[static TLS_TEXT_MAX]);

/* proxy_header.c: the header in which a proxy tells a server who its client is. */
bool proxy_header_begins(const uint8_t *bytes, size_t length);
/* Returns the length of the header at the beginning; 0 if it is not complete, or malformed. */
size_t proxy_header_length(const uint8_t *bytes, size_t length);

/* http.c: RFC 9112, and the beginning of RFC 9113. */
bool http_begins(const uint8_t *bytes, size_t length);
#define HTTP_STATUS_AT 9u /* bytes of "HTTP/1.x " */
/* Returns whether a response or a request with content, HEAD or CONNECT may begin: most segments
 * cost this much alone. */
static inline bool http_may_begin(const uint8_t *bytes, size_t captured) {
    return captured >= HTTP_STATUS_AT + 3 &&
           (bytes[0] == 'H' || bytes[0] == 'P' || bytes[0] == 'C');
}
/* Returns the status of a status line (RFC 9112 section 4), 0 if the bytes begin with none. */
unsigned http_status(const uint8_t *bytes, size_t length);
/* Returns the same of the last response that begins in these bytes, all of which are interim ones
 * (1xx) but that. Sets `message` to what http_message_bytes() returns, with the interim ones. */
unsigned http_segment_status(const uint8_t *bytes, size_t length, uint32_t *message);
void http_parse(struct application *application, const struct arrival *arrival,
                struct first_bytes *stream);

/* --- http_message.c: the length of a message ---------------------------------------------------
 */

/* Returns where the value of a header line begins whose field is `name`, with its colon; else 0. */
size_t http_field(const uint8_t *line, size_t length, const char *name);
/* Reads a header line `Content-Length: 200`. Returns false if it is another one. */
bool http_content_length(const uint8_t *line, size_t length, uint64_t *content);
/* Returns the length of the message that begins here, with its header: HTTP_UNTIL_CLOSE if a
 * response (`status` is not 0) has neither a length nor an encoding; 0 if it is not known. */
uint32_t http_message_bytes(const uint8_t *bytes, size_t length, unsigned status);
/* Returns the same of a request with content, HEAD or CONNECT; 0 for others. Sets `kind` to
 * HTTP_ASKS_HEADER for these two. */
uint32_t http_request_bytes(const uint8_t *bytes, size_t length, uint16_t *kind);

#endif
