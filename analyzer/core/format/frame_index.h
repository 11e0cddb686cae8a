/* SPDX-License-Identifier: Apache-2.0 */
/* Where the frames of a capture file are, so that any of them can be read alone.
 *
 * The format readers read the file once; between two calls the position in the stream and the
 * number of frames are noted. A reader of frames starts at a checkpoint and walks over at most
 * `every` frames. Section headers and interface descriptions of pcapng are listed too, because a
 * packet block cannot be read without them. */
#ifndef WIRETALE_FRAME_INDEX_H
#define WIRETALE_FRAME_INDEX_H

#include "format/capture_file.h"

/* The first record after `frame` frames begins at `offset` of the decompressed file. */
struct checkpoint {
    uint64_t frame, offset;
};

struct frame_index {
    struct checkpoint *checkpoints;
    size_t count, room;
    struct header_blocks headers;
    uint64_t frames;         /* of the file, up to damage if there is any */
    const char *compression; /* name of the codec, NULL if the file is plain */
};

/* Reads the file. Returns false with `error` set if it is no capture or memory is exhausted; the
 * index must be freed in each case. `every` > 0. */
bool frame_index_make(struct frame_index *index, const char *path, uint64_t every,
                      struct error *error);
void frame_index_free(struct frame_index *index);

#endif
