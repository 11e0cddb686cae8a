/* SPDX-License-Identifier: Apache-2.0 */
/* QUIC's handshake as seen at the capture point.
 *
 * A round trip needs proof that one packet answers another, because packet numbers are encrypted.
 * The connection IDs give it (RFC 9000 section 7.2): the server addresses its packets to the ID
 * that the client chose, and the client uses the ID that the server chose only after it has
 * received the server's first packet. The client's next Initial proves the same for Version
 * Negotiation (it has another version) and Retry. If one side sent its packet again before the
 * answer came, the answer may belong to either, and the time is not used (Karn's algorithm). Nor
 * can a client answer Handshake packets before it has the ServerHello, which an Initial carries,
 * and an ID that it has from an ACK alone proves no ServerHello.
 *
 * The RTT of the path is the sum of both parts. The spin bit (RFC 9000 section 17.4) gives a sample
 * per edge, but servers disable or randomize it, and pauses of the application lengthen its
 * samples (arXiv 2310.02599: 51.7% far too long): it counts only if both sides spin and both
 * medians are near the RTT of the handshake. */
#include "quic/quic.h"

#include "base/bytes.h"

#define LONG_HEADER        0x80
#define FIXED_BIT          0x40
#define SPIN_BIT           0x20
#define CLIENT_BYTES       1200u    /* least datagram with a client's Initial */
#define FIRST_ID_LEAST     8u       /* bytes of the destination of a client's first Initial */
#define ACK_BYTES          64u      /* a shorter Initial has an ACK alone, no ServerHello */
#define FLIGHT_NS          20000000 /* packets of one flight follow each other within it */
#define TRIES_MAX          16u      /* long headers without an answer */
#define INITIALS_MAX       32u      /* Initials of a client that are decrypted, or tried */
#define COALESCED_MAX      8u       /* packets read of one datagram */
#define CLOSE_BYTES_MOST   512u     /* of an Initial of the server that may close */
#define CLOSES_MAX         4u       /* such Initials that are decrypted, or tried */
#define SPIN_SAMPLES_LEAST 2u       /* in each direction */
#define SPIN_FACTOR        3        /* between a median and the handshake, either way */
#define TIME_MOST_NS       (INT64_C(1) << 50) /* of a round trip; a longer one is a clock's step */

/* The spin bit of one direction. */
struct spin {
    struct histogram samples;
    int64_t edge_ns; /* of the latest edge */
    bool value, seen, edge_known;
};

struct quic {
    uint32_t version; /* of the client's latest Initial */
    uint32_t agreed;  /* of the server's Initial; 0 if none was seen */
    uint8_t client;   /* direction; before recognition that of the first long header */
    uint8_t tries;
    bool recognized : 1;
    bool negotiation : 1, retry : 1, zero_rtt : 1;
    bool sent_open : 1, sent_again : 1;     /* the client's packet waits for the server's */
    bool answer_open : 1, answer_again : 1; /* the server's packet waits for the client's */
    bool answered : 1;                      /* the server has the whole ClientHello */
    bool hello_seen : 1;                    /* the server's Initial with the ServerHello was seen */
    bool id_from_ack : 1;        /* an Initial with an ACK alone showed the server's ID */
    bool handshake_late : 1;     /* the server sent Handshake packets after the flight that waits */
    bool begun : 1;              /* begin_ns is known */
    bool to_lower_port : 1;      /* the first long header was */
    bool hello_read : 1;         /* no more of the ClientHello is wanted */
    uint8_t answer_kind;         /* enum quic_kind */
    uint8_t initials;            /* of the client, which were decrypted or tried */
    uint8_t closes;              /* of the server, likewise */
    uint64_t close_frame, error; /* as in struct quic_summary */
    int64_t close_ns;
    uint32_t round_trips;
    struct quic_id client_id, server_id; /* chosen by each side */
    struct quic_id first_id;             /* destination of the client's latest first Initial */
    int64_t begin_ns, sent_ns, answered_ns;
    uint64_t frames[QUIC_FRAMES];              /* as in struct quic_summary */
    int64_t server_ns, client_ns, duration_ns; /* -1 if not known */
    struct spin spin[2];
    struct quic_hello *hello; /* NULL without one, and once it was read */
};

/* --- round trips ---------------------------------------------------------------------------- */

