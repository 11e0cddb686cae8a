/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of TLS (RFC 8446, RFC 5246), from its first records of each direction.
 *
 * A record is read when its handshake message is complete. A hello in several records is joined by
 * removing the headers between them; other messages are skipped by their length, so that the end of
 * a handshake behind a long certificate is seen without storing it. A handshake
 * ends with the client's Finished in TLS 1.3, where it is the first encrypted record behind the
 * ServerHello, and in a resumed session of TLS 1.2, where it follows ChangeCipherSpec; in a full
 * handshake of TLS 1.2 it ends with the server's. Each change of direction is a turn: the time
 * between messages of both is what the capture point waited for the one that answered. A server
 * that asks for a retry (HelloRetryRequest) costs one more round trip, which is one more turn. */
#include <stdio.h>
#include <string.h>

#include "application/state.h"
#include "base/bytes.h"

#define RECORD_HEADER    5u
#define RECORD_MOST      (16384u + 2048u) /* RFC 5246 section 6.2.3 */
#define JOINED_MOST      (FIRST_BYTES + RECORD_MOST)
#define FINISHED_LEAST   45u /* bytes of an encrypted Finished: header, hash, type, tag of 8 */
#define MESSAGE_HEADER   4u
#define RANDOM_BYTES     32u
#define ALERT_CLOSE      0
#define EXTENSION_HEADER 4u
#define ALPN_MOST        255u

enum record_type { CHANGE_CIPHER_SPEC = 20, ALERT = 21, HANDSHAKE = 22, APPLICATION_DATA = 23 };
enum message_type { CLIENT_HELLO = 1, SERVER_HELLO = 2 };
enum extension {
    EXT_SERVER_NAME = 0,
    EXT_ALPN = 16,
    EXT_PSK = 41,
    EXT_EARLY_DATA = 42,
    EXT_VERSIONS = 43,
    EXT_ECH = 0xFE0D
};

/* RFC 8446 section 4.1.3: the random of a HelloRetryRequest. */
static const uint8_t retry_random[RANDOM_BYTES] = {
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C};

static const struct {
    uint8_t alert;
    const char *text;
} alerts[] = {
    {0, "close_notify"},
    {10, "unexpected_message"},
    {20, "bad_record_mac"},
    {21, "decryption_failed"},
    {22, "record_overflow"},
    {30, "decompression_failure"},
    {40, "handshake_failure"},
    {41, "no_certificate"},
    {42, "bad_certificate"},
    {43, "unsupported_certificate"},
    {44, "certificate_revoked"},
    {45, "certificate_expired"},
    {46, "certificate_unknown"},
    {47, "illegal_parameter"},
    {48, "unknown_ca"},
    {49, "access_denied"},
    {50, "decode_error"},
    {51, "decrypt_error"},
    {60, "export_restriction"},
    {70, "protocol_version"},
    {71, "insufficient_security"},
    {80, "internal_error"},
    {86, "inappropriate_fallback"},
    {90, "user_canceled"},
    {100, "no_renegotiation"},
    {109, "missing_extension"},
    {110, "unsupported_extension"},
    {111, "certificate_unobtainable"},
    {112, "unrecognized_name"},
    {113, "bad_certificate_status_response"},
    {115, "unknown_psk_identity"},
    {116, "certificate_required"},
    {120, "no_application_protocol"},
};

void tls_alert_text(uint8_t alert, char text[static TLS_TEXT_MAX]) {
    for (size_t i = 0; i < sizeof alerts / sizeof *alerts; i++)
        if (alerts[i].alert == alert) {
            snprintf(text, TLS_TEXT_MAX, "%s", alerts[i].text);
            return;
        }
    snprintf(text, TLS_TEXT_MAX, "alert %u", alert);
}

void tls_version_text(uint16_t version, char text[static TLS_TEXT_MAX]) {
    if (version == 0x0300)
        snprintf(text, TLS_TEXT_MAX, "SSL 3.0");
    else if (version > 0x0300 && version <= TLS_1_3)
        snprintf(text, TLS_TEXT_MAX, "1.%u", version - 0x0301u);
    else
        snprintf(text, TLS_TEXT_MAX, "0x%04x", version);
}

bool tls_begins(const uint8_t *bytes, size_t length) {
    return length && (bytes[0] == HANDSHAKE || bytes[0] == ALERT) &&
           (length < 2 || bytes[1] == 3) && (length < 3 || bytes[2] <= 4);
}

/* --- bounded reads ---------------------------------------------------------------------------- */

/* A part of a message. Reads behind its end return 0 and empty parts, and set `short_of`. */
struct span {
    const uint8_t *bytes;
    size_t length;
    bool short_of;
};

