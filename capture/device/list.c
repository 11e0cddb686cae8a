/* SPDX-License-Identifier: Apache-2.0 */
/* Lists interfaces (--list) with the values that -i, -y and -j accept: number, link types and
 * sources of time stamps. libpcap knows link types only of an active handle, so each interface is
 * opened for a moment. If the privilege is missing, they are unknown: the text has no line for
 * them, JSON null. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/json.h"
#include "common/log.h"
#include "common/utf8.h"
#include "device/device.h"

struct listed {
    const pcap_if_t *interface;
    unsigned index;                   /* number that -i takes; 0: none */
    int *link_types, link_type_count; /* -1: unknown without the privilege */
    int *sources, source_count;
};

/* Opens the interface for a moment, since link types are known only of an active handle. */
static void query(struct listed *listed, const pcap_if_t *interface) {
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

/* libpcap allocates both lists, and only its functions may free them. */
static void free_query(struct listed *listed) {
    if (listed->link_types)
        pcap_free_datalinks(listed->link_types);
    if (listed->sources)
        pcap_free_tstamp_types(listed->sources);
}

/* Formats an IPv4 or IPv6 address. Returns false for other families, such as link-layer addresses.
 */
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
    utf8_put_printable(stdout, interface->name);
    if (interface->description) {
        fputs(" (", stdout);
        utf8_put_printable(stdout, interface->description);
        putchar(')');
    }
    printf(" [%s]\n", interface->flags & PCAP_IF_UP ? "up" : "down");
    for (const pcap_addr_t *at = interface->addresses; at; at = at->next)
        if (address_text(at->addr, address, sizeof address))
            printf("    address %s\n", address);
    for (int i = 0; i < listed->link_type_count; i++)
        printf("    link type %s%s\n", link_name(listed->link_types[i]), i ? "" : " (default)");
    for (int i = 0; i < listed->source_count; i++)
        printf("    time stamps %s\n", pcap_tstamp_type_val_to_name(listed->sources[i]));
}

/* Writes one interface as an object of the schema wiretale.interfaces/1. */
static void put_json(struct json *json, const struct listed *listed) {
    char address[INET6_ADDRSTRLEN];
    const pcap_if_t *interface = listed->interface;
    json_open(json, NULL, '{');
    json_count(json, "number", listed->index ? (int64_t)listed->index : -1);
    json_text(json, "name", interface->name);
    json_text(json, "description", interface->description);
    json_bool(json, "up", interface->flags & PCAP_IF_UP);
    json_bool(json, "loopback", interface->flags & PCAP_IF_LOOPBACK);
    json_open(json, "addresses", '[');
    for (const pcap_addr_t *at = interface->addresses; at; at = at->next)
        if (address_text(at->addr, address, sizeof address))
            json_text(json, NULL, address);
    json_close(json, ']');
    if (listed->link_type_count < 0) {
        json_text(json, "link_types", NULL);
    } else {
        json_open(json, "link_types", '[');
        for (int i = 0; i < listed->link_type_count; i++)
            json_text(json, NULL, link_name(listed->link_types[i]));
        json_close(json, ']');
    }
    json_open(json, "time_stamp_sources", '[');
    for (int i = 0; i < listed->source_count; i++)
        json_text(json, NULL, pcap_tstamp_type_val_to_name(listed->sources[i]));
    json_close(json, ']');
    json_close(json, '}');
}

/* Interfaces are queried one by one while they are printed, so that a slow driver does not delay
 * the others. */
int device_list(bool as_json) {
    char reason[PCAP_ERRBUF_SIZE];
    struct json json = {.out = stdout};
    pcap_if_t *all;
    if (pcap_findalldevs(&all, reason))
        fail(EXIT_MISSING, "cannot list interfaces: %s", reason);
    if (as_json) {
        json_open(&json, NULL, '{');
        json_text(&json, "schema", "wiretale.interfaces/1");
        json_open(&json, "interfaces", '[');
    }
    for (const pcap_if_t *at = all; at; at = at->next) {
        struct listed listed;
        query(&listed, at);
        if (as_json)
            put_json(&json, &listed);
        else
            print_text(&listed);
        free_query(&listed);
    }
    if (as_json) {
        json_close(&json, ']');
        json_close(&json, '}');
        putchar('\n');
    }
    pcap_freealldevs(all);
    return finish_output(stdout) ? EXIT_DONE : EXIT_IO;
}
