/* SPDX-License-Identifier: Apache-2.0 */
/* A file or pipe whose bytes blocks contain in place of the pattern. Its checksum is BLAKE2b-256
 * (RFC 7693), as `b2sum -l 256 FILE` prints it. */
#ifndef WIRETALE_CONTENT_H
#define WIRETALE_CONTENT_H

#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "transfer/folder_room.h"

#define CONTENT_DIGEST_HEX 65

/* Destination of received files. */
struct content_target {
    const char *folder; /* directory; NULL: bytes are only hashed */
    bool to_stdout;
    bool overwrite; /* replace a regular file with this name */
    struct folder_room *room;
};

struct content {
    bool is_used;
    const struct content_target *target; /* of a receiver; must outlive this */
    int fd;                              /* of the file; -1: none */
    int folder;                          /* directory that receives the file; -1: none */
    uint64_t left;                       /* bytes of a regular file that are not read yet */
    bool left_known;                     /* false for pipes */
    uint64_t bytes;                      /* read or received so far */
    uint64_t next;                       /* offset that continues the order */
    bool in_order;     /* so far, so `digest` is valid without reading the file again */
    _Atomic int error; /* errno of the first failed read or write; 0: none */
    char name[241], temporary[260];
    crypto_generichash_state digest;
    char own[CONTENT_DIGEST_HEX], peer[CONTENT_DIGEST_HEX]; /* checksums; "": unknown */
    _Atomic bool works; /* while the file is hashed, flushed and named, which may take minutes */
    bool kept;          /* the file has its name */
    bool has_settled, has_room; /* has_room: it counts in target->room */
    uint64_t room_bytes;        /* taken of it: none after an error, unlike `bytes` */
};

/* Sender: opens `path`; "-" is standard input. Returns false with `error` set if that fails. */
bool content_open(struct content *content, const char *path, char *error, size_t room);
/* Sender: returns the number of bytes read, which is less than `count` only at the end. */
size_t content_read(struct content *content, uint8_t *bytes, size_t count);

/* Receiver: prepares to write `name` into the target. Returns false with `error` set if the name
 * leaves the directory or is taken there. */
bool content_receive(struct content *content, const struct content_target *target, const char *name,
                     uint32_t run, char *error, size_t room);
/* Receiver: removes temporary files of this user that no running receiver has locked. */
void content_sweep(const char *folder);
/* Receiver: takes bytes of the file, each once. Errors are in content->error. */
void content_take(struct content *content, uint64_t offset, const uint8_t *bytes, size_t count);

/* Computes the own checksum, unless it cannot be known. */
void content_finish_sum(struct content *content);
/* Receiver: names the file if it is `complete` and the checksums agree, else removes it. Afterwards
 * the file and its directory are on the disk, or content->error is set. */
void content_settle(struct content *content, bool complete);
/* Closes and removes all that is left. */
void content_end(struct content *content);

#endif
