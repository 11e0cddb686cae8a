/* SPDX-License-Identifier: Apache-2.0 */
/* What the protocols of local/ and this folder share: a packet, an exchange that may be answered,
 * and who has which address. */
#ifndef WIRETALE_EXCHANGE_H
#define WIRETALE_EXCHANGE_H

#include <string.h>

#include "base/vocabulary.h"
#include "decode/headers.h"
#include "exchange/keyed_list.h"
#include "rows/row_sink.h"

/* The exchanges and hosts of all interfaces, and their bounds. */
#define MAX_LOCAL_ROWS  1000000u   /* rows of exchanges */
#define LOCAL_OPEN_MOST (1u << 16) /* exchanges that are kept at once, the latest of their ends */
#define GROUPS_MOST     (1u << 14) /* multicast groups */
#define ANNOUNCERS_MOST (1u << 12) /* routers and ports that announce themselves */
#define NEIGHBORS_MOST  (1u << 16) /* addresses with their MAC addresses */

struct local_exchanges {
    struct row_sink *sink;
    struct keyed_list exchanges;  /* struct local_exchange */
    struct keyed_list neighbors;  /* struct neighbor */
    struct keyed_list groups;     /* struct group */
    struct keyed_list announcers; /* struct announcer */
    uint64_t rows;                /* of exchanges */
    uint64_t replaced;            /* exchanges that were given up for newer ones */
    bool out_of_memory;
};

#define MAC_BYTES  6u
#define HOST_BYTES 63u /* of a host name (RFC 1035 section 2.3.4) */

/* A packet as the functions below take it. */
struct local_packet {
    int64_t time_ns; /* TIME_UNKNOWN without a time */
    uint64_t frame;
    uint64_t path; /* a digest of its encapsulations: addresses of two VLANs are of two hosts */
    uint32_t interface;
    uint16_t vlan; /* id of the innermost tag, 0 without one */
};

/* Who asks whom. All bytes are set: they are compared. */
struct exchange_key {
    uint64_t path;
    uint8_t client[16], server[16]; /* IPv4 in the first 4 bytes, the rest 0 */
    uint32_t interface;
    uint16_t kind;    /* enum word: exchanges.kind */
    uint16_t version; /* of IP */
    uint64_t id;      /* RADIUS, SIP: one of several requests at once */
};

struct local_exchange {
    struct exchange_key key;
    int64_t asked_ns, last_ns, answered_ns; /* TIME_UNKNOWN without a time */
    uint64_t asked_frame, answered_frame;   /* answered_frame: 0 without an answer */
    uint32_t attempts;
    bool settled;             /* its row was added */
    uint8_t mac[MAC_BYTES];   /* that answered; 0 if it is not known */
    uint8_t asker[MAC_BYTES]; /* DAD: who wants the address */
    bool begun;               /* SIP: a provisional response came */
    bool unasked;             /* its answer needed no request: nobody waited */
    /* Of DHCP. */
    uint8_t address[4], server[4]; /* the client's address, and who answered; 0 if not known */
    uint8_t chosen[4];             /* the server that its request names; 0 without one */
    bool contested;                /* another server refused it, so that its answer may follow */
    /* Of DHCP, RADIUS and SIP. */
    uint8_t host_length;
    uint8_t host[HOST_BYTES]; /* name of the client, user or target; host_length bytes */
    uint32_t id;              /* of the latest request */
    uint32_t request_bytes;   /* of RADIUS: payload of the datagram */
    const char *type;         /* static; NULL of other protocols */
};

/* A request: begins an exchange, or repeats its request. Returns it, NULL without memory. */
struct local_exchange *exchange_ask(struct local_exchanges *local, const struct exchange_key *key,
                                    const struct local_packet *packet);
/* An answer. Returns the exchange that it is for, also if it was answered before; NULL without
 * one. `mac` may be 0. */
struct local_exchange *exchange_answer(struct local_exchanges *local,
                                       const struct exchange_key *key,
                                       const struct local_packet *packet, const uint8_t *mac);
/* Adds the row of an exchange that waits. `packet` is the answer, NULL if it was not captured;
 * `code` may be NULL. */
void exchange_settle(struct local_exchanges *local, struct local_exchange *exchange,
                     const struct local_packet *packet, enum word outcome, const char *code);
/* Adds the row of an exchange without an answer, of whose interface this is the latest time. */
void exchange_give_up(struct local_exchanges *local, const struct local_exchange *exchange,
                      int64_t end_ns);

/* Sets its name, of which as much is kept as fits. */
void exchange_put_name(struct local_exchange *exchange, const uint8_t *bytes, uint32_t length);
/* Gives up an exchange that waits, if its latest request had another id. */
void exchange_renew(struct local_exchanges *local, const struct exchange_key *key, uint32_t id,
                    const struct local_packet *packet);
/* Forgets an exchange for another one with its key; it gets no row if it waits. */
void exchange_displace(struct local_exchange *exchange);
/* Notes a first answer that does not end the exchange. */
void exchange_note_answer(struct local_exchange *exchange, const struct local_packet *packet);

/* arp.c, nd.c, dhcp.c, radius.c, sip.c, sctp.c, eapol.c, wlan.c */
void arp_take(struct local_exchanges *local, const struct local_packet *place,
              const struct packet *packet, const struct headers *headers);
void nd_take(struct local_exchanges *local, const struct local_packet *place,
             const struct packet *packet, const struct headers *headers);

void dhcp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers);
void radius_take(struct local_exchanges *local, const struct local_packet *place,
                 const struct headers *headers);
void eapol_take(struct local_exchanges *local, const struct local_packet *place,
                const struct packet *packet, const struct headers *headers);
void wlan_take(struct local_exchanges *local, const struct local_packet *place,
               const struct packet *packet, const struct headers *headers);
void sip_take(struct local_exchanges *local, const struct local_packet *place,
              const struct headers *headers);
void sctp_take(struct local_exchanges *local, const struct local_packet *place,
               const struct headers *headers);

static inline bool is_mac(const uint8_t *mac) {
    static const uint8_t none[MAC_BYTES];
    return !(mac[0] & 1) && memcmp(mac, none, MAC_BYTES) != 0;
}

#endif
