/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of all input files, the processes whose packets they captured, and the texts that
 * the files hold about them. */
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

/* A process of a capturing host, as a block of a section describes it, or an option of a packet
 * names it. It stays as it is, and lives as long as the list: flows refer to it. */
struct process {
    struct process *next;                  /* in the order of the input */
    struct process *older;                 /* of the section, with a similar id */
    const struct process_section *section; /* that has it */
    uint64_t start_ns;                     /* ns since the epoch; 0 if unknown */
    uint32_t id;                           /* the number that its kernel gave it */
    uint32_t number;                       /* from 0, in the order of the input */
    uint32_t block;                        /* number of its process block in a cut, or NO_BLOCK */
    char name[];                           /* valid UTF-8, "" if unknown */
};

#define NO_BLOCK            UINT32_MAX
#define PROCESS_NAME_MAX    256u        /* bytes of a name with its NUL; a longer one is cut */
#define PROCESSES_BYTES_MAX (64u << 20) /* of all processes; later ones are unknown */

/* The processes that packets of a section name by the number of their block, in that order. */
struct process_section {
    struct process_section *next;
    const struct process **blocks;
    size_t count, room;
};

struct processes {
    struct process *first, *last;
    struct process_section *sections;
    size_t bytes;
    uint32_t count;
};

struct text_node;
struct kept_blocks; /* format/kept_blocks.h */

/* Zeros are an empty list. Interfaces and texts belong to it and must not be freed by others. */
struct interface_list {
    struct interface **items; /* their addresses never change */
    size_t count, room;
    struct text_node *texts;
    size_t texts_size;
    struct processes processes;
    struct kept_blocks *kept; /* for blocks that a cut takes over; NULL without a cut */
};

/* Returns a new interface, with all counts unknown, and sets its number; NULL without memory. */
struct interface *interface_list_add(struct interface_list *list, uint32_t *number);

/* Returns a copy that lives as long as the list; NULL if the text is empty, memory has run out,
 * or the bound on all texts is reached. */
const char *interface_list_text(struct interface_list *list, const char *bytes, size_t size);
/* `before; after`, where either may be NULL. */
const char *interface_list_join(struct interface_list *list, const char *before, const char *after);

/* Adds a section for processes, or a process of one with a name of `size` bytes. They return NULL
 * without memory, or at the bound of all of them. */
struct process_section *processes_add_section(struct processes *processes);
struct process *processes_add(struct processes *processes, struct process_section *section,
                              uint32_t id, const char *name, size_t size);
/* Whether two packets have one process: its number in the kernel, and its name if both know it. */
bool process_is_same(const struct process *a, const struct process *b);

/* Frees the interfaces, processes and texts, so that no pointer to them may be used any more. */
void interface_list_free(struct interface_list *list);

#endif
