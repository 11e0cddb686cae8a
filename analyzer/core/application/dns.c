/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages (RFC 1035) over UDP and TCP: each question and its answer.
 *
 * On port 53 a message is read if its header and question are well formed. On other ports the
 * content alone must show that it is DNS: no other payload has flags of a query or response, one
 * printable question, and records that end exactly where the datagram ends. mDNS and
 * LLMNR are recognized by their ports and by records that fit. Answers to a multicast question come
 * from other addresses, so that its flow cannot show them: such questions are not kept.
 *
 * A query is kept until a response of the other direction has its id and, if the response repeats
 * the question, the same name and type. A repeated query counts as a retry of the first
 * one, unless it is REPEAT_NS later: then the first one is given up. At most QUERIES_MOST questions
 * of a flow wait; the oldest is given up for a new one. Names are compared without case (RFC 4343),
 * because clients mix it at random. A compression pointer must point before the name that has it,
 * so that each of them shortens the rest, and a name has 255 bytes at most. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "application/state.h"
#include "base/bytes.h"

#define HEADER_BYTES   12u
#define NAME_BYTES     255u
#define LABEL_POINTER  0xC0
#define FLAG_RESPONSE  0x8000
#define FLAG_TRUNCATED 0x0200
#define FLAGS_QUERY    0x0130 /* RD, AD and CD: a query may have them */
#define FLAGS_NEVER    0x7840 /* of a response: another opcode, and the bit that is always 0 */
#define OPCODE(flags)  ((flags) >> 11 & 15)
#define OPCODE_QUERY   0
#define OPCODE_NOTIFY  4
#define OPCODE_UPDATE  5
#define CODE(flags)    ((flags)&15)
#define CODE_MOST      11
#define TYPE_A         1
#define TYPE_AAAA      28
#define TYPE_OPT       41
#define OPTION_COOKIE  10
#define OPTION_BYTES   4u
#define TYPE_MOST      0x0110
#define RECORD_BYTES   10u /* of a record, without its name and its data */
#define CLASS_INTERNET 1
#define CLASS_ANY      255
#define CLASS_CHAOS    3
#define CLASS_BITS     0x7FFF /* mDNS uses the highest bit (RFC 6762 section 18.12) */
#define QUESTIONS_MOST 64u    /* of a message of mDNS */
#define ADDITIONS_MOST 2u     /* OPT and TSIG, of a query */
#define ADDRESSES_TEXT (16 * INET6_ADDRSTRLEN) /* those of an answer that are kept */
#define QUERIES_FIRST  2
#define QUERIES_MOST   1024u
#define DUPLICATE_NS   UINT64_C(10000000)
#define REPEAT_NS      INT64_C(30000000000)

/* A message up to its first question. */
struct message {
    uint16_t id, flags, type;
    bool named; /* `name` and `type` are set */
    char name[NAME_TEXT_MAX];
};

static const char *const codes[] = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN",
                                    "NOTIMP",  "REFUSED", "YXDOMAIN", "YXRRSET",
                                    "NXRRSET", "NOTAUTH", "NOTZONE"};
static const struct {
    uint16_t type;
    const char *text;
} types[] = {
    {1, "A"},     {2, "NS"},     {5, "CNAME"},  {6, "SOA"},    {12, "PTR"},    {13, "HINFO"},
    {15, "MX"},   {16, "TXT"},   {28, "AAAA"},  {33, "SRV"},   {35, "NAPTR"},  {39, "DNAME"},
    {43, "DS"},   {44, "SSHFP"}, {46, "RRSIG"}, {47, "NSEC"},  {48, "DNSKEY"}, {50, "NSEC3"},
    {52, "TLSA"}, {64, "SVCB"},  {65, "HTTPS"}, {251, "IXFR"}, {252, "AXFR"},  {255, "ANY"},
    {256, "URI"}, {257, "CAA"},
};

void dns_type_text(uint16_t type, char text[static DNS_TEXT_MAX]) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) {
            snprintf(text, DNS_TEXT_MAX, "%s", types[i].text);
            return;
        }
    snprintf(text, DNS_TEXT_MAX, "TYPE%u", type);
}

