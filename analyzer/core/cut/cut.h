/* SPDX-License-Identifier: Apache-2.0 */
/* Copies chosen packets of captures into one pcapng file, or a classic pcap file (`wiretale cut`).
 *
 * The input is read in the order of merged_input_read(), twice if packets around the chosen ones
 * are taken. Interfaces keep their numbers, descriptions, time resolution and drop counts; those of
 * files that are read later follow. Decryption secrets and processes stay (format/kept_blocks.h),
 * unless the packets are anonymized; secrets are of no use without payload. Memory does not depend
 * on the size of the input. */
#ifndef WIRETALE_CUT_H
#define WIRETALE_CUT_H

#include "base/error.h"
#include "cut/choice.h"
#include "cut/pcapng_write.h"
#include "format/merged_input.h"

/* A packet with a comment. */
struct commented_frame {
    uint64_t file, frame;
};

/* Comments of packets, sorted by file and frame. */
struct cut_comments {
    const struct commented_frame *frames; /* `count` of them */
    size_t count;
    const char *const *strings; /* UTF-8, one for each */
    const size_t *sizes;        /* bytes of each string, at most COMMENT_SIZE_MAX */
};

struct cut_options {
    const char *const *paths;
    size_t path_count;
    int fd;             /* of the output */
    bool classic;       /* pcap, without head, comments, descriptions and drop counts */
    const void *head;   /* the section header and further blocks, as they are */
    size_t head_size;   /* bytes */
    bool headers_only;  /* without the bytes behind the transport header */
    const uint8_t *key; /* anonymizes with this key of ADDRESS_KEY_SIZE bytes; NULL: as they are */
    struct cut_comments comments;
    struct choice *choice;
};

enum cut_state {
    CUT_MORE,
    CUT_DONE,
    CUT_FAILED,   /* memory, input that cannot be opened, packets that a pcap file cannot hold:
                     `error` is set */
    CUT_UNWRITTEN /* cut_write_error() has the errno */
};

struct cut;

/* Opens the input. The options must stay valid until cut_close(). Returns NULL with `error` set. */
struct cut *cut_open(const struct cut_options *options, struct error *error);
void cut_close(struct cut *cut);

/* Copies some packets. If it returns CUT_MORE, the caller may look for signals and must call
 * again. */
enum cut_state cut_step(struct cut *cut, struct error *error);

/* Decryption secrets and process descriptions of the input, and whether they are in the output. */
struct cut_blocks {
    uint64_t secrets, processes;
    bool with_secrets, with_processes;
};
struct cut_blocks cut_blocks(const struct cut *cut);
int cut_write_error(const struct cut *cut);
uint64_t cut_packets_read(const struct cut *cut); /* of the last pass over the input */
uint64_t cut_packets_written(const struct cut *cut);
const struct merged_input *cut_input(const struct cut *cut); /* for its damage */

#endif
