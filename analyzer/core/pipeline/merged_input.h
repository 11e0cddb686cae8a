/* SPDX-License-Identifier: Apache-2.0 */
/* The input: one or many capture files, read as one sequence of packets in time order.
 *
 * Files are pcap and pcapng of every variant that libpcap reads, plain or compressed with gzip,
 * zstd or lz4, told by their first bytes and never by their names. Memory is bounded whatever the
 * files' sizes and numbers: a file is opened only when the merge reaches its first packet.
 */
#ifndef WIRETALE_MERGED_INPUT_H
#define WIRETALE_MERGED_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/packet.h"

#define DROPS_UNKNOWN   UINT64_MAX
#define DAMAGE_TEXT_MAX 256

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

/* What ended the reading of a file before its end. */
struct damage {
    bool present;
    uint64_t offset; /* in the (decompressed) file, of the record that could not be read */
    uint64_t frame;  /* the last whole frame before it, 0 for none */
    char text[DAMAGE_TEXT_MAX];
};

struct merged_input;

/* Opens `count` paths ("-" is standard input; folders are expanded by the caller). Every path must
 * open and begin as a capture, else NULL with error->kind ERROR_UNREADABLE naming file, offset
 * and what was expected. An empty or cut file header is unreadable; anything later is damage. */
struct merged_input *merged_input_open(const char *const *paths, size_t count, struct error *error);
void merged_input_close(struct merged_input *set);

/* Fills up to `most` packets in time order and returns their number, 0 at the end of the input.
 * Their data stays valid until the next call. Within a file the order is the file's own, whatever
 * its times (a backward step is the analysis's business); across files the earliest head is next,
 * the lower file_index first on a tie. Damage ends that file only. */
size_t merged_input_read(struct merged_input *set, struct packet *packets, size_t most);

/* Whether all was read. After 0 packets without it a signal came, or a pipe has nothing yet: the
 * caller has a turn and reads on. */
bool merged_input_ended(const struct merged_input *set);

/* Interfaces appear as their blocks are read; their number only grows. */
size_t merged_input_interfaces(const struct merged_input *set);
const struct interface *merged_input_interface(const struct merged_input *set, size_t index);

size_t merged_input_files(const struct merged_input *set);
const char *merged_input_file(const struct merged_input *set, size_t file_index);
const struct damage *merged_input_damage(const struct merged_input *set, size_t file_index);

/* Bytes of the files as they lie on disk (compressed): read so far, and in all (0 when unknown). */
uint64_t merged_input_bytes_read(const struct merged_input *set);
uint64_t merged_input_bytes_total(const struct merged_input *set);

#endif
