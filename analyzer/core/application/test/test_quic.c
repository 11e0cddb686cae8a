/* SPDX-License-Identifier: Apache-2.0 */
/* Long headers byte by byte, and handshakes whose times are known: which packet answers which. */
#include <string.h>

#include "application/quic.h"

#include "common/test/check.h"

#define INITIAL   0xc0
#define HANDSHAKE 0xe0
#define RETRY     0xf0
#define MS        1000000

enum { CLIENT, SERVER };

/* IDs of 8 bytes, each a repeated letter: the first destination, the client's, the server's, that
 * of a Retry. An Initial has `rest` bytes from the packet number on. */
struct step {
    int64_t ms;
    unsigned direction;
    uint8_t first; /* byte; below 0x80 a short header */
    uint32_t version;
    char destination, source;
    uint16_t rest;
};

struct expected {
    int64_t server_ms, client_ms, duration_ms, spin_ms;
    unsigned round_trips;
};

static size_t put_long(uint8_t *bytes, const struct step *step) {
    size_t at = 0;
    bytes[at++] = step->first;
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes[at++] = (uint8_t)(step->version >> shift);
    bytes[at++] = 8;
    memset(bytes + at, step->destination, 8);
    at += 8;
    bytes[at++] = 8;
    memset(bytes + at, step->source, 8);
    at += 8;
    if (!step->version || step->first == RETRY) {
        memset(bytes + at, 1, 16); /* versions, or a token */
        return at + 16;
    }
    if (step->first == INITIAL)
        bytes[at++] = 0; /* no token */
    bytes[at++] = (uint8_t)(0x40 | step->rest >> 8);
    bytes[at++] = (uint8_t)step->rest;
    memset(bytes + at, 0x55, step->rest);
    return at + step->rest;
}

static void take(struct quic **quic, struct pool *pool, const struct step *step, uint64_t frame) {
    uint8_t bytes[2048] = {step->first};
    size_t size = step->first & 0x80 ? put_long(bytes, step) : 40;
    quic_take(quic,
              &(struct quic_datagram){.bytes = bytes,
                                      .captured = size,
                                      .length = size,
                                      .frame = frame,
                                      .time_ns = step->ms * MS,
                                      .time_known = true,
                                      .keep_initials = true,
                                      .direction = step->direction},
              pool);
}

static int64_t in_ms(int64_t ns) {
    return ns < 0 ? -1 : ns / MS;
}

static struct quic_summary run(const struct step *steps, size_t count,
                               const struct expected *want) {
    struct pool pool = {.own.most = 1 << 20, .chunks.small_pages = true};
    struct quic *quic = NULL;
    struct quic_summary summary = {0};
    for (size_t i = 0; i < count; i++)
        take(&quic, &pool, &steps[i], i + 1);
    CHECK(quic_summary(quic, &summary, &pool) == (want != NULL));
    if (want) {
        CHECK(in_ms(summary.server_ns) == want->server_ms);
        CHECK(in_ms(summary.client_ns) == want->client_ms);
        CHECK(in_ms(summary.duration_ns) == want->duration_ms);
        CHECK(in_ms(summary.spin_ns) == want->spin_ms);
        CHECK(summary.round_trips == want->round_trips);
    }
    summary.initials = NULL; /* freed below */
    quic_free(quic, &pool);
    CHECK(pool.own.used == 0);
    pool_close(&pool);
    return summary;
}

#define RUN(steps, ...) run(steps, sizeof(steps) / sizeof *(steps), &(struct expected){__VA_ARGS__})

static void check_plain(void) {
    const struct step steps[] = {
        {100, CLIENT, INITIAL, 1, 'o', 'c', 1200},
        {130, SERVER, INITIAL, 1, 'c', 's', 1100},
        {135, CLIENT, INITIAL, 1, 's', 'c', 30},
        {136, CLIENT, 0x40, 0, 0, 0, 0},
    };
    struct quic_summary summary = RUN(steps, 30, 5, 36, -1, 1);
    CHECK(summary.version == 1 && summary.client == CLIENT && !summary.retry);
    CHECK(summary.frames[QUIC_BEGIN] == 1 && summary.frames[QUIC_ANSWER] == 2);
    CHECK(summary.frames[QUIC_END] == 4);
    CHECK(summary.initial_bytes == 1200 + 26 + 2); /* not the Initial with the ACK */
}

