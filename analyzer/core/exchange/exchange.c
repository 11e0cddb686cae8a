/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for their answer, one for each pair of ends.
 *
 * A request repeats the one before if that is still open and not older than repeat_ns: hosts ask
 * again after 1 s (RETRANS_TIMER of RFC 4861 section 10, retrans_time of Linux, Windows), or up to
 * 4 s later (BSD); those of DHCP have other timers. It is a copy of it, as another port or a bridge
 * stores, within COPY_NS. An answer counts for the latest request. The exchange stays until its
 * ends begin another one, so that a second answer, of another MAC address, is seen. */
#include "exchange/exchange.h"

#include "application/state.h"
#include "base/int64.h"

#define COPY_NS   INT64_C(100000000)
#define SECOND_NS INT64_C(1000000000)

/* An answer takes no longer than answer_ns, as a rule; a later request than repeat_ns is another
 * exchange. */
struct timers {
    int64_t answer_ns, repeat_ns;
};

static struct timers timers_of(const struct exchange_key *key) {
    if (key->kind == WORD_DHCP) /* the first repeat after 4 s, the last pause 64 s, both +- 1 s */
        return (struct timers){3 * SECOND_NS, 65 * SECOND_NS};
    if (key->kind ==
        WORD_SCTP) /* an INIT is repeated after 1, 2, 4 ... 60 s, RFC 9260 section 16 */
        return (struct timers){3 * SECOND_NS, 65 * SECOND_NS};
    if (key->kind == WORD_EAPOL) /* both ends ask again after 30 s */
        return (struct timers){5 * SECOND_NS, 65 * SECOND_NS};
    if (key->kind == WORD_RADIUS || key->kind == WORD_SERVICE)
        return (struct timers){3 * SECOND_NS, 35 * SECOND_NS};
    if (key->kind == WORD_SIP || key->kind == WORD_SIP_ACK) /* 64 * T1, RFC 3261 section 17 */
        return (struct timers){2 * SECOND_NS, 35 * SECOND_NS};
    return (struct timers){SECOND_NS, 5 * SECOND_NS};
}

_Static_assert(sizeof(struct exchange_key) == 56, "words without padding");

/* Returns the time from `from_ns` to a packet; 0 if it is not known or negative. */
static int64_t since(int64_t from_ns, int64_t time_ns) {
    bool timed = from_ns != TIME_UNKNOWN && time_ns != TIME_UNKNOWN;
    return timed && time_ns > from_ns ? time_ns - from_ns : 0;
}

static bool is_address(const uint8_t *address) {
    static const uint8_t none[4];
    return memcmp(address, none, sizeof none) != 0;
}

/* Sets who asked whom: a client of DHCP has no address as a rule, and asks all servers. */
static void put_ends_of_dhcp(struct row_sink *sink, struct row *row,
                             const struct local_exchange *exchange) {
    static const char hex[] = "0123456789abcdef";
    char text[NAME_TEXT_MAX];
    size_t used = 0;
    for (unsigned i = 0; i < MAC_BYTES; i++) {
        if (i)
            text[used++] = ':';
        text[used++] = hex[exchange->key.client[i] >> 4];
        text[used++] = hex[exchange->key.client[i] & 15];
    }
    if (exchange->host_length) {
        text[used++] = ' ';
        used = name_escape(text, used, exchange->host, exchange->host_length);
    }
    text[used] = '\0';
    row_set_text(sink, row, exchanges_name, text);
    row_set_text(sink, row, exchanges_type, exchange->type);
    if (is_address(exchange->address))
        row_set(row, exchanges_client, add_address(sink, 4, exchange->address));
    if (is_address(exchange->server))
        row_set(row, exchanges_server, add_address(sink, 4, exchange->server));
}

