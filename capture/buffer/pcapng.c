/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks are built in a growing buffer: each add function appends a field in the byte order of the
 * host, and end() writes the length in front and behind. An allocation that fails sets `failed`,
 * which the caller must check once at the end. */
#include "buffer/pcapng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "buffer/interfaces.h"
#include "buffer/record.h"

#ifndef WIRETALE_VERSION
#define WIRETALE_VERSION "unknown"
#endif

#define TIME_NANO 9 /* if_tsresol: 10^-9 s */
#define MAX_TEXT  8192u

void pcapng_free(struct pcapng_buffer *buffer) {
    free(buffer->data);
    *buffer = (struct pcapng_buffer){0};
}

/* Returns room for `more` bytes at the end of the buffer, or NULL if memory is short. The buffer
 * doubles, so that building a block is linear in its size. */
static uint8_t *extend(struct pcapng_buffer *buffer, size_t more) {
    if (buffer->fill + more > buffer->capacity) {
        size_t capacity = 2 * buffer->capacity + more + 1024;
        uint8_t *data = realloc(buffer->data, capacity);
        if (!data) {
            buffer->failed = true;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    buffer->fill += more;
    return buffer->data + buffer->fill - more;
}

static void add_u16(struct pcapng_buffer *buffer, uint16_t value) {
    uint8_t *to = extend(buffer, sizeof value);
    if (to)
        put_u16(to, value);
}

static void add_u32(struct pcapng_buffer *buffer, uint32_t value) {
    uint8_t *to = extend(buffer, sizeof value);
    if (to)
        put_u32(to, value);
}

/* Begins a block; end() must follow after its fields and options. */
static void begin(struct pcapng_buffer *buffer, enum block_type type) {
    buffer->start = buffer->fill;
    add_u32(buffer, type);
    add_u32(buffer, 0); /* length, set by end() */
}

/* Writes the length of the block at both of its ends, by which readers can go backwards. */
static void end(struct pcapng_buffer *buffer) {
    uint32_t length = (uint32_t)(buffer->fill - buffer->start) + 4;
    add_u32(buffer, length);
    if (!buffer->failed)
        put_u32(buffer->data + buffer->start + 4, length);
}

/* Appends an option: code, length and value, padded to 4 bytes. */
static void add_option(struct pcapng_buffer *buffer, enum block_option code, const void *value,
                       size_t length) {
    add_u16(buffer, (uint16_t)code);
    add_u16(buffer, (uint16_t)length);
    size_t padded = (length + 3) & ~(size_t)3;
    uint8_t *to = extend(buffer, padded);
    if (!to)
        return;
    memset(to, 0, padded);
    memcpy(to, value, length);
}

/* A text that is empty or NULL is left out; a longer one than an option can hold is cut. */
static void add_text(struct pcapng_buffer *buffer, enum block_option code, const char *text) {
    if (!text || !*text)
        return;
    size_t length = strlen(text);
    add_option(buffer, code, text, length < MAX_TEXT ? length : MAX_TEXT);
}

static void add_option_u64(struct pcapng_buffer *buffer, enum block_option code, uint64_t value) {
    add_option(buffer, code, &value, sizeof value);
}

/* Times in options have their high word first, as in packets. */
static void add_time(struct pcapng_buffer *buffer, enum block_option code, int64_t time_ns) {
    const uint32_t words[] = {(uint32_t)((uint64_t)time_ns >> 32), (uint32_t)time_ns};
    add_option(buffer, code, words, sizeof words);
}

/* opt_endofopt, which must follow the last option. */
static void end_options(struct pcapng_buffer *buffer) {
    add_u32(buffer, 0);
}

/* Adds name and release of the kernel; if `hardware` is an option, also processor type and host
 * name, which identify the capture point. */
static void add_system(struct pcapng_buffer *buffer, enum block_option os,
                       enum block_option hardware) {
    char text[2 * sizeof((struct utsname *)0)->machine + 8];
    struct utsname system;
    if (uname(&system))
        return;
    snprintf(text, sizeof text, "%s (%s)", system.machine, system.nodename);
    if (hardware)
        add_text(buffer, hardware, text);
    snprintf(text, sizeof text, "%s %s", system.sysname, system.release);
    add_text(buffer, os, text);
}

/* The length of the section is left unknown, since the file grows until it is finished. */
void pcapng_section(struct pcapng_buffer *buffer, const char *comment) {
    begin(buffer, BLOCK_SECTION);
    add_u32(buffer, PCAPNG_BYTE_ORDER_MAGIC);
    add_u16(buffer, 1); /* version 1.0 */
    add_u16(buffer, 0);
    add_u32(buffer, UINT32_MAX); /* length of the section: unknown */
    add_u32(buffer, UINT32_MAX);
    add_system(buffer, SHB_OS, SHB_HARDWARE);
    add_text(buffer, SHB_APPLICATION, PCAPNG_APPLICATION " " WIRETALE_VERSION);
    add_text(buffer, OPTION_COMMENT, comment);
    end_options(buffer);
    end(buffer);
}

/* The first byte is the kind of the filter: 0 for a libpcap string. */
static void add_filter(struct pcapng_buffer *buffer, const char *filter) {
    if (!filter || !*filter)
        return;
    char value[MAX_TEXT + 1] = {0};
    size_t length = strnlen(filter, MAX_TEXT);
    memcpy(value + 1, filter, length);
    add_option(buffer, IF_FILTER, value, length + 1);
}

/* Empty fields of the description are left out. The time resolution must be given, because the
 * default is microseconds. */
void pcapng_interface(struct pcapng_buffer *buffer, const struct description *description) {
    const uint8_t resolution = TIME_NANO;
    begin(buffer, BLOCK_INTERFACE);
    add_u16(buffer, (uint16_t)description->link_type);
    add_u16(buffer, 0);
    add_u32(buffer, description->snaplen);
    add_text(buffer, IF_NAME, description->name);
    if (description->has_mac)
        add_option(buffer, IF_MAC, description->mac, sizeof description->mac);
    if (description->speed_bps)
        add_option_u64(buffer, IF_SPEED, description->speed_bps);
    add_option(buffer, IF_TSRESOL, &resolution, sizeof resolution);
    add_filter(buffer, description->filter);
    add_system(buffer, IF_OS, 0);
    add_text(buffer, IF_HARDWARE, description->hardware);
    add_text(buffer, OPTION_COMMENT, description->comment);
    add_text(buffer, OPTION_COMMENT, description->facts);
    end_options(buffer);
    end(buffer);
}

/* Times, drops and delivered packets are options, so each is left out if it is unknown. A block
 * without them only carries a comment, such as a step of the clock. */
void pcapng_statistics(struct pcapng_buffer *buffer, const struct pcapng_statistics *statistics,
                       const char *comment, const char *facts) {
    begin(buffer, BLOCK_STATISTICS);
    add_u32(buffer, statistics->interface);
    add_u32(buffer, (uint32_t)((uint64_t)statistics->end_ns >> 32));
    add_u32(buffer, (uint32_t)statistics->end_ns);
    add_text(buffer, OPTION_COMMENT, comment);
    add_text(buffer, OPTION_COMMENT, facts);
    if (statistics->start_ns) {
        add_time(buffer, ISB_START, statistics->start_ns);
        add_time(buffer, ISB_END, statistics->end_ns);
        add_option_u64(buffer, ISB_DELIVERED, statistics->delivered);
    }
    if (statistics->drops_known) {
        if (statistics->unfiltered)
            add_option_u64(buffer, ISB_RECEIVED, statistics->accepted);
        add_option_u64(buffer, ISB_DROPPED, statistics->dropped_interface);
        add_option_u64(buffer, ISB_ACCEPTED, statistics->accepted);
        add_option_u64(buffer, ISB_DROPPED_BY_OS, statistics->dropped_kernel);
    }
    end_options(buffer);
    end(buffer);
}

/* The magic number with nanoseconds must be in the byte order of the host, which tells readers the
 * order of all other fields. */
void pcapng_classic_header(struct pcapng_buffer *buffer, uint32_t snaplen, uint32_t link_type) {
    add_u32(buffer, PCAP_MAGIC_NS);
    add_u16(buffer, 2); /* version 2.4 */
    add_u16(buffer, 4);
    add_u32(buffer, 0); /* time zone and accuracy: always 0 */
    add_u32(buffer, 0);
    add_u32(buffer, snaplen);
    add_u32(buffer, link_type);
}
