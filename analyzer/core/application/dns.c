/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages (RFC 1035) over UDP and TCP: each question and its answer.
 *
 * A query is kept until a response of the other direction has its id and, if the response repeats
 * the question, the same name and type. A query that is sent again counts as a retry of the first
 * one, unless it is REPEAT_NS later: then the first one is given up. At most QUERIES_MOST questions
 * of a flow wait; the oldest is given up for a new one. Names are compared without case (RFC 4343),
 * because clients mix it at random. A compression pointer must point before the name that has it,
 * so that each of them shortens the rest, and a name has 255 bytes at most. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "application/application.h"
#include "base/bytes.h"

#define HEADER_BYTES   12u
#define NAME_BYTES     255u
#define LABEL_POINTER  0xC0
#define FLAG_RESPONSE  0x8000
#define OPCODE(flags)  ((flags) >> 11 & 15)
#define CODE(flags)    ((flags)&15)
#define CLASS_INTERNET 1
#define CLASS_ANY      255
#define CLASS_CHAOS    3
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
    {1, "A"},      {2, "NS"},      {5, "CNAME"}, {6, "SOA"},    {12, "PTR"},   {15, "MX"},
    {16, "TXT"},   {28, "AAAA"},   {33, "SRV"},  {35, "NAPTR"}, {43, "DS"},    {46, "RRSIG"},
    {47, "NSEC"},  {48, "DNSKEY"}, {52, "TLSA"}, {64, "SVCB"},  {65, "HTTPS"}, {251, "IXFR"},
    {252, "AXFR"}, {255, "ANY"},   {257, "CAA"},
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

/* Returns whether the bytes begin like a query or its response. If they are cut behind the header,
 * a response is known by its id alone. */
static bool read_message(struct message *message, const uint8_t *bytes, size_t length) {
    if (length < HEADER_BYTES)
        return false;
    message->id = load_be16(bytes);
    message->flags = load_be16(bytes + 2);
    message->named = false;
    uint16_t questions = load_be16(bytes + 4);
    bool response = message->flags & FLAG_RESPONSE;
    if (OPCODE(message->flags) || questions > 1 || (!questions && !response))
        return false;
    if (!questions || (response && length == HEADER_BYTES))
        return true;
    size_t after = read_name(bytes, length, HEADER_BYTES, message->name);
    if (!after || after + 4 > length)
        return false;
    uint16_t class = load_be16(bytes + after + 2);
    message->type = load_be16(bytes + after);
    message->named = true;
    return class == CLASS_INTERNET || class == CLASS_CHAOS || class == CLASS_ANY;
}

/* --- questions -------------------------------------------------------------------------------- */

/* Hands a question on and forgets it. */
static void finish_query(struct dns_queries *queries, const struct arrival *arrival,
                         uint32_t number) {
    struct dns_query *query = &queries->list[number];
    arrival->finish_query(arrival->context, query);
    name_free(arrival->pool, query->name);
    queries->count--;
    memmove(query, query + 1, (queries->count - number) * sizeof *query);
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
                       const struct message *message) {
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
    if (queries->count == queries->room) {
        void *list = queries->list;
        if (!pool_grow(arrival->pool, &list, &queries->room, sizeof *queries->list, QUERIES_FIRST,
                       QUERIES_MOST))
            return;
        queries->list = list;
    }
    queries->list[queries->count++] =
        (struct dns_query){.name = text_copy(arrival->pool, message->name),
                           .first = moment_of(arrival),
                           .last_ns = arrival->time_ns,
                           .sent = 1,
                           .id = message->id,
                           .type = message->type,
                           .ip_id = arrival->ip_id,
                           .direction = arrival->direction};
}

static void take_response(struct application *application, const struct arrival *arrival,
                          const struct message *message) {
    struct dns_queries *queries = &application->dns;
    uint32_t number = find_query(queries, message, !arrival->direction);
    if (number == queries->count)
        return;
    queries->list[number].answer = moment_of(arrival);
    queries->list[number].code = CODE(message->flags);
    finish_query(queries, arrival, number);
}

bool dns_take(struct application *application, const struct arrival *arrival, const uint8_t *bytes,
              size_t length) {
    struct message message;
    if (!read_message(&message, bytes, length))
        return false;
    if (!application->server_name && message.named)
        application->server_name = text_copy(arrival->pool, message.name);
    if (message.flags & FLAG_RESPONSE)
        take_response(application, arrival, &message);
    else
        take_query(application, arrival, &message);
    return true;
}

/* Messages over TCP have their length before them (RFC 1035 section 4.2.2). One that exceeds the
 * first bytes is read as far as they reach. */
void dns_parse(struct application *application, const struct arrival *arrival,
               struct first_bytes *stream) {
    while (!stream->over && stream->parsed + 2u <= stream->ready) {
        const uint8_t *bytes = stream->bytes + stream->parsed;
        size_t length = load_be16(bytes), there = stream->ready - stream->parsed - 2u;
        bool whole = there >= length;
        if (length < HEADER_BYTES) {
            stream->over = true;
            return;
        }
        if (!whole && stream->ready < FIRST_BYTES)
            return;
        bool taken = dns_take(application, arrival, bytes + 2, whole ? length : there);
        stream->over = !whole || !taken;
        stream->parsed = (uint16_t)(stream->parsed + 2u + (whole ? length : there));
    }
}

void dns_finish(struct dns_queries *queries, const struct arrival *arrival) {
    while (queries->count)
        finish_query(queries, arrival, 0);
}

void dns_free(struct dns_queries *queries, struct pool *pool) {
    for (uint32_t i = 0; i < queries->count; i++)
        name_free(pool, queries->list[i].name);
    pool_release(pool, queries->list, queries->room, sizeof *queries->list);
    *queries = (struct dns_queries){0};
}