/* An ACK alone is an answer of the server, but the client does not answer it. */
static void check_early_ack(void) {
    const struct step steps[] = {
        {100, CLIENT, INITIAL, 1, 'o', 'c', 1200},
        {130, SERVER, INITIAL, 1, 'c', 's', 30},
        {150, SERVER, INITIAL, 1, 'c', 's', 1100},
        {155, CLIENT, HANDSHAKE, 1, 's', 'c', 60},
    };
    RUN(steps, 30, 5, -1, -1, 1);
}

/* If a packet came again after more than a flight, its answer may belong to either. */
static void check_retransmitted(void) {
    const struct step client[] = {
        {100, CLIENT, INITIAL, 1, 'o', 'c', 1200}, {105, CLIENT, INITIAL, 1, 'o', 'c', 1200},
        {200, CLIENT, INITIAL, 1, 'o', 'c', 1200}, {230, SERVER, INITIAL, 1, 'c', 's', 1100},
        {235, CLIENT, INITIAL, 1, 's', 'c', 30},
    };
    const struct step server[] = {
        {100, CLIENT, INITIAL, 1, 'o', 'c', 1200}, {105, CLIENT, INITIAL, 1, 'o', 'c', 1200},
        {130, SERVER, INITIAL, 1, 'c', 's', 1100}, {330, SERVER, INITIAL, 1, 'c', 's', 1100},
        {335, CLIENT, INITIAL, 1, 's', 'c', 30},
    };
    RUN(client, -1, 5, -1, -1, 1);
    RUN(server, 30, -1, -1, -1, 1);
}

/* Each answer of the server is a round trip, and the least time of each part counts. A second
 * Retry is ignored, as the client does (RFC 9000 section 17.2.5.2). */
static void check_retry_and_negotiation(void) {
    const struct step steps[] = {
        {100, CLIENT, INITIAL, 0x1a2a3a4a, 'o', 'c', 1200},
        {140, SERVER, 0x80, 0, 'c', 'o', 0},
        {146, CLIENT, INITIAL, 0xff00001d, 'p', 'c', 1200},
    };
    const struct step retry[] = {
        {100, CLIENT, INITIAL, 1, 'o', 'c', 1200}, {140, SERVER, RETRY, 1, 'c', 'r', 0},
        {146, CLIENT, INITIAL, 1, 'r', 'c', 1200}, {147, SERVER, RETRY, 1, 'c', 'q', 0},
        {176, SERVER, INITIAL, 1, 'c', 's', 1100}, {180, CLIENT, HANDSHAKE, 1, 's', 'c', 60},
        {181, CLIENT, 0x40, 0, 0, 0, 0},
    };
    struct quic_summary summary = RUN(steps, 40, 6, -1, -1, 1);
    CHECK(summary.version_negotiation && summary.version == 0xff00001d);
    summary = RUN(retry, 30, 4, 81, -1, 2);
    CHECK(summary.retry && summary.initial_bytes == 1200 + 26 + 2);
}

/* The capture began behind the client's first Initial: no time is known. */
static void check_middle(void) {
    const struct step steps[] = {
        {130, SERVER, INITIAL, 1, 'c', 's', 1200},
        {135, CLIENT, INITIAL, 1, 's', 'c', 30},
        {136, CLIENT, 0x40, 0, 0, 0, 0},
    };
    CHECK(RUN(steps, -1, -1, -1, -1, 0).client == CLIENT);
}

