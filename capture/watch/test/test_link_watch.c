/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of rtnetlink become losses of the carrier, also of one that is back before it is read;
 * messages of other links, of bridges about their ports, and cut ones, do not. */
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "common/test/check.h"
#include "watch/link_watch.h"

static struct settings settings;
static struct device devices[1] = {{.name = "wire0"}};
static struct capture capture = {.settings = &settings, .devices = devices, .device_count = 1};
static struct output output = {.capture = &capture};
static struct link_watch watch = {.fd = -1, .capture = &capture, .output = &output};

struct message {
    struct nlmsghdr header;
    struct ifinfomsg link;
    struct rtattr name_head;
    char name[8];
    struct rtattr downs_head;
    uint32_t downs;
};

static struct message message_of(const char *name, bool has_carrier, uint32_t downs) {
    struct message made = {.header = {.nlmsg_len = sizeof made, .nlmsg_type = RTM_NEWLINK},
                           .link = {.ifi_flags = has_carrier ? IFF_LOWER_UP : 0},
                           .name_head = {RTA_LENGTH(sizeof made.name), IFLA_IFNAME},
                           .downs_head = {RTA_LENGTH(sizeof downs), IFLA_CARRIER_DOWN_COUNT},
                           .downs = downs};
    strcpy(made.name, name);
    return made;
}

static void take(const char *name, bool has_carrier, uint32_t downs) {
    struct message made = message_of(name, has_carrier, downs);
    link_watch_take(&watch, &made, sizeof made);
}

/* Checks the facts of the only note. */
static void check_note(const char *facts) {
    struct note notes[NOTES_WAITING];
    CHECK_INT(notes_take(&output.notes, notes), 1);
    CHECK(strstr(notes[0].facts, facts));
}

int main(void) {
    struct note none[NOTES_WAITING];
    CHECK(chunk_queue_open(&capture.queue, 0, 1));
    notes_open(&output.notes);
    take("other0", false, 9);
    CHECK(!watch.seen[0].is_known);
    take("wire0", true, 3);
    CHECK(watch.seen[0].has_carrier);
    CHECK_INT(notes_take(&output.notes, none), 0);
    take("wire0", false, 4);
    check_note("event=carrier-lost losses=1");
    take("wire0", true, 4);
    check_note("event=carrier-back losses=0 down_ns=");
    take("wire0", true, 6); /* twice meanwhile */
    check_note("event=carrier-back losses=2 down_ns=0");
    CHECK_INT(watch.seen[0].losses, 3);
    struct message whole = message_of("wire0", false, 7);
    for (size_t size = 0; size < sizeof whole; size++)
        link_watch_take(&watch, &whole, size);
    CHECK_INT(watch.seen[0].losses, 3);
    struct message of_bridge = message_of("wire0", true, 0); /* a port of it, without its counts */
    of_bridge.link.ifi_family = AF_BRIDGE;
    for (unsigned i = 0; i < 2; i++, of_bridge.header.nlmsg_type = RTM_DELLINK) {
        link_watch_take(&watch, &of_bridge, sizeof of_bridge);
        CHECK(watch.seen[0].is_known);
        take("wire0", true, 6);
        CHECK_INT(watch.seen[0].losses, 3);
    }
    struct message deleted = whole;
    deleted.header.nlmsg_type = RTM_DELLINK;
    link_watch_take(&watch, &deleted, sizeof deleted);
    CHECK(!watch.seen[0].is_known);
    CHECK_INT(watch.seen[0].losses, 3);
    CHECK_INT(notes_take(&output.notes, none), 0);
    return 0;
}
