/* SPDX-License-Identifier: Apache-2.0 */
/* An index is written without a temporary name: one whose header is missing is none. Its bytes are
 * not trusted, because its folder may belong to another user; each number is checked where it is
 * used. */
#include "index/index_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"

#define KEYS_AT_ONCE 1024u

static bool name_of(const char *name, char own[NAME_MAX + 1]) {
    if (snprintf(own, NAME_MAX + 1, ".%s" INDEX_SUFFIX, name) <= NAME_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

static bool write_at(int fd, const void *bytes, size_t size, uint64_t at) {
    for (size_t done = 0; done < size;) {
        ssize_t more = pwrite(fd, (const uint8_t *)bytes + done, size - done, (off_t)(at + done));
        if (more < 0 && errno != EINTR)
            return false;
        done += more > 0 ? (size_t)more : 0;
    }
    return true;
}

uint64_t index_header_sum(const struct index_header *header) {
    const uint8_t *bytes = (const uint8_t *)header;
    uint64_t sum = 0;
    for (size_t i = 0; i < offsetof(struct index_header, sum); i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ sum >> 29;
    return sum;
}

/* The body is on the disk before the header is written, so that no loss of power leaves an index
 * with zeros in place of keys. */
static bool write_parts(int fd, struct file_index *index) {
    struct index_header *header = &index->header;
    header->sum = index_header_sum(header);
    return write_at(fd, index->body, index->body_size, sizeof *header) && !fdatasync(fd) &&
           write_at(fd, header, sizeof *header, 0);
}

/* Another file may have the same name and size. */
static uint32_t change_of(const struct stat *of) {
    return (uint32_t)timespec_ns(of->st_mtim);
}

bool index_file_write(struct file_index *index, int directory_fd, const char *name,
                      const struct stat *of) {
    char own[NAME_MAX + 1];
    if (!name_of(name, own))
        return false;
    index->header.file_size = (uint64_t)of->st_size;
    index->header.changed = change_of(of);
    unlinkat(directory_fd, own, 0);
    int fd = openat(directory_fd, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    of->st_mode & 0666);
    if (fd < 0)
        return false;
    bool done = write_parts(fd, index);
    int reason = errno;
    close(fd);
    if (!done)
        unlinkat(directory_fd, own, 0);
    errno = reason;
    return done;
}

void index_file_remove(int directory_fd, const char *name) {
    char own[NAME_MAX + 1];
    if (name_of(name, own))
        unlinkat(directory_fd, own, 0);
}

static int is_index(const struct dirent *entry) {
    size_t length = strlen(entry->d_name), suffix = strlen(INDEX_SUFFIX);
    return *entry->d_name == '.' && length > suffix + 1 &&
           !strcmp(entry->d_name + length - suffix, INDEX_SUFFIX);
}

/* Only what begins as an index is removed. */
static bool is_orphan(int directory_fd, const char *own) {
    char name[NAME_MAX + 1], magic[sizeof INDEX_MAGIC] = "";
    struct stat of;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(own) - 1 - strlen(INDEX_SUFFIX)), own + 1);
    /* Not faccessat(), whose call the sandbox does not have. */
    if (!fstatat(directory_fd, name, &of, AT_SYMLINK_NOFOLLOW) || errno != ENOENT)
        return false;
    int fd = openat(directory_fd, own, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_ours = fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic &&
                   !memcmp(magic, INDEX_MAGIC, sizeof magic);
    if (fd >= 0)
        close(fd);
    return is_ours;
}

void index_file_remove_orphans(int directory_fd) {
    struct dirent **names;
    int count = scandirat(directory_fd, ".", &names, is_index, NULL);
    for (int i = 0; i < count; i++) {
        if (is_orphan(directory_fd, names[i]->d_name))
            unlinkat(directory_fd, names[i]->d_name, 0);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

static bool read_at(int fd, void *bytes, size_t size, uint64_t at) {
    for (size_t done = 0; done < size;) {
        ssize_t more = pread(fd, (uint8_t *)bytes + done, size - done, (off_t)(at + done));
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return false;
        done += (size_t)more;
    }
    return true;
}

/* Returns whether `count` members of `size` bytes are inside the index. */
static bool is_inside(const struct index_header *header, uint64_t at, uint64_t count, size_t size) {
    return at >= sizeof *header && at <= header->size && count <= (header->size - at) / size;
}

static bool is_valid(const struct index_file *index, const struct stat *of) {
    const struct index_header *header = &index->header;
    struct stat status;
    return !fstat(index->fd, &status) && S_ISREG(status.st_mode) &&
           !memcmp(header->magic, INDEX_MAGIC, sizeof header->magic) &&
           header->version == INDEX_VERSION && header->sum == index_header_sum(header) &&
           header->size == (uint64_t)status.st_size && header->file_size == (uint64_t)of->st_size &&
           header->changed == change_of(of) && header->places <= INDEX_PLACES_MAX &&
           header->blocks <= INDEX_BLOCKS_MAX && header->segments <= INDEX_SEGMENTS_MAX &&
           is_inside(header, header->places_at, header->places, sizeof(struct index_place)) &&
           is_inside(header, header->blocks_at, header->blocks, sizeof(struct index_block)) &&
           is_inside(header, header->segments_at, header->segments, sizeof(struct index_segment));
}

bool index_file_open(struct index_file *index, int directory_fd, const char *name,
                     const struct stat *of) {
    char own[NAME_MAX + 1];
    if (!name_of(name, own))
        return false;
    index->fd = openat(directory_fd, own, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (index->fd < 0)
        return false;
    if (read_at(index->fd, &index->header, sizeof index->header, 0) && is_valid(index, of))
        return true;
    index_file_close(index);
    return false;
}

void index_file_close(struct index_file *index) {
    if (index->fd >= 0)
        close(index->fd);
    index->fd = -1;
}

static void *read_table(const struct index_file *index, uint64_t at, size_t size) {
    void *table = calloc(1, size ? size : 1);
    if (table && read_at(index->fd, table, size, at))
        return table;
    free(table);
    return NULL;
}

struct index_place *index_file_places(const struct index_file *index) {
    return read_table(index, index->header.places_at,
                      index->header.places * sizeof(struct index_place));
}

/* Blocks must ascend. */
struct index_block *index_file_blocks(const struct index_file *index) {
    const struct index_header *header = &index->header;
    struct index_block *blocks =
        read_table(index, header->blocks_at, header->blocks * sizeof *blocks);
    for (uint32_t i = 0; blocks && i < header->blocks; i++)
        if (blocks[i].offset >= (i + 1 < header->blocks ? blocks[i + 1].offset : header->end)) {
            free(blocks);
            return NULL;
        }
    return blocks;
}

enum { KEY_MISSING = -1, KEY_UNREAD = -2 };

/* Searches among `count` keys from `low`. Returns the place of the key, or one of the above. */
static int64_t search_keys(const uint32_t *keys, uint32_t low, uint32_t count, uint32_t key) {
    for (uint32_t i = 0; i < count; i++)
        if (keys[i] == key)
            return low + i;
    return KEY_MISSING;
}

/* Hashes are spread evenly, so that most keys are among those around the place that their value
 * suggests; else they are searched by halves, until the keys that are left can be read at once. */
static int64_t find_key(const struct index_file *index, const struct index_segment *segment,
                        uint32_t key) {
    uint32_t low = 0, high = segment->keys, keys[KEYS_AT_ONCE];
    uint32_t middle = (uint32_t)((uint64_t)key * high >> (INDEX_KEY_BITS - segment->shift));
    if (high > KEYS_AT_ONCE) {
        uint32_t from = middle < KEYS_AT_ONCE / 2 ? 0 : middle - KEYS_AT_ONCE / 2;
        from = from > high - KEYS_AT_ONCE ? high - KEYS_AT_ONCE : from;
        if (!read_at(index->fd, keys, sizeof keys, segment->keys_at + from * sizeof *keys))
            return KEY_UNREAD;
        if (keys[0] <= key && key <= keys[KEYS_AT_ONCE - 1])
            return search_keys(keys, from, KEYS_AT_ONCE, key);
    }
    while (high - low > KEYS_AT_ONCE) {
        middle = low + (high - low) / 2;
        if (!read_at(index->fd, keys, sizeof *keys, segment->keys_at + middle * sizeof *keys))
            return KEY_UNREAD;
        if (*keys <= key)
            low = middle;
        else
            high = middle;
    }
    if (!read_at(index->fd, keys, (high - low) * sizeof *keys,
                 segment->keys_at + low * sizeof *keys))
        return KEY_UNREAD;
    return search_keys(keys, low, high - low, key);
}

/* Sets bits of the blocks that have the key. */
static bool read_postings(const struct index_file *index, const struct index_segment *segment,
                          int64_t place, uint8_t *bits) {
    uint32_t starts[2];
    if (!read_at(index->fd, starts, sizeof starts,
                 segment->starts_at + (uint64_t)place * sizeof *starts) ||
        starts[0] > starts[1] || starts[1] > segment->postings ||
        starts[1] - starts[0] > INDEX_SPAN_MAX)
        return false;
    size_t count = starts[1] - starts[0];
    uint16_t *postings = read_table(index, segment->postings_at + starts[0] * sizeof *postings,
                                    count * sizeof *postings);
    bool done = postings != NULL;
    for (size_t i = 0; i < count && done; i++) {
        uint32_t block = segment->first_block + postings[i];
        done = postings[i] < segment->blocks;
        if (done)
            bits[block / 8] |= (uint8_t)(1 << block % 8);
    }
    free(postings);
    return done;
}

static bool is_segment_valid(const struct index_header *header,
                             const struct index_segment *segment) {
    return segment->first_block <= header->blocks &&
           segment->blocks <= header->blocks - segment->first_block &&
           segment->shift < INDEX_KEY_BITS && segment->keys <= INDEX_KEYS_MAX &&
           (!segment->keys || (is_inside(header, segment->keys_at, segment->keys, 4) &&
                               is_inside(header, segment->starts_at, segment->keys + 1, 4) &&
                               is_inside(header, segment->postings_at, segment->postings, 2)));
}

static bool narrow_segment(const struct index_file *index, const struct index_segment *segment,
                           uint32_t key, uint8_t *bits) {
    if (!is_segment_valid(&index->header, segment))
        return false;
    if (!segment->keys) {
        for (uint32_t i = segment->first_block; i < segment->first_block + segment->blocks; i++)
            bits[i / 8] |= (uint8_t)(1 << i % 8);
        return true;
    }
    int64_t place = find_key(index, segment, key >> segment->shift);
    return place == KEY_MISSING ||
           (place != KEY_UNREAD && read_postings(index, segment, place, bits));
}

bool index_file_narrow(const struct index_file *index, uint32_t key, uint8_t *bits) {
    const struct index_header *header = &index->header;
    size_t size = (header->blocks + 7) / 8;
    uint8_t *having = calloc(1, size + 1);
    struct index_segment *segments =
        read_table(index, header->segments_at, header->segments * sizeof *segments);
    bool done = having && segments;
    for (uint32_t i = 0; i < header->segments && done; i++)
        done = narrow_segment(index, &segments[i], key, having);
    for (size_t i = 0; having && done && i < size; i++)
        bits[i] &= having[i];
    free(segments);
    free(having);
    return done;
}
