/* SPDX-License-Identifier: Apache-2.0 */
#include "find/query.h"

#include <arpa/inet.h>
#include <pcap.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/options.h"
#include "common/units.h"
#include "find/when.h"

static bool add_host(void *into, const char *text, const char **expected) {
    struct query *query = into;
    char address[INET6_ADDRSTRLEN + 1] = "";
    size_t length = strcspn(text, "/");
    *expected = "an address, or a net as in 192.0.2.0/24";
    if (query->host_count == HOSTS_MAX || length >= sizeof address)
        return false;
    struct host *host = &query->hosts[query->host_count];
    memcpy(address, text, length);
    if (inet_pton(AF_INET, address, host->address.bytes) == 1)
        host->address.size = ADDRESS_IPV4;
    else if (inet_pton(AF_INET6, address, host->address.bytes) == 1)
        host->address.size = ADDRESS_IPV6;
    else
        return false;
    uint64_t prefix = 8u * host->address.size;
    if (text[length] && (!units_parse_whole(text + length + 1, UNIT_COUNT, "", &prefix) ||
                         prefix > 8u * host->address.size))
        return false;
    host->prefix = (unsigned)prefix;
    query->host_count++;
    return true;
}

static bool add_port(void *into, const char *text, const char **expected) {
    struct query *query = into;
    uint16_t port;
    *expected = "a port, 1 to 65535";
    if (query->port_count == PORTS_MAX || !units_parse_port(text, &port))
        return false;
    query->ports[query->port_count++] =
        (struct address){.size = ADDRESS_PORT, .bytes = {(uint8_t)(port >> 8), (uint8_t)port}};
    return true;
}

static bool set_time(void *into, const char *text, const char **expected) {
    *expected = "a time as in 2026-11-30T12:00:00 (UTC), or seconds since the epoch";
    return when_parse(text, into);
}

/* Its rows name the functions, words and members above. */
#include "find/option_table.h"

void query_read(struct query *query, int count, char **arguments) {
    *query = (struct query){.start_ns = INT64_MIN, .end_ns = INT64_MAX};
    query->folder_count =
        options_read(&command, query, count, arguments, query->folders, FOLDERS_MAX);
    if (!query->folder_count)
        fail(EXIT_USAGE, "expected a folder; see `%s --help`", program_name());
    if (query->start_ns >= query->end_ns)
        fail(EXIT_USAGE, "--start is not before --end");
    if (query->json && query->output && !strcmp(query->output, "-"))
        fail(EXIT_USAGE, "--json and -o - both write to standard output");
}

/* Filters are compiled for each link type; libpcap calls some types by other numbers. */
static int dlt_of(uint16_t link_type) {
    enum { LINKTYPE_RAW = 101, LINKTYPE_PPP_HDLC = 50, LINKTYPE_LOOP = 108 };
    switch (link_type) {
    case LINKTYPE_RAW: return DLT_RAW;
    case LINKTYPE_LOOP: return DLT_LOOP;
    case LINKTYPE_PPP_HDLC: return DLT_PPP_SERIAL;
    default: return link_type;
    }
}

struct compiled {
    struct compiled *next;
    uint16_t link_type;
    bool fits;
    struct bpf_program program;
};

static bool compile(struct compiled *compiled, const char *filter, char *reason, size_t size) {
    pcap_t *handle = pcap_open_dead(dlt_of(compiled->link_type), WINDOW_MOST);
    if (!handle)
        fail(EXIT_IO, "out of memory");
    compiled->fits = !pcap_compile(handle, &compiled->program, filter, 1, PCAP_NETMASK_UNKNOWN);
    if (!compiled->fits)
        strncpy(reason, pcap_geterr(handle), size - 1);
    pcap_close(handle);
    return compiled->fits;
}

void query_check_filter(const struct query *query) {
    char reason[PCAP_ERRBUF_SIZE] = "";
    struct compiled ethernet = {.link_type = 1}, cooked = {.link_type = 276};
    if (query->filter && !compile(&cooked, query->filter, reason, sizeof reason) &&
        !compile(&ethernet, query->filter, reason, sizeof reason))
        fail(EXIT_USAGE, "-f: %s: expected a capture filter, see pcap-filter(7)", reason);
    if (cooked.fits)
        pcap_freecode(&cooked.program);
    if (ethernet.fits)
        pcap_freecode(&ethernet.program);
}

/* A filter that does not fit a link type matches none of its packets. */
static bool filter_has(const char *filter, const struct record *packet) {
    static struct compiled *list;
    char reason[PCAP_ERRBUF_SIZE] = "";
    struct compiled *at = list;
    while (at && at->link_type != packet->link_type)
        at = at->next;
    if (!at) {
        at = calloc(1, sizeof *at);
        if (!at)
            fail(EXIT_IO, "out of memory");
        at->link_type = packet->link_type;
        at->next = list;
        list = at;
        if (!compile(at, filter, reason, sizeof reason))
            log_warning("-f: %s (link type %d)", reason, at->link_type);
    }
    struct pcap_pkthdr header = {.caplen = packet->captured, .len = packet->length};
    return at->fits && pcap_offline_filter(&at->program, &header, packet->data);
}

static bool is_of_host(const struct host *host, const struct address *address) {
    unsigned bytes = host->prefix / 8, bits = host->prefix % 8;
    return address->size == host->address.size &&
           !memcmp(address->bytes, host->address.bytes, bytes) &&
           (!bits || !((address->bytes[bytes] ^ host->address.bytes[bytes]) >> (8 - bits)));
}

static bool has_host(const struct host *host, const struct address *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_of_host(host, &list[i]))
            return true;
    return false;
}

static bool has_addresses(const struct query *query, const struct record *packet) {
    struct address list[ADDRESSES_MAX];
    size_t count = packet_addresses(packet->link_type, packet->data, packet->captured, list);
    for (size_t i = 0; i < query->host_count; i++)
        if (!has_host(&query->hosts[i], list, count))
            return false;
    for (size_t i = 0; i < query->port_count; i++) {
        struct host port = {query->ports[i], 8 * ADDRESS_PORT};
        if (!has_host(&port, list, count))
            return false;
    }
    return true;
}

bool query_has(const struct query *query, const struct record *packet) {
    return packet->time_ns >= query->start_ns && packet->time_ns < query->end_ns &&
           (!(query->host_count || query->port_count) || has_addresses(query, packet)) &&
           (!query->filter || filter_has(query->filter, packet));
}
