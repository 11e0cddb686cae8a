/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a capture file in the byte order of this host: pcapng, or classic pcap with
 * microseconds or nanoseconds. The bytes are not trusted: each length is checked before it is used.
 */
#ifndef WIRETALE_CAPTURE_RECORDS_H
#define WIRETALE_CAPTURE_RECORDS_H

#include "index/window.h"

#define RECORD_INTERFACES_MAX 65536u
#define RECORD_UNNUMBERED     UINT32_MAX

enum record_kind {
    RECORD_END,     /* of the file, or a record that is not whole or damaged */
    RECORD_PACKET,  /* with a time */
    RECORD_SECTION, /* also the header of a classic file */
    RECORD_INTERFACE,
    RECORD_STATISTICS,
    RECORD_OTHER,
};

struct record {
    enum record_kind kind;
    uint64_t offset;
    uint32_t size;        /* bytes in the file */
    const uint8_t *bytes; /* all of them; valid until the next record */
    /* Of a packet: */
    uint32_t interface; /* number in its section */
    uint16_t link_type;
    int64_t time_ns;
    const uint8_t *data;
    uint32_t captured, length;
};

struct record_interface {
    uint64_t offset; /* of its description */
    uint16_t link_type;
    uint8_t resolution;
    int64_t offset_ns;
    uint32_t number; /* of the caller; RECORD_UNNUMBERED at first */
};

struct records {
    struct window window;
    uint64_t at; /* of the next record */
    bool classic;
    uint8_t classic_resolution;
    uint32_t sections, interface_count, interface_room; /* interfaces of the last section */
    struct record_interface *interfaces;
};

/* Returns false if the file cannot be read or is no such capture (errno EPROTO). */
bool records_open(struct records *records, int fd);
void records_close(struct records *records);

/* Reads the next record, and goes on behind it. */
enum record_kind records_next(struct records *records, struct record *record);

/* Returns the value of an option between `at` and `end`, or NULL. */
const uint8_t *record_option(const uint8_t *at, const uint8_t *end, unsigned code, size_t *size);

#endif