static struct span take(struct span *span, size_t length) {
    if (length > span->length) {
        span->short_of = true;
        length = span->length;
    }
    struct span part = {span->bytes, length, span->short_of};
    span->bytes += length;
    span->length -= length;
    return part;
}

static unsigned take_number(struct span *span, size_t size) {
    struct span part = take(span, size);
    unsigned number = 0;
    for (size_t i = 0; i < size && !part.short_of; i++)
        number = number << 8 | part.bytes[i];
    return number;
}

/* Takes a vector, whose length stands in `size` bytes before it. */
static struct span take_vector(struct span *span, size_t size) {
    return take(span, take_number(span, size));
}

/* --- hellos ----------------------------------------------------------------------------------- */

static void read_server_name(struct application *application, struct pool *pool,
                             struct span extension) {
    struct span list = take_vector(&extension, 2);
    bool is_host = take_number(&list, 1) == 0;
    struct span name = take_vector(&list, 2);
    if (is_host && !name.short_of && !application->server_name)
        application->server_name = name_copy(pool, name.bytes, name.length);
}

/* Sets the protocols of a list, separated by commas; GREASE (RFC 8701) is left out. */
static void read_alpn(struct tls_handshake *tls, struct pool *pool, struct span extension,
                      bool chosen) {
    char text[NAME_TEXT_MAX] = "";
    size_t used = 0;
    struct span list = take_vector(&extension, 2);
    while (list.length && used < ALPN_MOST) {
        struct span one = take_vector(&list, 1);
        bool grease = one.length == 2 && one.bytes[0] == one.bytes[1] && (one.bytes[0] & 15) == 10;
        if (one.short_of)
            break;
        if (grease || !one.length)
            continue;
        if (used)
            used = name_escape(text, used, (const uint8_t *)",", 1);
        used = name_escape(text, used, one.bytes, one.length);
    }
    if (list.length && used >= ALPN_MOST)
        used = name_cut(text, name_escape(text, used, (const uint8_t *)",", 1));
    if (tls->alpn_chosen || !used)
        return;
    name_free(pool, tls->alpn);
    tls->alpn = text_copy(pool, text);
    tls->alpn_chosen = chosen;
}

static void read_client_hello(struct application *application, const struct arrival *arrival,
                              struct span hello) {
    struct tls_handshake *tls = &application->tls;
    take(&hello, 2 + RANDOM_BYTES);
    struct span session = take_vector(&hello, 1);
    tls->client = arrival->direction;
    if (!session.short_of && session.length <= TLS_SESSION_ID) {
        memcpy(tls->session_id, session.bytes, session.length);
        tls->session_id_length = (uint8_t)session.length;
    }
    take_vector(&hello, 2); /* cipher suites */
    take_vector(&hello, 1); /* compression */
    struct span extensions = take_vector(&hello, 2);
    extensions.short_of = false;
    while (extensions.length >= EXTENSION_HEADER) {
        unsigned type = take_number(&extensions, 2);
        struct span extension = take_vector(&extensions, 2);
        if (type == EXT_SERVER_NAME)
            read_server_name(application, arrival->pool, extension);
        else if (type == EXT_ALPN)
            read_alpn(tls, arrival->pool, extension, false);
        tls->ech |= type == EXT_ECH;
        tls->early |= type == EXT_EARLY_DATA;
    }
    tls->hello_read |= !hello.short_of;
}

void tls_read_client_hello(struct application *application, const struct arrival *arrival,
                           const uint8_t *hello, size_t length) {
    read_client_hello(application, arrival, (struct span){hello, length, false});
}

/* A HelloRetryRequest has the form of a ServerHello. */
static void read_server_hello(struct tls_handshake *tls, const struct arrival *arrival,
                              struct span hello) {
    unsigned version = take_number(&hello, 2);
    struct span random = take(&hello, RANDOM_BYTES);
    struct span session = take_vector(&hello, 1);
    bool retry = !random.short_of && !memcmp(random.bytes, retry_random, RANDOM_BYTES);
    if (session.short_of)
        return;
    take(&hello, 3); /* cipher suite, compression */
    struct span extensions = take_vector(&hello, 2);
    while (extensions.length >= EXTENSION_HEADER) {
        unsigned type = take_number(&extensions, 2);
        struct span extension = take_vector(&extensions, 2);
        if (type == EXT_VERSIONS && extension.length == 2)
            version = take_number(&extension, 2);
        else if (type == EXT_ALPN)
            read_alpn(tls, arrival->pool, extension, true);
        tls->psk |= type == EXT_PSK && !retry;
    }
    tls->version = (uint16_t)version;
    tls->echoed = session.length && session.length == tls->session_id_length &&
                  !memcmp(session.bytes, tls->session_id, session.length);
    if (!retry)
        tls->answer = moment_of(arrival);
}