void dns_code_text(uint16_t code, char text[static DNS_TEXT_MAX]) {
    if (code < sizeof codes / sizeof *codes)
        snprintf(text, DNS_TEXT_MAX, "%s", codes[code]);
    else if (code == DNS_WRONG_COOKIE)
        snprintf(text, DNS_TEXT_MAX, "WRONGCOOKIE");
    else if (code == 16 || code == 23) /* RFC 6891, 7873 */
        snprintf(text, DNS_TEXT_MAX, "%s", code == 16 ? "BADVERS" : "BADCOOKIE");
    else
        snprintf(text, DNS_TEXT_MAX, "RCODE%u", code);
}

/* --- messages --------------------------------------------------------------------------------- */

/* Appends a label and its dot. A dot inside the label is escaped, because it separates no labels.
 */
static size_t add_label(char text[static NAME_TEXT_MAX], size_t used, const uint8_t *label,
                        size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (label[i] == '.' && used + 2 < NAME_TEXT_MAX)
            text[used++] = '\\';
        used = name_escape(text, used, label + i, 1);
    }
    return name_escape(text, used, (const uint8_t *)".", 1);
}

/* Reads the name at `at`. Returns the position behind it, 0 if it is malformed or cut. The root is
 * ".". */
static size_t read_name(const uint8_t *bytes, size_t length, size_t at,
                        char text[static NAME_TEXT_MAX]) {
    size_t after = 0, used = 0, size = 0, lowest = at;
    text[0] = '\0';
    while (at < length && bytes[at]) {
        size_t label = bytes[at];
        if (label >= LABEL_POINTER) {
            if (at + 2 > length)
                return 0;
            size_t target = load_be16(bytes + at) & 0x3FFF;
            if (target >= lowest || target < HEADER_BYTES)
                return 0;
            after = after ? after : at + 2;
            at = lowest = target;
            continue;
        }
        size += label + 1;
        if (label > 63 || size >= NAME_BYTES || at + 1 + label > length)
            return 0;
        used = add_label(text, used, bytes + at + 1, label);
        at += label + 1;
    }
    if (at >= length)
        return 0;
    if (used > 1)
        text[used - 1] = '\0';
    else
        memcpy(text, ".", sizeof ".");
    return after ? after : at + 1;
}

static bool is_known(uint16_t opcode) {
    return opcode == OPCODE_QUERY || opcode == OPCODE_NOTIFY || opcode == OPCODE_UPDATE;
}

static bool is_class(uint16_t class) {
    return class == CLASS_INTERNET || class == CLASS_CHAOS || class == CLASS_ANY;
}

/* Returns whether the bytes begin like a query or its response. If they are cut behind the header,
 * a response is known by its id alone. Only mDNS has messages of several questions, of which the
 * first is read. */
static bool read_message(struct message *message, const uint8_t *bytes, size_t length,
                         unsigned questions_most) {
    if (length < HEADER_BYTES)
        return false;
    message->id = load_be16(bytes);
    message->flags = load_be16(bytes + 2);
    message->named = false;
    uint16_t questions = load_be16(bytes + 4), opcode = OPCODE(message->flags);
    bool response = message->flags & FLAG_RESPONSE;
    if (!is_known(opcode) || questions > questions_most || (!questions && !response))
        return false;
    if (!questions || (response && length == HEADER_BYTES))
        return true;
    size_t after = read_name(bytes, length, HEADER_BYTES, message->name);
    if (!after || after + 4 > length)
        return false;
    uint16_t class = load_be16(bytes + after + 2) & (questions_most > 1 ? CLASS_BITS : UINT16_MAX);
    message->type = load_be16(bytes + after);
    message->named = true;
    return is_class(class);
}

/* Returns the position behind a name, 0 if it is malformed or cut. */
static size_t skip_name(const uint8_t *bytes, size_t length, size_t at) {
    while (at < length && bytes[at] && bytes[at] < LABEL_POINTER)
        at += bytes[at] > 63 ? length : bytes[at] + 1u;
    if (at >= length)
        return 0;
    return at + (bytes[at] ? 2 : 1);
}