static void put_ends(struct row_sink *sink, struct row *row,
                     const struct local_exchange *exchange) {
    const struct exchange_key *key = &exchange->key;
    if (key->kind == WORD_DHCP) {
        put_ends_of_dhcp(sink, row, exchange);
        return;
    }
    if (exchange->host_length) {
        char text[NAME_TEXT_MAX];
        text[name_escape(text, 0, exchange->host, exchange->host_length)] = '\0';
        row_set_text(sink, row, exchanges_name, text);
    }
    row_set_text(sink, row, exchanges_type, exchange->type);
    row_set_if(row, exchanges_request_bytes, exchange->request_bytes, exchange->request_bytes);
    if (key->kind == WORD_EAPOL || key->kind == WORD_WLAN)
        return;                /* below IP */
    if (key->kind != WORD_DAD) /* it has no address yet */
        row_set(row, exchanges_client, add_address(sink, key->version, key->client));
    row_set(row, exchanges_server, add_address(sink, key->version, key->server));
}

static void put_answer(struct row_sink *sink, struct row *row,
                       const struct local_exchange *exchange, const char *code) {
    row_set_text(sink, row, exchanges_code, code);
    if (is_mac(exchange->mac))
        row_set_mac(sink, row, exchanges_code, exchange->mac);
    if (!exchange->answered_frame)
        return;
    row_set(row, exchanges_answered_frame, (int64_t)exchange->answered_frame);
    row_set_if(row, exchanges_answered_ns, exchange->answered_ns != TIME_UNKNOWN,
               exchange->answered_ns);
}

/* Adds a row; `waited_ns` is negative if it is not known. */
static void add_exchange(struct local_exchanges *local, const struct local_exchange *exchange,
                         enum word outcome, int64_t waited_ns, const char *code) {
    struct row_sink *sink = local->sink;
    struct row row;
    if (local->rows >= MAX_LOCAL_ROWS) {
        sink->exchanges_dropped++;
        return;
    }
    local->rows++;
    row_clear(&row);
    row_set(&row, exchanges_kind, exchange->key.kind);
    row_set(&row, exchanges_capture, exchange->key.interface);
    put_ends(sink, &row, exchange);
    row_set_if(&row, exchanges_asked_ns, exchange->asked_ns != TIME_UNKNOWN, exchange->asked_ns);
    row_set(&row, exchanges_asked_frame, (int64_t)exchange->asked_frame);
    row_set(&row, exchanges_attempts, exchange->attempts);
    row_set_if(&row, exchanges_waited_ns, waited_ns >= 0, waited_ns);
    row_set(&row, exchanges_outcome, outcome);
    put_answer(sink, &row, exchange, code);
    row_sink_add(sink, TABLE_exchanges, &row);
}

void exchange_settle(struct local_exchanges *local, struct local_exchange *exchange,
                     const struct local_packet *packet, enum word outcome, const char *code) {
    int64_t waited_ns = -1;
    exchange->settled = true;
    if (exchange->begun) {
        if (exchange->asked_ns != TIME_UNKNOWN && exchange->answered_ns != TIME_UNKNOWN)
            waited_ns = since(exchange->asked_ns, exchange->answered_ns);
    } else if (packet) {
        exchange->answered_frame = packet->frame;
        exchange->answered_ns = packet->time_ns;
        bool timed = exchange->asked_ns != TIME_UNKNOWN && packet->time_ns != TIME_UNKNOWN;
        if (timed && !exchange->unasked)
            waited_ns = since(exchange->asked_ns, packet->time_ns);
    }
    add_exchange(local, exchange, outcome, waited_ns, code);
}

