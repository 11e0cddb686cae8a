/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel tells each change of a link in a message of rtnetlink, which also has the number of
 * times that the carrier was lost: a link that is back before the message is read has lost it all
 * the same. Facts that only ethtool has are compared as the text that the file gets. */
#include "watch/link_watch.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

/* Asks for all links; the answers come like changes. */
static void ask_all(const struct link_watch *watch) {
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
    } question = {.header = {.nlmsg_len = sizeof question,
                             .nlmsg_type = RTM_GETLINK,
                             .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    (void)!send(watch->fd, &question, sizeof question, 0);
}

void link_watch_open(struct link_watch *watch, struct capture *capture, struct output *output) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    *watch = (struct link_watch){.capture = capture, .output = output};
    watch->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (watch->fd >= 0 && bind(watch->fd, (struct sockaddr *)&address, sizeof address)) {
        close(watch->fd);
        watch->fd = -1;
    }
    if (watch->fd >= 0)
        ask_all(watch);
}

static void add_note(struct link_watch *watch, uint32_t device, const char *sentence,
                     const char *facts) {
    struct note note = {.device = device, .time_ns = realtime_ns()};
    snprintf(note.sentence, sizeof note.sentence, "%s", sentence);
    snprintf(note.facts, sizeof note.facts, "%s", facts);
    log_warning("%s", note.sentence);
    notes_add(&watch->output->notes, &note);
}

/* `lost` is how often, of which the kernel counts all; `is_down` how it ended. */
static void note_carrier(struct link_watch *watch, uint32_t device, uint32_t lost, bool is_down) {
    struct link_seen *seen = &watch->seen[device];
    const char *name = watch->capture->devices[device].name;
    int64_t now = monotonic_ns(), down_ns = seen->has_carrier ? 0 : now - seen->lost_ns;
    char sentence[96], facts[160];
    seen->losses += lost;
    chunk_queue_wake(&watch->capture->queue);
    if (is_down) {
        seen->lost_ns = now;
        snprintf(sentence, sizeof sentence, "%.15s lost its carrier", name);
        snprintf(facts, sizeof facts, "wiretale.link/1 event=carrier-lost losses=%u", lost);
    } else {
        snprintf(sentence, sizeof sentence, "%.15s has its carrier again after %.3f s", name,
                 (double)down_ns / NS_PER_S);
        if (seen->has_carrier)
            snprintf(sentence, sizeof sentence, "%.15s lost its carrier for a moment", name);
        snprintf(facts, sizeof facts, "wiretale.link/1 event=carrier-back losses=%u down_ns=%lld",
                 lost, (long long)down_ns);
    }
    add_note(watch, device, sentence, facts);
}

/* Speed, duplex and offloads come from the driver, so they are asked for. */
static void note_changes(struct link_watch *watch, uint32_t device) {
    struct link_seen *seen = &watch->seen[device];
    const char *name = watch->capture->devices[device].name;
    struct description now = {.device = device};
    char sentence[96], facts[256];
    device_describe(name, &now);
    bool is_changed = *seen->described.facts && *now.facts && seen->has_carrier &&
                      strcmp(now.facts, seen->described.facts) != 0;
    if (is_changed) {
        snprintf(sentence, sizeof sentence, "%.15s has another speed, MTU or offload than before",
                 name);
        snprintf(facts, sizeof facts, "wiretale.link/1 event=changed%.200s", now.facts);
        add_note(watch, device, sentence, facts);
    }
    if (seen->has_carrier || !*seen->described.facts)
        seen->described = now;
}

/* A link as one message tells it. */
struct told {
    const char *name;
    bool has_carrier, counts_downs;
    uint32_t mtu, promiscuity, downs;
};

