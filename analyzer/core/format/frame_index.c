/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of capture_file.c count the frames, so that their numbers are those of the tables. A
 * call asks for no more packets than are left up to the next checkpoint; journal blocks are frames
 * without packets, so a stretch can be a few frames longer than asked. */
#include "format/frame_index.h"

#include <stdlib.h>

#include "base/arena.h"
#include "format/merged_input.h"

#define AT_ONCE 256u /* packets */

static bool note_checkpoint(struct frame_index *index, const struct capture_file *file) {
    if (!list_grow(&index->checkpoints, &index->room, index->count + 1, sizeof *index->checkpoints))
        return false;
    index->checkpoints[index->count++] =
        (struct checkpoint){file->frame, input_stream_offset(&file->stream)};
    return true;
}

static bool note_frames(struct frame_index *index, struct capture_file *file, uint64_t every) {
    struct packet packets[AT_ONCE];
    uint64_t next = 0;
    while (!file->ended) {
        if (file->frame >= next) {
            if (!note_checkpoint(index, file))
                return false;
            next = file->frame + every;
        }
        uint64_t left = next - file->frame;
        enum input_state state;
        capture_file_read(file, packets, left < AT_ONCE ? (size_t)left : AT_ONCE, false, &state);
    }
    index->frames = file->frame;
    return !index->headers.out_of_memory;
}

bool frame_index_make(struct frame_index *index, const char *path, uint64_t every,
                      struct error *error) {
    struct interface_list interfaces = {0};
    struct capture_file file = {.path = path,
                                .shown = path,
                                .name = path,
                                .formats = capture_formats,
                                .list = &interfaces,
                                .headers = &index->headers};
    *index = (struct frame_index){0};
    bool made = capture_file_open(&file, error);
    if (made) {
        index->compression = file.stream.source.codec ? file.stream.source.codec->name : NULL;
        made = note_frames(index, &file, every) ||
               error_set(error, ERROR_MEMORY, "%s: out of memory", path);
    }
    capture_file_free(&file);
    interface_list_free(&interfaces);
    return made;
}

void frame_index_free(struct frame_index *index) {
    free(index->checkpoints);
    free(index->headers.places);
}