/* Walks over a message. */
struct walk {
    const uint8_t *bytes;
    size_t captured;
    size_t at;             /* behind the last whole entry */
    unsigned extended;     /* high bits of the code, in an OPT record (RFC 6891 section 6.1.3) */
    const uint8_t *cookie; /* DNS_COOKIE_BYTES in an OPT record; NULL without */
    char *addresses; /* ADDRESSES_TEXT bytes for those of the answer; NULL: they are not wanted */
};

/* Appends the address of a record: `fields` are those behind its name, with all of its data. */
static void add_address(char text[static ADDRESSES_TEXT], const uint8_t *fields) {
    size_t used = strlen(text), bytes = load_be16(fields + 8);
    bool v4 = load_be16(fields) == TYPE_A && bytes == 4;
    if ((!v4 && (load_be16(fields) != TYPE_AAAA || bytes != 16)) ||
        load_be16(fields + 2) != CLASS_INTERNET || used + 1 + INET6_ADDRSTRLEN > ADDRESSES_TEXT)
        return;
    if (used)
        text[used++] = ' ';
    inet_ntop(v4 ? AF_INET : AF_INET6, fields + RECORD_BYTES, text + used, INET6_ADDRSTRLEN);
}

/* Returns the client's cookie among the options of an OPT record (RFC 7873 section 4); NULL
 * without. */
static const uint8_t *cookie_of(const uint8_t *options, size_t length) {
    for (size_t at = 0; at + OPTION_BYTES <= length;) {
        size_t size = load_be16(options + at + 2);
        if (load_be16(options + at) == OPTION_COOKIE && size >= DNS_COOKIE_BYTES &&
            size <= length - at - OPTION_BYTES)
            return options + at + OPTION_BYTES;
        at += OPTION_BYTES + size;
    }
    return NULL;
}

enum section { SECTION_QUESTION, SECTION_ANSWER, SECTION_OTHER };

/* Returns false if the next question or record is malformed or cut. */
static bool walk_entry(struct walk *walk, enum section section) {
    bool question = section == SECTION_QUESTION;
    size_t after = skip_name(walk->bytes, walk->captured, walk->at);
    size_t fixed = question ? 4 : RECORD_BYTES;
    if (!after || after + fixed > walk->captured)
        return false;
    const uint8_t *fields = walk->bytes + after;
    size_t end = after + fixed + (question ? 0 : load_be16(fields + 8));
    if (end > walk->captured)
        return false;
    if (!question && load_be16(fields) == TYPE_OPT) {
        walk->extended = fields[4];
        walk->cookie = cookie_of(fields + RECORD_BYTES, load_be16(fields + 8));
    }
    if (walk->addresses && section == SECTION_ANSWER)
        add_address(walk->addresses, fields);
    walk->at = end;
    return true;
}

/* Returns the number of questions and records that are whole, in `walk` where they end. */
static unsigned walk_message(struct walk *walk) {
    const uint8_t *header = walk->bytes;
    unsigned questions = load_be16(header + 4), answers = questions + load_be16(header + 6);
    unsigned entries = answers + load_be16(header + 8) + load_be16(header + 10), number = 0;
    walk->at = HEADER_BYTES;
    while (number < entries && walk_entry(walk, number < questions ? SECTION_QUESTION
                                                : number < answers ? SECTION_ANSWER
                                                                   : SECTION_OTHER))
        number++;
    return number;
}

static bool flags_agree(const struct message *message, const uint8_t *bytes, uint16_t port) {
    if (message->flags & FLAG_RESPONSE)
        return !(message->flags & FLAGS_NEVER) && CODE(message->flags) <= CODE_MOST;
    if (port)
        return OPCODE(message->flags) == OPCODE_QUERY;
    return !(message->flags & ~FLAGS_QUERY) && !load_be32(bytes + 6) &&
           load_be16(bytes + 10) <= ADDITIONS_MOST;
}