static struct told read_link(const struct nlmsghdr *header) {
    const struct ifinfomsg *link = NLMSG_DATA(header);
    struct told told = {.has_carrier = link->ifi_flags & IFF_LOWER_UP};
    int left = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof *link);
    for (const struct rtattr *attribute = IFLA_RTA(link); RTA_OK(attribute, left);
         attribute = RTA_NEXT(attribute, left)) {
        const char *value = RTA_DATA(attribute);
        size_t size = RTA_PAYLOAD(attribute);
        uint32_t number = 0;
        if (attribute->rta_type == IFLA_IFNAME && memchr(value, 0, size))
            told.name = value;
        if (size != sizeof number)
            continue;
        memcpy(&number, value, sizeof number);
        switch (attribute->rta_type) {
        case IFLA_MTU: told.mtu = number; break;
        case IFLA_PROMISCUITY: told.promiscuity = number; break;
        case IFLA_CARRIER_DOWN_COUNT:
            told.downs = number;
            told.counts_downs = true;
            break;
        }
    }
    return told;
}

/* An interface that was made again counts from 0. */
static void take_link(struct link_watch *watch, uint32_t device, const struct told *told) {
    struct link_seen *seen = &watch->seen[device];
    bool was_known = seen->is_known, had_carrier = seen->has_carrier;
    uint32_t lost = told->counts_downs && told->downs > seen->downs
                        ? told->downs - seen->downs
                        : had_carrier && !told->has_carrier;
    if (was_known && (lost || had_carrier != told->has_carrier))
        note_carrier(watch, device, lost, !told->has_carrier);
    if (!was_known && !told->has_carrier) {
        seen->lost_ns = monotonic_ns();
        log_warning("%s has no carrier", watch->capture->devices[device].name);
    }
    seen->is_known = true;
    seen->has_carrier = told->has_carrier;
    seen->is_promiscuous = told->promiscuity > 0;
    seen->mtu = told->mtu;
    seen->downs = told->downs;
    note_changes(watch, device);
}

/* A bridge reports its ports in messages of another family. They lack the counts, and a port that
 * leaves the bridge is not a link that is gone. */
void link_watch_take(struct link_watch *watch, const void *messages, size_t size) {
    const struct nlmsghdr *header = messages;
    for (unsigned left = (unsigned)size; NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
        bool is_link = header->nlmsg_type == RTM_NEWLINK || header->nlmsg_type == RTM_DELLINK;
        const struct ifinfomsg *link = NLMSG_DATA(header);
        if (!is_link || header->nlmsg_len < NLMSG_LENGTH(sizeof *link) ||
            link->ifi_family != AF_UNSPEC)
            continue;
        struct told told = read_link(header);
        for (uint32_t i = 0; told.name && i < watch->capture->device_count; i++) {
            if (strcmp(told.name, watch->capture->devices[i].name) != 0)
                continue;
            if (header->nlmsg_type == RTM_DELLINK)
                watch->seen[i] = (struct link_seen){.losses = watch->seen[i].losses};
            else
                take_link(watch, i, &told);
        }
    }
}

/* If messages were lost (ENOBUFS), all links are asked for again: the counts tell what happened. */
void link_watch_round(struct link_watch *watch) {
    _Alignas(struct nlmsghdr) char buffer[32768];
    while (watch->fd >= 0) {
        ssize_t size = recv(watch->fd, buffer, sizeof buffer, 0);
        if (size > 0)
            link_watch_take(watch, buffer, (size_t)size);
        else if (size < 0 && errno == ENOBUFS)
            ask_all(watch);
        else if (size >= 0 || errno != EINTR)
            break;
    }
}

void link_watch_tell(const struct link_watch *watch, struct status *status) {
    for (uint32_t i = 0; i < status->interface_count; i++) {
        const struct link_seen *link = &watch->seen[i];
        struct interface_status *interface = &status->interfaces[i];
        uint64_t speed_bps = link->described.speed_bps;
        interface->has_carrier = link->is_known ? link->has_carrier : -1;
        interface->carrier_losses = (int64_t)link->losses;
        interface->is_promiscuous = link->is_known ? link->is_promiscuous : -1;
        interface->mtu = link->is_known ? (int64_t)link->mtu : -1;
        interface->speed_bps = speed_bps ? (int64_t)speed_bps : -1;
    }
}
