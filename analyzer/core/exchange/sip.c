/* SPDX-License-Identifier: Apache-2.0 */
/* SIP over UDP (RFC 3261): each request and its final response, and the ACK of a final response to
 * INVITE.
 *
 * A request is known by its ends, its Call-ID and its CSeq. The response that ends it has a status
 * from 200 on; after a lower one the called party may ring for long. A final response to INVITE is
 * repeated until its ACK comes, for 32 s (section 13.3.1.4): this wait is an exchange of its own,
 * in which the one that answered asks. Of the keys of two ends there are SLOTS, so that a busy
 * trunk does not displace others; calls that share one displace each other, and an open one is left
 * out. The digest has no random seed, because it decides on rows: who makes Call-IDs alike hides
 * only calls between these two ends. */
#include <stdio.h>
#include <strings.h>

#include "base/bytes.h"
#include "exchange/exchange.h"

#define MESSAGE_MOST 2048u
#define VERSION      "SIP/2.0"
#define SLOTS        4096u
#define FINAL        200u

/* A part of the message. */
struct text {
    const char *bytes;
    uint32_t length;
};

struct message {
    struct text method, target; /* of a request; the method of a response is that of its CSeq */
    unsigned status;            /* 0 of a request */
    uint64_t digest;            /* of Call-ID and the number of CSeq */
    bool complete;              /* both were found */
};

static const char *const methods[] = {"INVITE", "REGISTER",  "OPTIONS", "BYE",     "CANCEL",
                                      "ACK",    "SUBSCRIBE", "NOTIFY",  "MESSAGE", "INFO",
                                      "UPDATE", "PRACK",     "REFER",   "PUBLISH"};
static const char ACK_WANTED[] = "ACK";

static bool equals(struct text text, const char *word) {
    return text.length == strlen(word) && !memcmp(text.bytes, word, text.length);
}

/* Returns the static name of a method; NULL of an unknown one. */
static const char *method_of(struct text text) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (equals(text, methods[i]))
            return methods[i];
    return NULL;
}

/* Takes the bytes up to a separator from the front of a text; without one, all of it. */
static struct text take_until(struct text *text, char separator) {
    const char *end = memchr(text->bytes, separator, text->length);
    uint32_t length = end ? (uint32_t)(end - text->bytes) : text->length;
    struct text front = {text->bytes, length};
    uint32_t passed = length + (end != NULL);
    text->bytes += passed;
    text->length -= passed;
    return front;
}

static struct text trimmed(struct text text) {
    while (text.length && (*text.bytes == ' ' || *text.bytes == '\t'))
        text.bytes++, text.length--;
    while (text.length && strchr(" \t\r", text.bytes[text.length - 1]))
        text.length--;
    return text;
}

static void add_to_digest(uint64_t *digest, struct text text) {
    for (uint32_t i = 0; i < text.length; i++)
        *digest = (*digest ^ (uint8_t)text.bytes[i]) * UINT64_C(0x100000001b3);
}

static bool is_named(struct text name, const char *whole, const char *compact) {
    return (name.length == strlen(whole) && !strncasecmp(name.bytes, whole, name.length)) ||
           (name.length == strlen(compact) && !strncasecmp(name.bytes, compact, name.length));
}

/* Reads Call-ID and CSeq, which is a number and a method. */
static void read_headers(struct message *message, struct text text) {
    bool named = false, numbered = false;
    while (text.length && !(named && numbered)) {
        struct text line = take_until(&text, '\n');
        if (!trimmed(line).length)
            break;
        struct text name = trimmed(take_until(&line, ':')), value = trimmed(line);
        if (!named && is_named(name, "Call-ID", "i")) {
            add_to_digest(&message->digest, value);
            named = true;
        } else if (!numbered && is_named(name, "CSeq", "CSeq")) {
            uint64_t number = UINT64_C(0xcbf29ce484222325);
            add_to_digest(&number, take_until(&value, ' '));
            message->digest ^= number;
            if (message->status)
                message->method = trimmed(value);
            numbered = true;
        }
    }
    message->complete = named && numbered;
}

static unsigned status_of(struct text text) {
    unsigned status = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (i >= text.length || text.bytes[i] < '0' || text.bytes[i] > '9')
            return 0;
        status = 10 * status + (unsigned)(text.bytes[i] - '0');
    }
    return text.length == 3 ? status : 0;
}

