/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of all input files and the texts that the files hold about them. */
#ifndef WIRETALE_INTERFACE_LIST_H
#define WIRETALE_INTERFACE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/tracer_facts.h"

#define DROPS_UNKNOWN       UINT64_MAX
#define INTERFACE_TEXT_MAX  4096        /* bytes of one text with its NUL; a longer one is cut */
#define INTERFACE_TEXTS_MAX (32u << 20) /* of all texts; later ones are UTF8_CUT alone */

/* An input interface of an input file, as the file describes it. Strings belong to the list, are
 * valid UTF-8 (malformed bytes become U+FFFD), and are NULL if the file has none. Those that were
 * cut end in UTF8_CUT. */
struct interface {
    const char *file;          /* path or name, "-" for standard input */
    const char *format;        /* "pcap", "pcap-ns", "pcap-modified", "pcapng", ... */
    const char *compression;   /* "none", "gzip", "zstd", "lz4" */
    const char *name;          /* if_name */
    const char *filter;        /* if_filter, if it is text */
    const char *hardware;      /* shb_hardware, else if_hardware */
    const char *system;        /* shb_os, else if_os */
    const char *application;   /* shb_userappl */
    const char *comment;       /* opt_comment of the section and of the interface, joined by "; " */
    uint32_t file_index;       /* in the order the paths were given */
    int64_t first_ns, last_ns; /* of its packets, if `timed`; set when others follow */
    bool timed;
    uint32_t index; /* of the interface within the file, counted over its sections */
    uint16_t link_type;
    uint32_t snaplen;           /* bytes; 0 for no limit */
    int64_t time_resolution_ns; /* 1000 for µs; 0 if finer than 1 ns */
    uint64_t received;  /* packets, by pcapng's isb_ifrecv; DROPS_UNKNOWN if the file has none */
    uint64_t accepted;  /* isb_filteraccept */
    uint64_t delivered; /* isb_usrdeliv */
    uint64_t dropped_interface; /* isb_ifdrop */
    uint64_t dropped_kernel;    /* isb_osdrop */
    uint64_t comments;          /* packets of this interface that carry a comment */
    struct tracer_facts tracer;
    uint64_t tracer_offset; /* of the file, up to which its statistics are in `tracer` */
};

/* Returns the packets that passed the filter and were neither dropped by the kernel nor
 * delivered: the capturing program lost them. DROPS_UNKNOWN if the file lacks the counts. */
uint64_t interface_dropped_program(const struct interface *interface);

struct text_node;

/* Zeros are an empty list. Interfaces and texts belong to it and must not be freed by others. */
struct interface_list {
    struct interface **items; /* their addresses never change */
    size_t count, room;
    struct text_node *texts;
    size_t texts_size;
};

/* Returns a new interface, with all counts unknown, and sets its number; NULL without memory. */
struct interface *interface_list_add(struct interface_list *list, uint32_t *number);

/* Returns a copy that lives as long as the list; NULL if the text is empty, memory has run out,
 * or the bound on all texts is reached. */
const char *interface_list_text(struct interface_list *list, const char *bytes, size_t size);
/* `before; after`, where either may be NULL. */
const char *interface_list_join(struct interface_list *list, const char *before, const char *after);
/* Frees the interfaces and texts, so that no pointer to them may be used any more. */
void interface_list_free(struct interface_list *list);

#endif