/* --- records ---------------------------------------------------------------------------------- */

static bool is_encrypted(const struct tls_handshake *tls, unsigned direction) {
    return tls->encrypted >> direction & 1;
}

/* Reads the hellos of a record of `length` bytes, as far as it is at hand; other messages do not
 * matter. The last message may continue in the next record. */
static void read_messages(struct application *application, const struct arrival *arrival,
                          struct span record, size_t length) {
    uint32_t *rest = &application->tls.rest[arrival->direction];
    size_t passed = *rest < length ? *rest : length;
    take(&record, passed);
    *rest -= (uint32_t)passed;
    while (record.length >= MESSAGE_HEADER) {
        unsigned type = take_number(&record, 1);
        size_t size = take_number(&record, 3);
        struct span message = take(&record, size);
        message.short_of = false; /* it is read as far as it is at hand */
        passed += MESSAGE_HEADER + size;
        if (type == CLIENT_HELLO)
            read_client_hello(application, arrival, message);
        else if (type == SERVER_HELLO && !application->tls.answer.frame)
            read_server_hello(&application->tls, arrival, message);
    }
    if (passed > length)
        *rest = (uint32_t)(passed - length);
}

static void set_alert(struct tls_handshake *tls, const struct arrival *arrival, unsigned alert,
                      bool hidden) {
    if (tls->alerted)
        return;
    tls->end = moment_of(arrival);
    tls->alerted = true;
    tls->alert_hidden = hidden;
    tls->alert = (uint8_t)alert;
    tls->alert_direction = arrival->direction;
}

static void read_alert(struct tls_handshake *tls, const struct arrival *arrival, struct span record,
                       size_t length) {
    take(&record, 1); /* level */
    unsigned alert = take_number(&record, 1);
    if (is_encrypted(tls, arrival->direction)) {
        if (tls->hello.frame && tls->answer.frame && !tls->data)
            set_alert(tls, arrival, 0, true);
    } else if (!record.short_of && length == 2 && alert != ALERT_CLOSE)
        set_alert(tls, arrival, alert, false);
}

/* In TLS 1.3 ChangeCipherSpec means nothing (RFC 8446 appendix D.4). */
static void note_change(struct tls_handshake *tls, const struct arrival *arrival) {
    bool client = arrival->direction == tls->client, resumed = tls->echoed;
    if (tls->version == TLS_1_3)
        return;
    tls->encrypted |= (uint8_t)(1u << arrival->direction);
    if (tls->answer.frame && is_encrypted(tls, !arrival->direction) && client == resumed)
        tls->end = moment_of(arrival);
}

/* Returns whether a record may be the Certificate of a client that has none: its header, two empty
 * lengths, the type, and a tag of 16 or 8 bytes. The Finished follows. */
static bool is_empty_certificate(size_t length) {
    return length == MESSAGE_HEADER + 4 + 1 + 16 || length == MESSAGE_HEADER + 4 + 1 + 8;
}

/* The client's first encrypted record of TLS 1.3, behind the ServerHello. Another one that is too
 * short for a Finished is an alert: the client refuses the server's messages. */
static void note_encrypted(struct tls_handshake *tls, const struct arrival *arrival,
                           size_t length) {
    bool client = tls->hello.frame && arrival->direction == tls->client;
    tls->data = true;
    if (!client || tls->version != TLS_1_3 || !tls->answer.frame || tls->early)
        return;
    if (length < FINISHED_LEAST && !is_empty_certificate(length))
        set_alert(tls, arrival, 0, true);
    else
        tls->end = moment_of(arrival);
}

static void read_record(struct application *application, const struct arrival *arrival,
                        unsigned type, struct span record, size_t length) {
    struct tls_handshake *tls = &application->tls;
    if (type == HANDSHAKE && !is_encrypted(tls, arrival->direction))
        read_messages(application, arrival, record, length);
    else if (type == ALERT)
        read_alert(tls, arrival, record, length);
    else if (type == CHANGE_CIPHER_SPEC)
        note_change(tls, arrival);
    else if (type == APPLICATION_DATA)
        note_encrypted(tls, arrival, length);
}

/* Adds the time since the latest message to the wait for this direction. Clocks can step so often
 * that the sum overflows: then no time is known. */
static void add_wait(struct tls_handshake *tls, const struct arrival *arrival) {
    int64_t *sum = &tls->wait_ns[arrival->direction];
    tls->untimed |= arrival->time_ns == TIME_UNKNOWN;
    if (!tls->untimed)
        tls->untimed = __builtin_add_overflow(*sum, arrival->time_ns - tls->turn_ns, sum);
}