bool dns_plausible(const uint8_t *bytes, size_t captured, size_t length, uint16_t port) {
    struct message message;
    struct walk walk = {.bytes = bytes, .captured = captured < length ? captured : length};
    if (!port && !dns_may_begin(bytes, captured))
        return false;
    if (!read_message(&message, bytes, walk.captured, port == PORT_MDNS ? QUESTIONS_MOST : 1) ||
        !flags_agree(&message, bytes, port))
        return false;
    bool ordinary = message.named && message.type && message.type <= TYPE_MOST &&
                    !strchr(message.name, '\\') && load_be16(bytes + 4) == 1;
    if (!port && !ordinary)
        return false;
    unsigned entries = walk_message(&walk);
    return entries && (captured < length || walk.at == length);
}

/* The first segment should have the whole message; of a response it may have a part. */
bool dns_stream_begins(const uint8_t *bytes, size_t captured) {
    if (captured < 2 + DNS_LEAST)
        return false;
    size_t length = load_be16(bytes);
    bool response = bytes[4] & FLAG_RESPONSE >> 8;
    if (length < DNS_LEAST || (length > captured - 2 && !response))
        return false;
    return dns_plausible(bytes + 2, captured - 2, length, 0);
}

/* --- questions -------------------------------------------------------------------------------- */

static void forget_query(struct dns_queries *queries, struct pool *pool, uint32_t number) {
    struct dns_query *query = &queries->list[number];
    name_free(pool, query->name);
    queries->count--;
    memmove(query, query + 1, (queries->count - number) * sizeof *query);
}

/* Hands a question on and forgets it. */
static void finish_query(struct dns_queries *queries, const struct arrival *arrival,
                         uint32_t number) {
    arrival->finish_query(arrival->context, &queries->list[number]);
    forget_query(queries, arrival->pool, number);
}

static bool is_same(const struct dns_query *query, const struct message *message,
                    uint8_t direction) {
    if (query->id != message->id || query->direction != direction)
        return false;
    return !message->named ||
           (query->type == message->type && query->name && !strcasecmp(query->name, message->name));
}

/* Returns the number of the question, or queries->count. */
static uint32_t find_query(const struct dns_queries *queries, const struct message *message,
                           uint8_t direction) {
    uint32_t number = 0;
    while (number < queries->count && !is_same(&queries->list[number], message, direction))
        number++;
    return number;
}

static bool is_over(const struct dns_query *query, const struct arrival *arrival) {
    int64_t first_ns = query->first.time_ns;
    return first_ns != TIME_UNKNOWN && arrival->time_ns != TIME_UNKNOWN &&
           arrival->time_ns - first_ns > REPEAT_NS;
}

/* A query that follows at once with the same IP identification is a duplicate, no retry. */
static bool is_duplicate(const struct dns_query *query, const struct arrival *arrival) {
    return arrival->ip_id && query->ip_id == arrival->ip_id &&
           (uint64_t)arrival->time_ns - (uint64_t)query->last_ns < DUPLICATE_NS;
}

static void take_query(struct application *application, const struct arrival *arrival,
                       const struct message *message, const struct walk *walk) {
    if (arrival->multicast)
        return;
    struct dns_queries *queries = &application->dns;
    uint32_t number = find_query(queries, message, arrival->direction);
    if (number < queries->count && !is_over(&queries->list[number], arrival)) {
        struct dns_query *query = &queries->list[number];
        query->sent += !is_duplicate(query, arrival);
        query->ip_id = arrival->ip_id;
        query->last_ns = arrival->time_ns;
        return;
    }
    if (number < queries->count || queries->count == QUERIES_MOST)
        finish_query(queries, arrival, number < queries->count ? number : 0);
    if (queries->count == queries->room &&
        !pool_grow(arrival->pool, (void **)&queries->list, &queries->room, sizeof *queries->list,
                   QUERIES_FIRST, QUERIES_MOST))
        return;
    queries->list[queries->count++] =
        (struct dns_query){.name = text_copy(arrival->pool, message->name),
                           .first = moment_of(arrival),
                           .last_ns = arrival->time_ns,
                           .sent = 1,
                           .id = message->id,
                           .type = message->type,
                           .ip_id = arrival->ip_id,
                           .direction = arrival->direction,
                           .has_cookie = walk->cookie};
    if (walk->cookie)
        memcpy(queries->list[queries->count - 1].cookie, walk->cookie, DNS_COOKIE_BYTES);
}

