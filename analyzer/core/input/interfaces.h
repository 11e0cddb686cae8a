/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of all files of a set and the texts that the files say of them. */
#ifndef WIRETALE_INTERFACE_LIST_H
#define WIRETALE_INTERFACE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DROPS_UNKNOWN       UINT64_MAX
#define INTERFACE_TEXT_MAX  4096        /* bytes of one text with its NUL */
#define INTERFACE_TEXTS_MAX (32u << 20) /* of all texts; later ones are dropped (NULL) */

/* An input interface of an input file: what the file says of it. Strings are owned by the set,
 * UTF-8 made valid (an attacker's bytes become U+FFFD), and NULL where the file says nothing. */
struct interface {
    const char *file;        /* path as given, "-" for standard input */
    const char *format;      /* "pcap", "pcap-ns", "pcap-modified", "pcapng", ... */
    const char *compression; /* "none", "gzip", "zstd", "lz4" */
    const char *name;        /* if_name */
    const char *description; /* if_description */
    const char *filter;      /* if_filter, where it is text */
    const char *hardware;    /* shb_hardware, else if_hardware */
    const char *system;      /* shb_os, else if_os */
    const char *application; /* shb_userappl */
    const char *comment;     /* opt_comment of the section, then of the interface, joined by "; " */
    uint32_t file_index;     /* in the order the paths were given */
    uint32_t index;          /* of the interface within the file, counted over its sections */
    uint16_t link_type;
    uint32_t snaplen;           /* 0: no limit */
    int64_t time_resolution_ns; /* 1000 for µs; 0 where finer than 1 ns */
    int64_t speed_bps;          /* if_speed, 0 unknown */
    uint64_t received;          /* pcapng statistics isb_ifrecv; DROPS_UNKNOWN where not told */
    uint64_t accepted;          /* isb_filteraccept */
    uint64_t delivered;         /* isb_usrdeliv */
    uint64_t dropped_interface; /* isb_ifdrop */
    uint64_t dropped_kernel;    /* isb_osdrop */
    uint64_t comments;          /* packets of this interface that carry a comment */
};

/* Packets that passed the filter and were neither dropped by the kernel nor delivered: lost by the
 * capturing program. DROPS_UNKNOWN where not told. */
uint64_t interface_dropped_program(const struct interface *interface);

struct text_node;

struct interface_list {
    struct interface **items; /* their addresses never change */
    size_t count, room;
    struct text_node *texts;
    size_t texts_size;
};

/* A new interface with nothing told and its number, or NULL without memory. */
struct interface *interface_list_add(struct interface_list *list, uint32_t *number);

/* A copy of the text that lives as long as the list; NULL for an empty text, without memory, or
 * when the bound on all texts is reached. */
const char *interface_list_text(struct interface_list *list, const char *bytes, size_t size);
/* `before; after`, where either may be NULL. */
const char *interface_list_join(struct interface_list *list, const char *before, const char *after);
void interface_list_free(struct interface_list *list);

#endif