/* Adds the time since the latest message of the other direction to the wait for this one. */
void tls_note(struct tls_handshake *tls, const struct arrival *arrival) {
    uint8_t direction = arrival->direction;
    tls->untimed |= arrival->time_ns == TIME_UNKNOWN;
    if (tls->begun && tls->turn_direction != direction && tls->turns[direction] < UINT8_MAX) {
        tls->turns[direction]++;
        add_wait(tls, arrival);
    }
    tls->begun = true;
    tls->turn_direction = direction;
    tls->turn_ns = arrival->time_ns;
}

/* Takes the arrival of bytes that came before, or late, where they are skipped: loss counts as the
 * time of the end that retransmits. */
void tls_note_again(struct tls_handshake *tls, const struct arrival *arrival) {
    if (!tls->begun || tls->turn_direction != arrival->direction || !tls->turns[arrival->direction])
        return;
    add_wait(tls, arrival);
    tls->turn_ns = arrival->time_ns;
}

/* Returns the length of a record's body, or -1 if there is none. */
static int body_length(const uint8_t *header) {
    unsigned length = load_be16(header + 3);
    bool record = header[0] >= CHANGE_CIPHER_SPEC && header[0] <= APPLICATION_DATA &&
                  header[1] == 3 && length <= JOINED_MOST;
    return record ? (int)length : -1;
}

/* Returns how many bytes of a record's body must be complete before it is read: those of its first
 * message if that is a hello, because the others of the record do not matter. They may be more than
 * the record has. */
static size_t needed_bytes(const struct tls_handshake *tls, const struct arrival *arrival,
                           const uint8_t *header, size_t length, size_t there) {
    size_t before = tls->rest[arrival->direction];
    if (header[0] == ALERT)
        return length < 2 ? length : 2;
    if (header[0] != HANDSHAKE || is_encrypted(tls, arrival->direction) || before >= length)
        return 0;
    if (there < before + MESSAGE_HEADER || length < before + MESSAGE_HEADER)
        return before + MESSAGE_HEADER;
    const uint8_t *body = header + RECORD_HEADER + before;
    bool hello = body[0] == CLIENT_HELLO || body[0] == SERVER_HELLO;
    return before + MESSAGE_HEADER + (hello ? load_be32(body) & 0xFFFFFF : 0);
}

static void note_hello(struct tls_handshake *tls, const struct arrival *arrival,
                       const uint8_t *header, size_t there) {
    if (tls->hello.frame || header[0] != HANDSHAKE || !there ||
        header[RECORD_HEADER] != CLIENT_HELLO)
        return;
    tls->hello = moment_of(arrival);
    tls->client = arrival->direction;
}

enum join { JOINED, JOIN_LATER, JOIN_NEVER };

/* Joins the record at hand with the next one of the handshake. */
static enum join join_next(struct first_bytes *stream, uint8_t *header, size_t length,
                           size_t there) {
    uint8_t *next = header + RECORD_HEADER + length;
    if (there < length + RECORD_HEADER)
        return JOIN_LATER;
    int more = body_length(next);
    if (next[0] != HANDSHAKE || more < 0 || length + (size_t)more > JOINED_MOST)
        return JOIN_NEVER;
    length += (size_t)more;
    header[3] = (uint8_t)(length >> 8);
    header[4] = (uint8_t)length;
    first_bytes_remove(stream, (size_t)(next - stream->bytes), RECORD_HEADER);
    return JOINED;
}

/* Reads the next record. Returns false if more bytes must come first. A hello that exceeds the
 * first bytes is read as far as they reach. */
static bool parse_record(struct application *application, const struct arrival *arrival,
                         struct first_bytes *stream, size_t length) {
    struct tls_handshake *tls = &application->tls;
    uint8_t *header = stream->bytes + stream->parsed;
    size_t there = stream->ready - stream->parsed - RECORD_HEADER;
    note_hello(tls, arrival, header, there);
    size_t needed = needed_bytes(tls, arrival, header, length, there);
    bool full = first_bytes_full(stream);
    if (needed > length && length) {
        enum join join = join_next(stream, header, length, there);
        if (join == JOINED)
            return true;
        if (join == JOIN_LATER && !full)
            return false;
        needed = length;
    }
    if (there < needed && !full)
        return false;
    if (there > length)
        there = length;
    read_record(application, arrival, header[0],
                (struct span){header + RECORD_HEADER, there, false}, length);
    first_bytes_pass(stream, RECORD_HEADER + length);
    if (tls->end.frame)
        application->streams[0].over = application->streams[1].over = true;
    return true;
}

void tls_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream) {
    while (!stream->over && stream->parsed + RECORD_HEADER <= stream->ready) {
        int length = body_length(stream->bytes + stream->parsed);
        stream->over = length < 0;
        if (stream->over || !parse_record(application, arrival, stream, (size_t)length))
            return;
    }
}
