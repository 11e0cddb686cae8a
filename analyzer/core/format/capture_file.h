/* SPDX-License-Identifier: Apache-2.0 */
/* One capture file: its format is detected by its first bytes, its packets are read in batches. */
#ifndef WIRETALE_CAPTURE_FILE_H
#define WIRETALE_CAPTURE_FILE_H

#include "base/error.h"
#include "base/packet.h"
#include "input/input_stream.h"
#include "input/interfaces.h"

#define INTERFACES_PER_FILE_MAX 65536u
#define DAMAGE_TEXT_MAX         256
#define RECORD_SIZE_MAX         (16u << 20) /* bytes of a pcapng block, as in libpcap */

/* Why reading a file ended early. */
struct damage {
    bool present;
    uint64_t offset; /* in the (decompressed) file, of the record that could not be read */
    uint64_t frame;  /* the last whole frame before it, 0 for none */
    char text[DAMAGE_TEXT_MAX];
};

struct capture_file;

/* A file format. A reader parses records that are complete in the window. */
struct capture_format {
    /* Returns whether a file that begins with these four bytes has this format. */
    bool (*match)(const uint8_t *first);
    /* Reads the file header and sets file->reader. Returns false with `error` set if it cannot. */
    bool (*begin)(struct capture_file *file, struct error *error);
    /* Returns packets that are complete in the window. If it returns 0, file->need bytes must be
     * available before the next call, unless file->ended. */
    size_t (*parse)(struct capture_file *file, struct packet *packets, size_t most);
    void (*close)(void *reader);
};

extern const struct capture_format pcap_format, pcapng_format; /* pcap_read.c, pcapng_read.c */

/* The section headers and interface descriptions of a pcapng file, if they are wanted. */
struct header_place {
    uint64_t frame;   /* frames before it */
    uint64_t offset;  /* in the decompressed file */
    uint64_t size;    /* bytes of the block */
    uint64_t section; /* 1: a section header, 0: an interface description */
};

struct header_blocks {
    struct header_place *places;
    size_t count, room;
    bool out_of_memory;
};

struct capture_file {
    const char *path;  /* lives as long as the file, as the others */
    const char *shown; /* in rows: the path, or the name that was given for it */
    const char *name;  /* the same as valid UTF-8, for messages */
    uint32_t index;
    struct interface_list *list;
    uint32_t *interfaces; /* numbers of the file's interfaces in the list, kept when the file is
                             reopened */
    uint32_t interface_count;
    size_t interface_room;
    struct input_stream stream;
    size_t window; /* bytes of the stream's window, 0 for INPUT_WINDOW */
    const struct capture_format *const *formats; /* formats that are tried, NULL last */
    const struct capture_format *format;
    void *reader;
    size_t need;
    uint64_t frame; /* of the last packet read */
    uint64_t bytes_read, bytes_total;
    uint64_t kept_until; /* offset up to which list->kept has its blocks, also if it is reopened */
    bool open, ended, regular;
    bool started; /* only the stream is open, and read ahead */
    bool shard;   /* (shard/split.h): packets have their origin (format/packet_origin.h) */
    struct damage damage;
    struct header_blocks *headers; /* where the reader of pcapng lists its blocks; NULL: nowhere */
};

/* Opens the file. Returns false with `error` set if it cannot be opened or is no capture. */
bool capture_file_open(struct capture_file *file, struct error *error);
/* Opens the stream alone, and lets threads read it ahead until capture_file_open() continues.
 * Returns whether they do; nothing has changed if they do not. */
bool capture_file_start(struct capture_file *file, struct read_ahead *threads);
/* Closes the file but keeps its interfaces and counts; capture_file_open() begins again. */
void capture_file_close(struct capture_file *file);
void capture_file_free(struct capture_file *file);

/* Reads packets in file order. Returns 0 at the end (file->ended), or if the caller must retry
 * (`*state` INPUT_WAITING or INPUT_INTERRUPTED). Packets are valid until the next call for this
 * file, unless it reads `on`: then packets that were returned before stay valid, and 0 may mean
 * that only another call can continue. */
size_t capture_file_read(struct capture_file *file, struct packet *packets, size_t most, bool on,
                         enum input_state *state);

uint64_t capture_file_bytes_read(const struct capture_file *file);

/* A capture format or compression that wiretale does not read. */
struct foreign_format {
    const char *name;    /* "a bzip2 file" */
    const char *command; /* a shell command that converts a file, whose name replaces %s */
    const char *magic;
    size_t size;
};

/* Returns the format of a file by its first bytes; NULL if it is unknown. */
const struct foreign_format *foreign_format_of(const uint8_t *bytes, size_t size);

/* For the format readers. */

/* Makes `need` bytes of a file header available. Returns false with `error` set if it cannot. */
bool capture_file_need_header(struct capture_file *file, size_t need, const char *header,
                              struct error *error);
/* Ends reading at the record at the cursor and returns false. The text continues "FILE: at byte N:
 * ". */
__attribute__((format(printf, 2, 3))) bool capture_file_set_damage(struct capture_file *file,
                                                                   const char *format, ...);
/* Returns the file's interface `index`, which is created if it is file->interface_count. NULL at
 * the bound or without memory. */
struct interface *capture_file_interface(struct capture_file *file, uint32_t index,
                                         uint32_t *number);
/* Returns the greatest packet of a link type in bytes, as in libpcap. */
uint32_t link_type_packet_max(uint16_t link_type);
/* Returns LINKTYPE_RAW for the DLT_RAW values of the BSDs that some files contain; others stay. */
uint16_t link_type_normalize(uint16_t link_type);

/* Lists the header block of `size` bytes at the cursor, if they are wanted. */
void capture_file_note_header(struct capture_file *file, uint32_t size, bool section);

/* Removes a frame check sequence of `fcs` bytes from both lengths. A packet whose lengths
 * contradict it stays as it is; one that the snap length cut before the FCS keeps its captured
 * bytes. */
static inline void packet_strip_fcs(struct packet *packet, uint32_t fcs) {
    if (packet->length < fcs || packet->captured > packet->length)
        return;
    packet->length -= fcs;
    if (packet->captured > packet->length)
        packet->captured = packet->length;
}

#endif