/* Returns the code of a response. One with another client's cookie must be discarded (RFC 7873
 * section 5.3), whatever it says. */
static uint16_t code_of(const struct dns_query *query, const struct message *message,
                        const struct walk *walk) {
    if (query->has_cookie && walk->cookie &&
        memcmp(query->cookie, walk->cookie, DNS_COOKIE_BYTES) != 0)
        return DNS_WRONG_COOKIE;
    return (uint16_t)(walk->extended << 4 | CODE(message->flags));
}

static void take_response(struct application *application, const struct arrival *arrival,
                          const struct message *message, const struct walk *walk) {
    struct dns_queries *queries = &application->dns;
    uint32_t number = find_query(queries, message, !arrival->direction);
    if (number == queries->count)
        return;
    queries->list[number].answer = moment_of(arrival);
    queries->answered |=
        arrival->time_ns != TIME_UNKNOWN && queries->list[number].first.time_ns != TIME_UNKNOWN;
    queries->list[number].truncated = message->flags & FLAG_TRUNCATED;
    queries->list[number].code = code_of(&queries->list[number], message, walk);
    queries->list[number].addresses = walk->addresses;
    finish_query(queries, arrival, number);
}

/* NOTIFY and UPDATE (RFC 1996, 2136) have the form of a query, but ask no question. */
bool dns_take(struct application *application, const struct arrival *arrival, const uint8_t *bytes,
              size_t captured, size_t length) {
    struct message message;
    struct walk walk = {.bytes = bytes, .captured = captured < length ? captured : length};
    bool mdns = arrival->dns_port == PORT_MDNS;
    if (!read_message(&message, bytes, walk.captured, mdns ? QUESTIONS_MOST : 1))
        return false;
    if (!application->server_name && message.named)
        application->server_name = text_copy(arrival->pool, message.name);
    if (OPCODE(message.flags) != OPCODE_QUERY)
        return true;
    if (message.flags & FLAG_RESPONSE) {
        char addresses[ADDRESSES_TEXT] = "";
        walk.addresses = addresses;
        walk_message(&walk);
        take_response(application, arrival, &message, &walk);
    } else {
        walk_message(&walk);
        take_query(application, arrival, &message, &walk);
    }
    return true;
}

/* Messages over TCP have their length before them (RFC 1035 section 4.2.2). One that exceeds the
 * first bytes is read as far as they reach. */
void dns_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream) {
    while (!stream->over && stream->parsed + 2u <= stream->ready) {
        const uint8_t *bytes = stream->bytes + stream->parsed;
        size_t length = load_be16(bytes), there = stream->ready - stream->parsed - 2u;
        if (length < HEADER_BYTES) {
            stream->over = true;
            return;
        }
        if (there < length && !first_bytes_full(stream))
            return;
        stream->over = !dns_take(application, arrival, bytes + 2, there, length);
        first_bytes_pass(stream, 2 + length);
    }
}

void dns_finish(struct dns_queries *queries, const struct arrival *arrival,
                const bool unread[static 2]) {
    for (uint32_t i = queries->count; i--;)
        if (unread[!queries->list[i].direction])
            forget_query(queries, arrival->pool, i);
    while (queries->count)
        finish_query(queries, arrival, 0);
}

void dns_free(struct dns_queries *queries, struct pool *pool) {
    for (uint32_t i = 0; i < queries->count; i++)
        name_free(pool, queries->list[i].name);
    pool_release(pool, queries->list, queries->room, sizeof *queries->list);
    *queries = (struct dns_queries){0};
}