/* Sends a packet of each side every 5 ms for 1 s; the bit turns every `period` ms. */
static int64_t spin_of(int64_t client_period, int64_t server_period) {
    struct step steps[404] = {
        {100, CLIENT, INITIAL, 1, 'o', 'c', 1200},
        {130, SERVER, INITIAL, 1, 'c', 's', 1100},
        {140, CLIENT, HANDSHAKE, 1, 's', 'c', 60},
    };
    struct pool pool = {.own.most = 1 << 20, .chunks.small_pages = true};
    struct quic_summary summary;
    struct quic *quic = NULL;
    for (int i = 3; i < 404; i++) {
        int64_t ms = 150 + (i - 3) / 2 * 5, period = i % 2 ? client_period : server_period;
        steps[i] = (struct step){.ms = ms, .direction = i % 2 ? CLIENT : SERVER, .first = 0x40};
        steps[i].first |= period && ms / period % 2 ? 0x20 : 0;
    }
    for (int i = 0; i < 404; i++)
        take(&quic, &pool, &steps[i], (uint64_t)i + 1);
    CHECK(quic_summary(quic, &summary, &pool));
    quic_free(quic, &pool);
    pool_close(&pool);
    return in_ms(summary.spin_ns);
}

static void check_spin(void) {
    CHECK(spin_of(40, 40) == 40);
    CHECK(spin_of(60, 40) == 40);
    CHECK(spin_of(40, 0) == -1);    /* one side does not spin */
    CHECK(spin_of(5, 5) == -1);     /* random or greased: far below the handshake's 40 ms */
    CHECK(spin_of(200, 200) == -1); /* an application that pauses */
}

/* Neither random datagrams nor those of other versions become QUIC without an answer. */
static void check_others(void) {
    const struct step unknown[] = {{1, CLIENT, INITIAL, 0x12345678, 'o', 'c', 1200},
                                   {2, CLIENT, INITIAL, 0x12345678, 'o', 'c', 1200}};
    const struct step small[] = {{1, CLIENT, INITIAL, 1, 'o', 'c', 100}};
    const struct step other_ids[] = {{1, CLIENT, INITIAL, 0x12345678, 'o', 'c', 1200},
                                     {2, SERVER, INITIAL, 0x12345678, 'x', 's', 1200}};
    run(unknown, 2, NULL);
    run(small, 1, NULL);
    run(other_ids, 2, NULL);
}

static void check_headers(void) {
    static const uint8_t draft18[] = {0xff, 0xff, 0, 0, 18, 0x50, 1, 2, 3, 4, 5, 6, 7, 8, 0x44, 0};
    uint8_t token[64] = {0xc0, 0, 0, 0, 1, 0, 0, 5, 9, 9, 9, 9, 9, 4, 1, 2, 3, 4};
    struct quic_header header;
    CHECK(quic_read_header(&header, draft18, sizeof draft18, 2000));
    CHECK(header.destination.size == 8 && header.source.size == 0 && header.kind == QUIC_RETRY);
    CHECK(quic_read_header(&header, token, 18, 18));
    CHECK(header.size == 18 && header.protected == 4);
    CHECK(!quic_read_header(&header, token, 17, 17)); /* the packet exceeds its datagram */
    CHECK(quic_read_header(&header, token, 12, 18) && header.protected == 0); /* cut */
    for (size_t captured = 0; captured < 7; captured++)
        CHECK(!quic_read_header(&header, token, captured, 18));
    token[5] = 21; /* a longer ID than RFC 9000 allows */
    CHECK(!quic_read_header(&header, token, sizeof token, sizeof token));
    token[5] = 20;
    CHECK(!quic_read_header(&header, token, 20, sizeof token));
}

static void check_versions(void) {
    static const struct {
        uint32_t version;
        const char *text;
    } rows[] = {{1, "1"}, {0x6b3343cf, "2"}, {0xff00001d, "draft-29"}, {0x51303530, "0x51303530"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[QUIC_VERSION_TEXT];
        quic_version_text(rows[i].version, text);
        CHECK(!strcmp(text, rows[i].text));
    }
}

int main(void) {
    check_headers();
    check_versions();
    check_plain();
    check_early_ack();
    check_retransmitted();
    check_retry_and_negotiation();
    check_middle();
    check_spin();
    check_others();
    return 0;
}
