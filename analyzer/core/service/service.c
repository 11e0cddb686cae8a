/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the bytes of a packet to the reader of its port. A request that it finds waits for its
 * answer. */
#include "service/service.h"

#include <stdio.h>

#include "service/readers.h"

#define DIGEST_BYTES 256u
#define BOOT_FILES   69u

static service_reader *datagram_reader(uint16_t port) {
    switch (port) {
    case 88: return kerberos_read;
    case 111: return portmap_read;
    case 123: return ntp_read;
    case 500:
    case 4500: return ike_read;
    default: return tftp_read;
    }
}

static service_reader *rare_stream_reader(uint16_t port) {
    switch (port) {
    case 143: return imap_read;
    case 179: return bgp_read;
    case 1080: return socks_read;
    case 1433: return tds_read;
    case 1521: return tns_read;
    case 5672: return amqp_read;
    case 6379: return redis_read;
    case 27017: return mongodb_read;
    default: return http2_read;
    }
}

static service_reader *stream_reader(uint16_t port) {
    switch (port) {
    case 21: return ftp_read;
    case 25:
    case 587: return smtp_read;
    case 88: return kerberos_stream_read;
    case 110: return pop3_read;
    case 389:
    case 3268: return ldap_read;
    case 445: return smb_read;
    case 502: return modbus_read;
    case 1883: return mqtt_read;
    case 3306: return mysql_read;
    case 3389: return rdp_read;
    case 5432:
    case 6432: return postgresql_read; /* PgBouncer */
    default: return rare_stream_reader(port);
    }
}

static uint32_t digest_of(struct service_bytes bytes) {
    uint32_t digest = 0x811c9dc5u;
    for (uint32_t i = 0; i < bytes.length && i < DIGEST_BYTES; i++)
        digest = (digest ^ bytes.at[i]) * 0x01000193u;
    return digest;
}

/* A transfer of TFTP goes on from another port of the server, which does not count. */
static struct exchange_key key_of(const struct local_packet *place, const struct headers *headers,
                                  bool asks, bool stream, bool file) {
    uint16_t client_port = asks ? headers->source_port : headers->destination_port,
             server_port = asks ? headers->destination_port : headers->source_port;
    if (file)
        server_port = BOOT_FILES;
    struct exchange_key key = {.path = place->path,
                               .interface = place->interface,
                               .kind = WORD_SERVICE,
                               .version = headers->ip_version,
                               .id = (uint64_t)stream << 32 | (uint64_t)server_port << 16 |
                                     client_port};
    memcpy(key.client, asks ? headers->source : headers->destination, sizeof key.client);
    memcpy(key.server, asks ? headers->destination : headers->source, sizeof key.server);
    return key;
}

static struct local_exchange *ask(struct local_exchanges *local, const struct exchange_key *key,
                                  const struct local_packet *place,
                                  const struct service_message *message, uint32_t id) {
    exchange_renew(local, key, id, place);
    struct local_exchange *exchange = exchange_ask(local, key, place);
    if (!exchange || exchange->type)
        return exchange;
    exchange->id = id;
    exchange->type = message->type;
    exchange_put_name(exchange, (const uint8_t *)message->name, (uint32_t)strlen(message->name));
    return exchange;
}

static void answer(struct local_exchanges *local, const struct exchange_key *key,
                   const struct local_packet *place, const struct service_message *message) {
    struct local_exchange *exchange = keyed_list_find(&local->exchanges, key);
    if (!exchange && message->unasked) {
        exchange = ask(local, key, place, message, 0);
        if (exchange)
            exchange->unasked = true;
    }
    if (exchange && !exchange->settled)
        exchange_settle(local, exchange, place, message->refused ? WORD_REFUSED : WORD_ANSWERED,
                        message->answer[0] ? message->answer : NULL);
}

/* The client refuses what the server offers (TFTP): the answer comes from the client itself. */
static void refuse_file(struct local_exchanges *local, const struct local_packet *place,
                        const struct headers *headers, struct service_message *message) {
    struct exchange_key key = key_of(place, headers, false, false, true);
    if (!keyed_list_find(&local->exchanges, &key)) {
        key = key_of(place, headers, true, false, true);
        char said[SERVICE_TEXT_BYTES];
        memcpy(said, message->answer, sizeof said);
        memcpy(message->answer, "client: ", 8);
        service_put(message->answer + 8, (const uint8_t *)said,
                    (uint32_t)strnlen(said, sizeof said - 9));
    }
    answer(local, &key, place, message);
}

/* HTTP/2 has no port of its own: that of the sender is the name. */
static void read_message(service_reader *read, struct service_message *message,
                         struct service_bytes bytes, uint16_t source) {
    if (read == http2_read)
        snprintf(message->name, sizeof message->name, "%u", source);
    read(message, bytes);
}

void service_take(struct local_exchanges *local, const struct local_packet *place,
                  const struct headers *headers) {
    bool stream = headers->protocol == IP_TCP;
    uint16_t source = headers->source_port, destination = headers->destination_port;
    bool known = stream ? is_service_port(destination) : is_time_or_tunnel_port(destination);
    uint16_t port = known ? destination : source;
    service_reader *read = stream ? stream_reader(port) : datagram_reader(port);
    struct service_bytes bytes = {headers->payload, headers->payload_captured};
    struct service_message message = {.from_client = known, .step = STEP_NONE};
    read_message(read, &message, bytes, source);
    bool either = read == bgp_read || read == http2_read; /* end may say no */
    if (stream && !either && (message.step == STEP_ASKS) != known)
        return; /* bytes of a long answer or request that look like the other */
    bool file = read == tftp_read;
    if (message.step == STEP_ASKS) {
        if (file && destination != BOOT_FILES)
            return;
        struct exchange_key key = key_of(place, headers, true, stream, file);
        ask(local, &key, place, &message, stream ? headers->tcp.sequence : digest_of(bytes));
    } else if (message.step == STEP_ANSWERS && file) {
        refuse_file(local, place, headers, &message);
    } else if (message.step == STEP_ANSWERS) {
        struct exchange_key key = key_of(place, headers, false, stream, false);
        answer(local, &key, place, &message);
    }
}
