/* SPDX-License-Identifier: Apache-2.0 */
/* --list: what could be captured on. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "device.h"
#include "json_text.h"
#include "say.h"

#define LIST_ROOM (1u << 20)

struct listed {
    const pcap_if_t *interface;
    unsigned index;                   /* what -i takes as a number; 0: none */
    int *link_types, link_type_count; /* -1: not known without the privilege */
    int *sources, source_count;
};

static void look_at(struct listed *listed, const pcap_if_t *interface) {
    char reason[PCAP_ERRBUF_SIZE];
    *listed = (struct listed){
        .interface = interface, .index = if_nametoindex(interface->name), .link_type_count = -1};
    pcap_t *handle = pcap_create(interface->name, reason);
    if (!handle)
        return;
    listed->source_count = pcap_list_tstamp_types(handle, &listed->sources);
    if (pcap_activate(handle) >= 0)
        listed->link_type_count = pcap_list_datalinks(handle, &listed->link_types);
    pcap_close(handle);
}

static void forget(struct listed *listed) {
    if (listed->link_types)
        pcap_free_datalinks(listed->link_types);
    if (listed->sources)
        pcap_free_tstamp_types(listed->sources);
}

static bool address_text(const struct sockaddr *address, char *text, socklen_t size) {
    if (!address)
        return false;
    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, size);
    if (address->sa_family == AF_INET6)
        return inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, size);
    return false;
}

static const char *link_name(int type) {
    const char *name = pcap_datalink_val_to_name(type);
    return name ? name : "?";
}

static void print_text(const struct listed *listed) {
    char address[INET6_ADDRSTRLEN];
    const pcap_if_t *interface = listed->interface;
    if (listed->index)
        printf("%u. ", listed->index);
    printf("%s%s%s%s", interface->name, interface->description ? " (" : "",
           interface->description ? interface->description : "", interface->description ? ")" : "");
    printf(" [%s]\n", interface->flags & PCAP_IF_UP ? "up" : "down");
    for (const pcap_addr_t *at = interface->addresses; at; at = at->next)
        if (address_text(at->addr, address, sizeof address))
            printf("    address %s\n", address);
    for (int i = 0; i < listed->link_type_count; i++)
        printf("    link type %s%s\n", link_name(listed->link_types[i]), i ? "" : " (default)");
    for (int i = 0; i < listed->source_count; i++)
        printf("    time stamps %s\n", pcap_tstamp_type_val_to_name(listed->sources[i]));
}

static void put_json(struct json_text *json, const struct listed *listed) {
    char address[INET6_ADDRSTRLEN];
    const pcap_if_t *interface = listed->interface;
    json_begin(json, NULL, '{');
    if (listed->index)
        json_number(json, "number", listed->index);
    else
        json_null(json, "number");
    json_string(json, "name", interface->name);
    if (interface->description)
        json_string(json, "description", interface->description);
    else
        json_null(json, "description");
    json_bool(json, "up", interface->flags & PCAP_IF_UP);
    json_bool(json, "loopback", interface->flags & PCAP_IF_LOOPBACK);
    json_begin(json, "addresses", '[');
    for (const pcap_addr_t *at = interface->addresses; at; at = at->next)
        if (address_text(at->addr, address, sizeof address))
            json_string(json, NULL, address);
    json_end(json, ']');
    if (listed->link_type_count < 0) {
        json_null(json, "link_types");
    } else {
        json_begin(json, "link_types", '[');
        for (int i = 0; i < listed->link_type_count; i++)
            json_string(json, NULL, link_name(listed->link_types[i]));
        json_end(json, ']');
    }
    json_begin(json, "time_stamp_sources", '[');
    for (int i = 0; i < listed->source_count; i++)
        json_string(json, NULL, pcap_tstamp_type_val_to_name(listed->sources[i]));
    json_end(json, ']');
    json_end(json, '}');
}

static void list_json(const pcap_if_t *all) {
    struct json_text json = {.text = malloc(LIST_ROOM), .room = LIST_ROOM - 1};
    if (!json.text)
        fail(EXIT_UNREADABLE, "out of memory");
    json_begin(&json, NULL, '{');
    json_string(&json, "schema", "wiretale.interfaces/1");
    json_begin(&json, "interfaces", '[');
    for (; all; all = all->next) {
        struct listed listed;
        look_at(&listed, all);
        put_json(&json, &listed);
        forget(&listed);
    }
    json_end(&json, ']');
    json_end(&json, '}');
    printf("%.*s\n", (int)json.used, json.text);
    free(json.text);
}

int device_list(bool json) {
    char reason[PCAP_ERRBUF_SIZE];
    pcap_if_t *all;
    if (pcap_findalldevs(&all, reason))
        fail(EXIT_MISSING, "interfaces cannot be listed: %s", reason);
    if (json) {
        list_json(all);
    } else {
        for (const pcap_if_t *at = all; at; at = at->next) {
            struct listed listed;
            look_at(&listed, at);
            print_text(&listed);
            forget(&listed);
        }
    }
    pcap_freealldevs(all);
    if (fflush(stdout))
        fail(EXIT_UNREADABLE, "the list cannot be written: %s", strerror(errno));
    return EXIT_DONE;
}
