/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the ports that a capture stored packets of (struct packet_info), and the pairs of ports
 * that stored the same TCP packet. Names are noted in file order; each worker adds pairs of its
 * own, which are joined when all packets were processed. */
#ifndef WIRETALE_CAPTURE_PORTS_H
#define WIRETALE_CAPTURE_PORTS_H

#include "decode/headers.h"
#include "tcp/segment.h"

#define PORT_PAIRS_NAMED 2u /* one for each direction */
#define PORT_PAIRS_MOST                                                                            \
    16u /* of a shard of a cluster, whose pairs are summed with those of others */

struct capture_ports;

/* Returns NULL without memory. */
struct capture_ports *capture_ports_open(void);
/* `ports` may be NULL. */
void capture_ports_close(struct capture_ports *ports);

/* Returns whether capture_ports_note() would do nothing. Other threads may call it meanwhile. */
bool capture_ports_has(const struct capture_ports *ports, const struct headers *headers,
                       const struct packet_info *info);
/* Notes the link addresses of a packet at its port, info->port. */
void capture_ports_note(struct capture_ports *ports, const struct packet *packet,
                        const struct headers *headers, const struct packet_info *info);

/* Pairs of ports that stored the same packet; freed with free(). */
struct port_pairs;

/* Adds a packet with effect->second_port; `*list` is NULL for none yet. Returns false without
 * memory. */
bool port_pairs_add(struct port_pairs **list, const struct packet_info *packet,
                    const struct segment_effect *effect);
/* Adds the pairs of a list, which may be NULL. */
void capture_ports_join(struct capture_ports *ports, const struct port_pairs *list);

/* A port at which packets were stored, as far as it is known. */
struct port_of_pair {
    bool named;     /* `interface` is valid */
    bool addressed; /* link addresses are */
    uint32_t interface;
    uint8_t source[6], destination[6];
    uint8_t ttl_min, ttl_max;
};

/* Of the duplicates that an interface stored. */
struct second_ports {
    uint64_t packets;
    int64_t delay_ns_max; /* longest time between both ports, as far as it is known */
    unsigned count;       /* of `pairs`, the most frequent ones */
    struct {
        uint64_t packets;
        uint32_t ports_number; /* both ports: the same in all shards of captures */
        struct port_of_pair ports[2];
    } pairs[PORT_PAIRS_MOST];
};
/* Names `most` pairs, at most PORT_PAIRS_MOST. */
void capture_ports_sum(const struct capture_ports *ports, uint32_t interface, unsigned most,
                       struct second_ports *sum);

#endif