static bool id_equals(const struct quic_id *a, const struct quic_id *b) {
    return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* Takes the least time of those that are proven. */
static void note_least(int64_t *least, int64_t ns) {
    if (ns >= 0 && ns <= TIME_MOST_NS && (*least < 0 || ns < *least))
        *least = ns;
}

/* Returns whether the client's packet shows that it received the server's, which waits. If the
 * server kept the ID of the client's first Initial, or the client may have its ID from an ACK, only
 * a Handshake packet shows it, because its keys come from the ServerHello. */
static bool shows_receipt(const struct quic *quic, const struct quic_header *header) {
    if (quic->answer_kind == QUIC_NEGOTIATION)
        return header->version != quic->version;
    if (header->kind == QUIC_HANDSHAKE)
        return true;
    return !quic->id_from_ack && id_equals(&header->destination, &quic->server_id) &&
           !id_equals(&quic->server_id, &quic->first_id);
}

/* A Handshake packet may answer later Handshake packets of the server than its ServerHello. */
static void take_answer(struct quic *quic, const struct quic_header *header, int64_t now) {
    bool late = header->kind == QUIC_HANDSHAKE && quic->handshake_late;
    if (!quic->answer_again && !late)
        note_least(&quic->client_ns, now - quic->answered_ns);
    quic->answer_open = false;
}

static void begin_exchange(struct quic *quic, const struct quic_header *header, int64_t now) {
    quic->sent_open = true;
    quic->sent_again = false;
    quic->sent_ns = now;
    quic->first_id = header->destination;
}

/* Takes the part of the ClientHello in an Initial whose bytes are all at hand, until the server's
 * ServerHello: later ones hold ACKs. */
static void take_hello(struct quic *quic, const struct quic_header *header, const uint8_t *bytes,
                       size_t captured, const struct quic_datagram *datagram, struct pool *pool) {
    if (!quic->begun || quic->answered || quic->hello_read || !header->protected ||
        header->size > captured || quic->initials == INITIALS_MAX ||
        (!quic->hello && !datagram->keep_hello))
        return;
    quic->initials++;
    quic_hello_take(&quic->hello, header, bytes, pool);
}

/* Reads whether the server closes in a short Initial whose bytes are all at hand. */
static void take_close(struct quic *quic, const struct quic_header *header, const uint8_t *bytes,
                       size_t captured, const struct quic_datagram *datagram) {
    if (!quic->begun || quic->close_frame || !header->protected || header->size > captured ||
        header->protected > CLOSE_BYTES_MOST || quic->closes == CLOSES_MAX)
        return;
    quic->closes++;
    if (!quic_read_close(header, bytes, &quic->first_id, &quic->error))
        return;
    quic->close_frame = datagram->frame;
    quic->close_ns = datagram->time_ns;
}

static void take_client(struct quic *quic, const struct quic_header *header, int64_t now) {
    if (quic->answer_open && shows_receipt(quic, header))
        take_answer(quic, header, now);
    quic->zero_rtt |= header->kind == QUIC_ZERO_RTT;
    if (header->kind != QUIC_INITIAL && header->kind != QUIC_OTHER)
        return;
    if (!quic->answered && !quic->sent_open && !quic->id_from_ack)
        begin_exchange(quic, header, now);
    else if (quic->sent_open && now - quic->sent_ns > FLIGHT_NS)
        quic->sent_again = true;
    quic->version = header->version;
    quic->client_id = header->source;
}

/* The client has to answer the packet: a ServerHello, or what makes it send its Initial anew. */
static void open_answer(struct quic *quic, const struct quic_header *header, int64_t now) {
    quic->answer_open = true;
    quic->answer_again = quic->handshake_late = false;
    quic->answer_kind = header->kind;
    quic->answered_ns = now;
    quic->server_id = header->source;
}

/* Whether the packet is another one of those that the server sends again if they are lost. */
static void take_repeated_turn(struct quic *quic, const struct quic_header *header, int64_t now) {
    if (now - quic->answered_ns <= FLIGHT_NS)
        return;
    quic->answer_again |= header->kind == quic->answer_kind;
    quic->handshake_late |= header->kind == QUIC_HANDSHAKE;
}

/* A packet that makes the client send its Initial anew, or the ServerHello. Initials that have an
 * ACK alone wait for no answer, and Handshake packets cannot be read before the ServerHello. */
static void take_server_turn(struct quic *quic, const struct quic_header *header,
                             const struct quic_datagram *datagram) {
    if (header->kind == QUIC_INITIAL && header->protected && header->protected <= ACK_BYTES) {
        quic->id_from_ack |= !quic->hello_seen;
        return;
    }
    if (quic->answer_open) {
        take_repeated_turn(quic, header, datagram->time_ns);
        return;
    }
    if (quic->hello_seen)
        return;
    bool anew = header->kind == QUIC_NEGOTIATION || header->kind == QUIC_RETRY;
    if (!anew && !quic->answered)
        quic->frames[QUIC_ANSWER] = datagram->frame;
    if (!quic->answered)
        quic->round_trips++;
    quic->answered |= !anew;
    quic->hello_seen = !anew && header->kind != QUIC_HANDSHAKE;
    if (anew || quic->hello_seen)
        open_answer(quic, header, datagram->time_ns);
}

static void take_server(struct quic *quic, const struct quic_header *header,
                        const struct quic_datagram *datagram) {
    int64_t now = datagram->time_ns;
    bool again = (header->kind == QUIC_NEGOTIATION && quic->negotiation) ||
                 (header->kind == QUIC_RETRY && quic->retry);
    if (again || !id_equals(&header->destination, &quic->client_id))
        return; /* the client ignores it, or it is of another connection */
    if (quic->sent_open && !quic->sent_again)
        note_least(&quic->server_ns, now - quic->sent_ns);
    quic->sent_open = false;
    quic->negotiation |= header->kind == QUIC_NEGOTIATION;
    quic->retry |= header->kind == QUIC_RETRY;
    if (header->kind == QUIC_INITIAL || header->kind == QUIC_HANDSHAKE)
        quic->agreed = header->version;
    take_server_turn(quic, header, datagram);
}

/* --- the spin bit --------------------------------------------------------------------------- */

static void take_short(struct quic *quic, uint8_t first, const struct quic_datagram *datagram,
                       struct pool *pool) {
    struct spin *spin = &quic->spin[datagram->direction];
    bool value = first & SPIN_BIT;
    int64_t now = datagram->time_ns;
    if (!quic->recognized || !datagram->time_known)
        return;
    if (!quic->frames[QUIC_END] && quic->begun && quic->answered &&
        datagram->direction == quic->client) {
        quic->duration_ns = now - quic->begin_ns;
        quic->frames[QUIC_END] = datagram->frame;
    }
    if (spin->seen && value != spin->value) {
        if (spin->edge_known)
            histogram_add(&spin->samples, now - spin->edge_ns, pool);
        spin->edge_known = true;
        spin->edge_ns = now;
    }
    spin->seen = true;
    spin->value = value;
}

/* Returns the lesser of both medians, because pauses lengthen samples; -1 unless each is within a
 * factor of three of the handshake's RTT. */
static int64_t spin_rtt(struct quic *quic, struct pool *pool) {
    int64_t least = -1, path = quic_handshake_rtt(quic);
    if (path < 0)
        return -1;
    for (unsigned i = 0; i < 2; i++) {
        struct histogram *samples = &quic->spin[i].samples;
        if (samples->count < SPIN_SAMPLES_LEAST)
            return -1;
        int64_t median = histogram_quantile(samples, 500, pool);
        if (median < path / SPIN_FACTOR || median / SPIN_FACTOR > path)
            return -1;
        note_least(&least, median);
    }
    return least;
}

/* --- recognition ---------------------------------------------------------------------------- */

static bool begins_connection(const struct quic_header *header, size_t length) {
    bool initial = header->kind == QUIC_INITIAL || header->kind == QUIC_OTHER;
    return initial && length >= CLIENT_BYTES && header->destination.size >= FIRST_ID_LEAST;
}

/* A long header that is worth the memory to wait for its answer. */
static bool may_be_quic(const struct quic_header *header, size_t length) {
    return header->version && (header->kind != QUIC_OTHER || begins_connection(header, length));
}

/* Returns whether a long header of the other direction answers the first one. If the first side's
 * ID is empty, the version must be known, or be negotiated by the ID that it addressed. */
static bool is_answer(const struct quic *quic, const struct quic_header *header) {
    if (!id_equals(&header->destination, &quic->client_id))
        return false;
    if (header->kind == QUIC_NEGOTIATION)
        return id_equals(&header->source, &quic->first_id);
    bool known = quic_version_known(quic->version) && quic_version_known(header->version);
    return known || (quic->client_id.size && header->version == quic->version);
}

static struct quic *open_quic(const struct quic_header *header,
                              const struct quic_datagram *datagram, struct pool *pool) {
    struct quic *quic = pool_alloc(pool, sizeof *quic);
    if (!quic)
        return NULL;
    *quic = (struct quic){.version = header->version,
                          .client = (uint8_t)datagram->direction,
                          .to_lower_port = datagram->to_lower_port,
                          .client_id = header->source,
                          .first_id = header->destination,
                          .server_ns = -1,
                          .client_ns = -1,
                          .duration_ns = -1};
    quic->frames[QUIC_BEGIN] = datagram->frame;
    if (begins_connection(header, datagram->length) && datagram->time_known) {
        quic->begun = true;
        quic->begin_ns = datagram->time_ns;
    }
    return quic;
}

/* Returns whether the first captured long header was the server's: the client's answer comes from
 * the ID that it addressed. Then the roles are swapped, and no time is known. Some servers keep the
 * ID of the client's first Initial, so the ports must agree. */
static bool is_swapped(const struct quic *quic, const struct quic_header *header) {
    return quic->begun && !quic->round_trips && !quic->to_lower_port &&
           header->kind != QUIC_NEGOTIATION && header->source.size &&
           id_equals(&header->source, &quic->first_id);
}

static void take_long(struct quic *quic, const struct quic_header *header,
                      const struct quic_datagram *datagram) {
    bool first_side = datagram->direction == quic->client;
    if (!quic->recognized) {
        if (!first_side && is_answer(quic, header))
            quic->recognized = true;
        else if (first_side && header->kind == QUIC_INITIAL &&
                 begins_connection(header, datagram->length))
            quic->recognized = true;
        else
            quic->tries += quic->tries < TRIES_MAX;
    }
    if (!first_side && quic->recognized && is_swapped(quic, header)) {
        quic->client ^= 1;
        quic->begun = false;
    }
    if (!quic->begun || !datagram->time_known)
        return;
    if (first_side)
        take_client(quic, header, datagram->time_ns);
    else if (quic->recognized)
        take_server(quic, header, datagram);
}

/* Takes the packet with a long header at an offset. Returns its size, 0 if nothing can follow. */
static size_t take_packet(struct quic **place, const struct quic_datagram *datagram, size_t at,
                          size_t captured, struct pool *pool) {
    const uint8_t *bytes = datagram->bytes + at;
    struct quic_header header;
    if (*place && !(*place)->recognized && (*place)->tries == TRIES_MAX)
        return 0;
    if (!quic_read_header(&header, bytes, captured, datagram->length - at))
        return 0;
    if (!*place && may_be_quic(&header, datagram->length))
        *place = open_quic(&header, datagram, pool);
    if (!*place)
        return 0;
    take_long(*place, &header, datagram);
    if (header.kind == QUIC_INITIAL && datagram->direction == (*place)->client)
        take_hello(*place, &header, bytes, captured, datagram, pool);
    else if (header.kind == QUIC_INITIAL)
        take_close(*place, &header, bytes, captured, datagram);
    return header.size;
}

void quic_take(struct quic **place, const struct quic_datagram *datagram, struct pool *pool) {
    size_t end = datagram->captured < datagram->length ? datagram->captured : datagram->length;
    size_t at = 0, size = 1;
    for (unsigned i = 0; i < COALESCED_MAX && size && at < end; i++) {
        uint8_t first = datagram->bytes[at];
        if (!(first & LONG_HEADER)) {
            if (*place && (!at || first & FIXED_BIT)) /* else padding */
                take_short(*place, first, datagram, pool);
            return;
        }
        size = take_packet(place, datagram, at, end - at, pool);
        at += size;
    }
}

/* --- the end of a flow ---------------------------------------------------------------------- */

bool quic_recognized(const struct quic *quic) {
    return quic && quic->recognized;
}

const struct quic_hello *quic_client_hello(const struct quic *quic) {
    return quic ? quic->hello : NULL;
}

bool quic_hello_is_due(const struct quic *quic) {
    return quic && quic->hello && (quic->answered || quic_hello_is_whole(quic->hello));
}

void quic_drop_hello(struct quic *quic, struct pool *pool) {
    quic_hello_free(quic->hello, pool);
    quic->hello = NULL;
    quic->hello_read = true;
}

int64_t quic_handshake_rtt(const struct quic *quic) {
    bool known = quic && quic->server_ns >= 0 && quic->client_ns >= 0;
    return known ? quic->server_ns + quic->client_ns : -1;
}

bool quic_has_round_trip(const struct quic *quic) {
    return quic_recognized(quic) && (quic->server_ns >= 0 || quic->client_ns >= 0);
}

bool quic_summary(struct quic *quic, struct quic_summary *summary, struct pool *pool) {
    if (!quic_recognized(quic))
        return false;
    *summary = (struct quic_summary){
        .version = quic->agreed ? quic->agreed : quic->version,
        .client = quic->client,
        .server_ns = quic->server_ns,
        .client_ns = quic->client_ns,
        .duration_ns = quic->duration_ns,
        .spin_ns = spin_rtt(quic, pool),
        .spin_samples = quic->spin[0].samples.count + quic->spin[1].samples.count,
        .round_trips = quic->round_trips,
        .version_negotiation = quic->negotiation,
        .retry = quic->retry,
        .zero_rtt = quic->zero_rtt,
        .close_frame = quic->close_frame,
        .close_ns = quic->close_ns,
        .error = quic->error,
    };
    memcpy(summary->frames, quic->frames, sizeof summary->frames);
    return true;
}

void quic_free(struct quic *quic, struct pool *pool) {
    if (!quic)
        return;
    for (unsigned i = 0; i < 2; i++)
        histogram_free(&quic->spin[i].samples, pool);
    quic_hello_free(quic->hello, pool);
    pool_free(pool, quic, sizeof *quic);
}
