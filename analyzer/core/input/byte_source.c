/* SPDX-License-Identifier: Apache-2.0 */
/* Plain files are read directly into the room of the caller, compressed ones through a buffer.
 * Reads begin at 16 kB and double, so that a file that is only probed costs little. A parked source
 * has no descriptor; its next read opens the file again and continues at the same byte. */
#include "input/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/portable.h"

#define COMPRESSED_BUFFER (128u << 10)
#define READ_MOST         (256u << 10)

/* Sets the error, `problem: why` or `problem` alone. */
static enum input_state fail(struct byte_source *source, const char *problem, const char *why) {
    snprintf(source->error, sizeof source->error, "%s%s%s", problem, why ? ": " : "",
             why ? why : "");
    return INPUT_FAILED;
}

/* Waits at most INPUT_WAIT_MS, so that the caller can handle signals and show progress. EINTR goes
 * to the caller, because a signal handler of Python runs only there. */
static enum input_state wait_for_data(const struct byte_source *source) {
    struct pollfd waited = {.fd = source->file, .events = POLLIN};
    int ready = poll(&waited, 1, INPUT_WAIT_MS);
    if (ready > 0)
        return INPUT_READY;
    if (ready == 0)
        return INPUT_WAITING;
    return errno == EINTR ? INPUT_INTERRUPTED : INPUT_READY; /* read() reports the error */
}

/* Opens a parked file where its bytes were left. Another file under its name is an error, because
 * its bytes would continue the first one. */
static enum input_state unpark(struct byte_source *source) {
    struct stat status;
    source->file = open(source->path, O_RDONLY | O_CLOEXEC);
    if (source->file < 0 && errno == EINTR)
        return INPUT_INTERRUPTED;
    if (source->file < 0 || fstat(source->file, &status) < 0)
        return fail(source, "could not be opened again", strerror(errno));
    if ((uint64_t)status.st_dev != source->device || status.st_ino != source->inode)
        return fail(source, "was replaced by another file while it was read", NULL);
    if (lseek(source->file, (off_t)source->bytes_read, SEEK_SET) < 0)
        return fail(source, "could not be read further", strerror(errno));
    return INPUT_READY;
}

/* Calls read(2) once. A pipe is polled first, so that a signal just before does not block the
 * read. */
static enum input_state read_some(struct byte_source *source, uint8_t *place, size_t room,
                                  size_t *got) {
    *got = 0;
    enum input_state state = source->file < 0  ? unpark(source)
                             : source->regular ? INPUT_READY
                                               : wait_for_data(source);
    if (state != INPUT_READY)
        return state;
    size_t size = room < source->read_size ? room : source->read_size;
    ssize_t count = read(source->file, place, size);
    if (count < 0 && errno == EINTR)
        return INPUT_INTERRUPTED;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return INPUT_WAITING;
    if (count < 0)
        return fail(source, "reading failed", strerror(errno));
    if (count == 0)
        return INPUT_ENDED;
    if (source->read_size < READ_MOST)
        source->read_size *= 2;
    *got = (size_t)count;
    source->bytes_read += *got;
    return INPUT_READY;
}

/* Reads the next compressed bytes. The end of the file is the end of the stream only at a boundary
 * of members or frames. */
static enum input_state fill_compressed(struct byte_source *source) {
    size_t got;
    enum input_state state = read_some(source, source->compressed, source->compressed_room, &got);
    source->compressed_cursor = source->compressed;
    source->compressed_size = got;
    if (state != INPUT_ENDED || source->codec_state == CODEC_BOUNDARY)
        return state;
    return fail(source, source->codec->name, "the compressed stream is truncated");
}

/* Runs one step. If the decoder filled the room it may hold more output, so no input is awaited
 * before the next step. */
static enum input_state decompress_some(struct byte_source *source, uint8_t *place, size_t room,
                                        size_t *got) {
    *got = 0;
    if (!source->compressed_size && !source->output_pending) {
        enum input_state state = fill_compressed(source);
        if (state != INPUT_READY)
            return state;
    }
    struct codec_buffers buffers = {source->compressed_cursor, source->compressed_size, place,
                                    room};
    const char *error = NULL;
    source->codec_state = source->codec->step(source->decoder, &buffers, &error);
    source->compressed_cursor = buffers.in;
    source->compressed_size = buffers.in_size;
    source->output_pending = !buffers.out_size && source->codec_state == CODEC_WITHIN;
    *got = (size_t)(buffers.out - place);
    return error ? fail(source, source->codec->name, error) : INPUT_READY;
}

enum input_state byte_source_read(struct byte_source *source, uint8_t *place, size_t room,
                                  size_t *got) {
    return source->codec ? decompress_some(source, place, room, got)
                         : read_some(source, place, room, got);
}

enum input_state byte_source_read_full(struct byte_source *source, uint8_t *place, size_t room,
                                       size_t *got) {
    enum input_state state;
    size_t more;
    *got = 0;
    do {
        state = byte_source_read(source, place + *got, room - *got, &more);
        *got += more;
    } while (state == INPUT_READY && *got < room);
    return state;
}

void byte_source_park(struct byte_source *source) {
    if (!source->regular || !source->owns_file || source->file < 0)
        return;
    close(source->file);
    source->file = -1;
}

/* Standard input is not closed and may be a file: then its size is known. Read-ahead by the kernel
 * is a hint, so its failure does not matter. */
enum input_state byte_source_open(struct byte_source *source, const char *path) {
    *source = (struct byte_source){.file = -1, .path = path, .read_size = INPUT_FIRST_READ};
    source->owns_file = strcmp(path, "-") != 0;
    source->file = source->owns_file ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (source->file < 0 && errno == EINTR)
        return INPUT_INTERRUPTED;
    if (source->file < 0)
        return fail(source, strerror(errno), NULL);
    struct stat status;
    if (fstat(source->file, &status) < 0)
        return fail(source, strerror(errno), NULL);
    if (S_ISDIR(status.st_mode))
        return fail(source, "is a folder, not a file", NULL);
    source->regular = S_ISREG(status.st_mode);
    if (!source->regular)
        return INPUT_READY;
    source->bytes_total = (uint64_t)status.st_size;
    source->device = status.st_dev;
    source->inode = status.st_ino;
    (void)posix_fadvise(source->file, 0, 0, POSIX_FADV_SEQUENTIAL);
    return INPUT_READY;
}

bool byte_source_detect(struct byte_source *source, const uint8_t *first, size_t size) {
    source->codec = codec_find(first, size);
    if (!source->codec)
        return true;
    size_t room = byte_source_size_within(source, source->bytes_total, COMPRESSED_BUFFER);
    source->light = codec_is_light(source->codec, first, size);
    source->decoder = source->codec->open();
    source->compressed_room = room > size ? room : size;
    source->compressed = malloc(source->compressed_room);
    if (!source->decoder || !source->compressed)
        return false;
    memcpy(source->compressed, first, size);
    source->compressed_cursor = source->compressed;
    source->compressed_size = size;
    source->codec_state = CODEC_WITHIN;
    return true;
}

void byte_source_close(struct byte_source *source) {
    if (source->decoder)
        source->codec->close(source->decoder);
    free(source->compressed);
    if (source->owns_file && source->file >= 0)
        close(source->file);
    *source = (struct byte_source){.file = -1};
}
