/* SPDX-License-Identifier: Apache-2.0 */
#include "finish/publisher.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "directory/path.h"
#include "index/index_file.h"

/* The index is made first, because it is one of the plain bytes. */
bool publisher_complete(struct publisher *publisher, struct finished_file *file,
                        const _Atomic int64_t *until_ns) {
    uint64_t plain = file->bytes;
    if (path_ends_with(file->name, COMPRESSED))
        return true;
    if (!file->asked_for && !finished_file_index(file))
        return false;
    if (!publisher->compress)
        return true;
    if (!compress_file(file, until_ns))
        return false;
    publisher->plain_bytes += plain;
    publisher->compressed_bytes += file->bytes;
    return true;
}

/* Writes index and markers beside the name that the file has or shall have. The index of compressed
 * bytes can only be made before. Returns false with errno if a marker is missing. */
static bool prepare_beside(const struct publisher *publisher, struct finished_file *file) {
    if (!finished_file_write_index(file) && !path_ends_with(file->name, COMPRESSED))
        file->is_unfinished = true;
    bool is_marked =
        !file->is_unfinished || jobs_mark(file->directory_fd, file->name, MARKER_UNFINISHED);
    return (!publisher->jobs->command ||
            jobs_mark(file->directory_fd, file->name, MARKER_ON_CLOSE)) &&
           is_marked;
}

static void remove_beside(int directory_fd, const char *name) {
    index_file_remove(directory_fd, name);
    jobs_unmark(directory_fd, name, MARKER_UNFINISHED);
    jobs_unmark(directory_fd, name, MARKER_ON_CLOSE);
}

/* Index and markers are there before the name is, so that no kill can lose the work. If the name is
 * taken, those beside it belong to another file. */
static bool publish_marked(const struct publisher *publisher, struct finished_file *file) {
    char name[NAME_SIZE];
    struct stat other;
    bool is_free = fstatat(file->directory_fd, file->name, &other, AT_SYMLINK_NOFOLLOW) != 0;
    strcpy(name, file->name);
    bool is_marked = is_free && prepare_beside(publisher, file);
    int mark_reason = errno;
    bool published = publish_file(file, &publisher->replacement);
    int reason = errno;
    bool is_other = strcmp(name, file->name) != 0;
    if (is_free && (!published || is_other))
        remove_beside(file->directory_fd, name);
    if (published && (!is_free || is_other)) {
        is_marked = prepare_beside(publisher, file);
        mark_reason = errno;
    }
    if (published && !is_marked)
        log_warning("cannot make a marker of %s: %s; if this run is killed, the next start does "
                    "not know what is still to be done to it",
                    file->name, strerror(mark_reason));
    errno = reason;
    return published;
}

/* Renames the file; in a sealed directory the keeper's process does, and there is no marker. A file
 * that -w names has none either: a later start with that name is refused, or replaces the file. */
bool publisher_publish(const struct publisher *publisher, struct finished_file *file) {
    if (publisher->keeper)
        return keeper_publish(publisher->keeper, file);
    return file->asked_for ? publish_file(file, &publisher->replacement)
                           : publish_marked(publisher, file);
}

void publisher_withdraw(const struct finished_file *file) {
    unlinkat(file->directory_fd, file->name, 0);
    remove_beside(file->directory_fd, file->name);
}