/* Returns whether the datagram is a message of SIP. */
static bool read_message(struct message *message, const struct headers *headers) {
    struct text text = {(const char *)headers->payload, headers->payload_captured < MESSAGE_MOST
                                                            ? headers->payload_captured
                                                            : MESSAGE_MOST};
    struct text first = take_until(&text, '\n'), word = take_until(&first, ' ');
    *message = (struct message){.digest = UINT64_C(0xcbf29ce484222325)};
    if (equals(word, VERSION)) {
        message->status = status_of(take_until(&first, ' '));
        if (message->status < 100 || message->status > 699)
            return false;
    } else {
        message->method = word;
        message->target = take_until(&first, ' ');
        if (!equals(trimmed(first), VERSION))
            return false;
    }
    read_headers(message, text);
    return message->complete;
}

static struct exchange_key key_of(const struct local_packet *place, const struct message *message,
                                  const struct headers *headers, bool asks, enum word kind) {
    struct exchange_key key = {.path = place->path,
                               .interface = place->interface,
                               .kind = (uint16_t)kind,
                               .version = headers->ip_version,
                               .id = message->digest % SLOTS};
    const char *method = method_of(message->method);
    for (size_t i = 0; kind == WORD_SIP && i < sizeof methods / sizeof *methods; i++)
        if (methods[i] == method)
            key.id |= (i + 1) * SLOTS;
    memcpy(key.client, asks ? headers->source : headers->destination, sizeof key.client);
    memcpy(key.server, asks ? headers->destination : headers->source, sizeof key.server);
    return key;
}

/* Returns the exchange of this message if it waits for an answer; NULL without one. */
static struct local_exchange *waiting(struct local_exchanges *local, const struct exchange_key *key,
                                      const struct message *message) {
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, key);
    bool same = exchange && !exchange->settled && exchange->id == (uint32_t)(message->digest >> 32);
    return same ? exchange : NULL;
}

/* Begins or repeats a request; a call that another one displaces is left out. */
static struct local_exchange *ask(struct local_exchanges *local, const struct exchange_key *key,
                                  const struct local_packet *place, const struct message *message,
                                  const char *type) {
    struct local_exchange *before = keyed_list_find(&local->exchanges, key);
    uint32_t id = (uint32_t)(message->digest >> 32);
    if (before && before->id != id)
        exchange_displace(before);
    else if (before && before->settled)
        return NULL; /* a copy, or repeated although its answer passed here */
    struct local_exchange *exchange = exchange_ask(local, key, place);
    if (!exchange)
        return NULL;
    exchange->id = id;
    exchange->type = type;
    return exchange;
}

/* `sip:2002@198.51.100.10:5060;transport=udp` is named 2002@198.51.100.10. */
static void put_target(struct local_exchange *exchange, struct text target) {
    uint32_t scheme = target.length > 4 && !strncasecmp(target.bytes, "sip:", 4)    ? 4
                      : target.length > 5 && !strncasecmp(target.bytes, "sips:", 5) ? 5
                                                                                    : 0;
    target.bytes += scheme;
    target.length -= scheme;
    struct text name = take_until(&target, ';');
    exchange_put_name(exchange, (const uint8_t *)name.bytes, name.length);
}

static void take_request(struct local_exchanges *local, const struct local_packet *place,
                         const struct message *message, const struct headers *headers) {
    const char *method = method_of(message->method);
    if (!method)
        return;
    if (!strcmp(method, ACK_WANTED)) { /* from the one that was answered */
        struct exchange_key key = key_of(place, message, headers, false, WORD_SIP_ACK);
        struct local_exchange *exchange = waiting(local, &key, message);
        if (exchange)
            exchange_settle(local, exchange, place, WORD_ANSWERED, NULL);
        return;
    }
    struct exchange_key key = key_of(place, message, headers, true, WORD_SIP);
    struct local_exchange *exchange = ask(local, &key, place, message, method);
    if (exchange && exchange->attempts == 1)
        put_target(exchange, message->target);
}

static void take_response(struct local_exchanges *local, const struct local_packet *place,
                          const struct message *message, const struct headers *headers) {
    struct exchange_key key = key_of(place, message, headers, false, WORD_SIP);
    struct local_exchange *exchange = waiting(local, &key, message);
    char status[12];
    snprintf(status, sizeof status, "%u", message->status);
    if (exchange && message->status >= FINAL)
        exchange_settle(local, exchange, place, message->status >= 400 ? WORD_ERROR : WORD_ANSWERED,
                        status);
    else if (exchange)
        exchange_note_answer(exchange, place);
    if (message->status < FINAL || !equals(message->method, "INVITE"))
        return;
    key = key_of(place, message, headers, true, WORD_SIP_ACK);
    ask(local, &key, place, message, message->status < 300 ? "2xx" : "error");
}

void sip_take(struct local_exchanges *local, const struct local_packet *place,
              const struct headers *headers) {
    struct message message;
    if (!headers->payload_captured || !read_message(&message, headers))
        return;
    if (message.status)
        take_response(local, place, &message, headers);
    else
        take_request(local, place, &message, headers);
}