/* The client gave up an answer's usual time after its last request. */
void exchange_give_up(struct local_exchanges *local, const struct local_exchange *exchange,
                      int64_t end_ns) {
    int64_t answer_ns = timers_of(&exchange->key).answer_ns;
    bool timed = exchange->asked_ns != TIME_UNKNOWN && end_ns != TIME_UNKNOWN;
    bool over = since(exchange->asked_ns, end_ns) >= answer_ns;
    int64_t gave_up_ns = add_ns(since(exchange->asked_ns, exchange->last_ns), answer_ns);
    int64_t waited_ns = min64(gave_up_ns, since(exchange->asked_ns, end_ns));
    bool open = exchange->begun || (!over && timed);
    add_exchange(local, exchange, open ? WORD_CUT_OFF : WORD_UNANSWERED,
                 timed && !exchange->begun ? waited_ns : -1, NULL);
}

static bool is_copy(const struct local_exchange *exchange, const struct local_packet *packet) {
    return packet->time_ns != TIME_UNKNOWN && since(exchange->last_ns, packet->time_ns) < COPY_NS;
}

/* Returns whether the packet is another request of the exchange. */
static bool repeats(const struct local_exchange *exchange, const struct local_packet *packet) {
    int64_t repeat_ns = timers_of(&exchange->key).repeat_ns;
    return exchange->settled ? is_copy(exchange, packet)
                             : since(exchange->last_ns, packet->time_ns) <= repeat_ns;
}

/* Returns a place for a new exchange; NULL without memory. */
static struct local_exchange *place_of(struct local_exchanges *local,
                                       const struct exchange_key *key,
                                       struct local_exchange *before, int64_t now_ns) {
    struct local_exchange *left = before ? before : keyed_list_replaced(&local->exchanges);
    if (left && !left->settled)
        exchange_give_up(local, left, now_ns);
    local->replaced += left && !before;
    struct local_exchange *place = before ? before : keyed_list_add(&local->exchanges, key);
    local->out_of_memory |= !place;
    return place;
}

struct local_exchange *exchange_ask(struct local_exchanges *local, const struct exchange_key *key,
                                    const struct local_packet *packet) {
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, key);
    if (exchange && repeats(exchange, packet)) {
        if (!is_copy(exchange, packet)) {
            exchange->attempts++;
            exchange->last_ns = packet->time_ns;
        }
        return exchange;
    }
    exchange = place_of(local, key, exchange, packet->time_ns);
    if (exchange)
        *exchange = (struct local_exchange){.key = *key,
                                            .asked_ns = packet->time_ns,
                                            .last_ns = packet->time_ns,
                                            .asked_frame = packet->frame,
                                            .attempts = 1};
    return exchange;
}

struct local_exchange *exchange_answer(struct local_exchanges *local,
                                       const struct exchange_key *key,
                                       const struct local_packet *packet, const uint8_t *mac) {
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, key);
    if (!exchange || exchange->settled ||
        since(exchange->last_ns, packet->time_ns) > timers_of(key).repeat_ns)
        return exchange;
    memcpy(exchange->mac, mac, MAC_BYTES);
    exchange_settle(local, exchange, packet, WORD_ANSWERED, NULL);
    return exchange;
}

void exchange_put_name(struct local_exchange *exchange, const uint8_t *bytes, uint32_t length) {
    exchange->host_length = (uint8_t)(length < HOST_BYTES ? length : HOST_BYTES);
    if (exchange->host_length)
        memcpy(exchange->host, bytes, exchange->host_length);
}

void exchange_renew(struct local_exchanges *local, const struct exchange_key *key, uint32_t id,
                    const struct local_packet *packet) {
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, key);
    if (!exchange || exchange->id == id)
        return;
    if (!exchange->settled)
        exchange_give_up(local, exchange, packet->time_ns);
    exchange_displace(exchange);
}

/* Its last request is long ago, so that no other one is a copy of it. */
void exchange_displace(struct local_exchange *exchange) {
    exchange->settled = true;
    exchange->last_ns = 0;
}

void exchange_note_answer(struct local_exchange *exchange, const struct local_packet *packet) {
    if (exchange->begun)
        return;
    exchange->begun = true;
    exchange->answered_frame = packet->frame;
    exchange->answered_ns = packet->time_ns;
}
