/* SPDX-License-Identifier: Apache-2.0 */
/* Filters packets with libpcap's compiler and interpreter (pcap-filter(7)). Each link type needs a
 * program of its own, because offsets and even the valid primitives depend on it; it is compiled at
 * the first packet of that type, since files may mix types. Only one thread at a time calls this
 * after bpf_filter_open(). */
#include "pipeline/bpf_filter.h"

#include <pcap.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/interface_counts.h"

#define LINK_TYPES   65536u
#define ETHERNET     1
#define SNAPLEN_MOST 262144 /* libpcap's MAXIMUM_SNAPLEN: the filter cuts no packet */

struct bpf_filter {
    char *expression;
    /* By link type; NULL until the first packet of that type. */
    struct bpf_program *programs[LINK_TYPES];
    uint64_t refused;
};

/* Stands for a link type for which the expression cannot be compiled. */
static struct bpf_program refused_program;

/* Returns NULL with ERROR_USAGE if the expression is invalid for the link type, or with
 * ERROR_MEMORY. The netmask is unknown in a file, so `ip broadcast` cannot be compiled. */
static struct bpf_program *compile(const char *expression, uint16_t link_type,
                                   struct error *error) {
    struct bpf_program *program = calloc(1, sizeof *program);
    pcap_t *handle = program ? pcap_open_dead(link_type_dlt(link_type), SNAPLEN_MOST) : NULL;
    bool compiled = false;
    if (!handle)
        error_set(error, ERROR_MEMORY, "out of memory for the filter");
    else if (pcap_compile(handle, program, expression, 1, PCAP_NETMASK_UNKNOWN))
        error_set(error, ERROR_USAGE, "filter '%s': %s", expression, pcap_geterr(handle));
    else
        compiled = true;
    if (handle)
        pcap_close(handle);
    if (compiled)
        return program;
    free(program);
    return NULL;
}

struct bpf_filter *bpf_filter_open(const char *expression, struct error *error) {
    struct bpf_filter *filter = calloc(1, sizeof *filter);
    if (filter)
        filter->expression = strdup(expression);
    if (!filter || !filter->expression)
        error_set(error, ERROR_MEMORY, "out of memory for the filter");
    else
        filter->programs[ETHERNET] = compile(expression, ETHERNET, error);
    if (filter && filter->programs[ETHERNET])
        return filter;
    bpf_filter_close(filter);
    return NULL;
}

void bpf_filter_close(struct bpf_filter *filter) {
    if (!filter)
        return;
    for (size_t i = 0; i < LINK_TYPES; i++)
        if (filter->programs[i] && filter->programs[i] != &refused_program) {
            pcap_freecode(filter->programs[i]);
            free(filter->programs[i]);
        }
    free(filter->expression);
    free(filter);
}

/* A failure is remembered as &refused_program, so that it costs one compilation per link type. */
static struct bpf_program *program_for(struct bpf_filter *filter, uint16_t link_type) {
    struct error error;
    if (filter->programs[link_type])
        return filter->programs[link_type];
    struct bpf_program *program = compile(filter->expression, link_type, &error);
    return filter->programs[link_type] = program ? program : &refused_program;
}

bool bpf_filter_pass(struct bpf_filter *filter, const struct packet *packet) {
    struct bpf_program *program = program_for(filter, packet->link_type);
    struct pcap_pkthdr header = {.caplen = packet->captured, .len = packet->length};
    if (program == &refused_program) {
        filter->refused++;
        return false;
    }
    return pcap_offline_filter(program, &header, packet->data) > 0;
}

uint64_t bpf_filter_refused(const struct bpf_filter *filter) {
    return filter ? filter->refused : 0;
}
