/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates packets and counts the references to a truth record: an original and its copy share
 * one. */
#include "packet/link_packet.h"

#include <stdlib.h>
#include <string.h>

/* As in the CSV of a truth file and in the summary. */
const char *const fate_names[FATES] = {
    [FATE_DELIVERED] = "delivered", [FATE_RANDOM] = "random",
    [FATE_GILBERT] = "gilbert",     [FATE_PERIODIC] = "periodic",
    [FATE_LISTED] = "listed",       [FATE_SPAN] = "span",
    [FATE_OUTAGE] = "outage",       [FATE_MTU] = "mtu",
    [FATE_QUEUE] = "queue",         [FATE_RED] = "red",
    [FATE_CODEL] = "codel",         [FATE_UNFINISHED] = "unfinished",
    [FATE_MEMORY] = "memory",       [FATE_SEND_ERROR] = "send_error",
    [FATE_MADE] = "made",           [FATE_PIE] = "pie",
};

struct link_packet *link_packet_new(const uint8_t *frame, uint32_t size) {
    struct link_packet *packet = malloc(sizeof *packet + size);
    if (!packet)
        return NULL;
    memset(packet, 0, sizeof *packet);
    packet->original = packet;
    packet->references = 1;
    packet->size = size;
    memcpy(packet->frame, frame, size);
    return packet;
}

/* The copy shares the record of the original, so both must go through link_packet_release(). */
struct link_packet *link_packet_copy(struct link_packet *packet) {
    struct link_packet *copy = link_packet_new(packet->frame, packet->size);
    if (!copy)
        return NULL;
    copy->original = packet->original;
    copy->arrival_ns = packet->arrival_ns;
    copy->ip_at = packet->ip_at;
    copy->link_bytes = packet->link_bytes;
    copy->original->references++;
    return copy;
}

struct link_packet *link_packet_release(struct link_packet *packet) {
    struct link_packet *original = packet->original;
    if (packet != original)
        free(packet);
    return --original->references ? NULL : original;
}
