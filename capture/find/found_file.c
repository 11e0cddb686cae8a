/* SPDX-License-Identifier: Apache-2.0 */
#include "find/found_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/unnamed_file.h"
#include "directory/directory.h"
#include "index/plain.h"

#define COPIED_AHEAD (64u << 10)

static void *allocate(void *old, size_t count, size_t size) {
    void *list = reallocarray(old, count ? count : 1, size);
    if (!list)
        fail(EXIT_IO, "out of memory");
    return list;
}

static void open_name(struct found_file *file) {
    int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (file->is_operand ? 0 : O_NOFOLLOW);
    file->fd = openat(file->folder->fd, file->name, flags);
}

/* Opens a file that was published after its folder was read. */
static void open_published(struct found_file *file) {
    char final[NAME_SIZE + sizeof COMPRESSED];
    file->open_capture = false;
    for (int i = 0; i < 2 && file->fd < 0; i++) {
        if (i)
            strcat(final, COMPRESSED);
        else if (!directory_final_name(file->name, final))
            return;
        free(file->name);
        file->name = strdup(final);
        if (file->name)
            open_name(file);
    }
}

/* Opens the file for reading. Returns the state if it cannot be. */
static enum file_state open_file(struct found_file *file, struct stat *status) {
    open_name(file);
    if (file->fd < 0 && errno == ENOENT && file->open_capture)
        open_published(file);
    file->error = errno;
    if (file->fd < 0)
        return errno == ENOENT ? FILE_GONE : errno == ELOOP ? FILE_FOREIGN : FILE_UNREADABLE;
    if (!fstat(file->fd, status) && S_ISREG(status->st_mode) && status->st_size)
        return FILE_CANDIDATE;
    close(file->fd);
    file->fd = -1;
    return FILE_FOREIGN;
}

static void close_file(struct found_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* Makes the index, which is kept beside the file if its folder can be written, else in a file
 * without a name; so is that of a small file. Returns false if the file has none. */
static bool make_index(struct found_file *file, const struct stat *status,
                       struct index_file *index) {
    struct file_index made;
    if (!file_index_build(&made, file->fd))
        return false;
    file->bytes_read += made.header.end;
    file->made_index = made.header.end > INDEX_BLOCK_BYTES;
    if (file->made_index && index_file_write(&made, file->folder->fd, file->name, status) &&
        index_file_open(index, file->folder->fd, file->name, status)) {
        if (!geteuid() && fchown(index->fd, status->st_uid, status->st_gid))
            log_warning("root remains the owner of the index of %s", file->name);
    } else {
        index->header = made.header;
        index->fd = unnamed_file("/tmp");
        if (index->fd < 0 || pwrite(index->fd, made.body, made.body_size, sizeof made.header) !=
                                 (ssize_t)made.body_size)
            fail(EXIT_IO, "cannot write an index to $TMPDIR: %s", strerror(errno));
    }
    file_index_free(&made);
    return true;
}

/* Returns the bits of blocks that may have the wanted addresses; NULL if the index is damaged. */
static uint8_t *candidates(const struct index_file *index, const struct query *query) {
    size_t size = (index->header.blocks + 7) / 8;
    uint8_t *bits = allocate(NULL, size, 1);
    bool done = true;
    memset(bits, 0xFF, size);
    for (size_t i = 0; i < query->host_count && done; i++)
        if (host_is_one(&query->hosts[i]))
            done = index_file_narrow(index, address_hash(&query->hosts[i].address), bits);
    for (size_t i = 0; i < query->port_count && done; i++)
        done = index_file_narrow(index, address_hash(&query->ports[i]), bits);
    if (done)
        return bits;
    free(bits);
    return NULL;
}

/* Lists the parts of the file to read: candidates in the range of time. */
static bool choose_parts(struct found_file *file, const struct index_file *index,
                         const struct query *query, const uint8_t *bits) {
    const struct index_header *header = &index->header;
    size_t set = 0;
    for (uint32_t i = 0; i < header->blocks; i++)
        set += bits[i / 8] >> i % 8 & 1;
    if (!set)
        return true;
    struct index_block *blocks = index_file_blocks(index);
    file->places = index_file_places(index);
    file->place_count = header->places;
    file->parts = allocate(NULL, set, sizeof *file->parts);
    for (uint32_t i = 0; blocks && i < header->blocks; i++)
        if ((bits[i / 8] >> i % 8 & 1) && blocks[i].last_ns >= query->start_ns &&
            blocks[i].first_ns < query->end_ns)
            file->parts[file->part_count++] = (struct part){
                blocks[i].offset, i + 1 < header->blocks ? blocks[i + 1].offset : header->end};
    bool done = blocks && file->places;
    free(blocks);
    return done;
}

/* Returns false if the index is damaged. */
static bool use_index(struct found_file *file, const struct index_file *index,
                      const struct query *query) {
    const struct index_header *header = &index->header;
    file->first_ns = header->first_ns;
    if (!header->packets || header->last_ns < query->start_ns || header->first_ns >= query->end_ns)
        return true;
    uint8_t *bits = candidates(index, query);
    bool done = bits && choose_parts(file, index, query, bits);
    free(bits);
    return done;
}

enum file_state found_file_look_up(struct found_file *file, const struct query *query) {
    struct stat status;
    struct index_file index = {.fd = -1};
    enum file_state state = open_file(file, &status);
    if (state != FILE_CANDIDATE || file->open_capture)
        return state == FILE_CANDIDATE ? FILE_WHOLE : state;
    bool known = index_file_open(&index, file->folder->fd, file->name, &status) &&
                 use_index(file, &index, query);
    if (!known) { /* missing, or damaged */
        index_file_close(&index);
        file->part_count = 0;
        file->fd = plain_bytes(file->fd);
        known = make_index(file, &status, &index) && use_index(file, &index, query);
    }
    index_file_close(&index);
    file->has_index = known;
    if (!known)
        return FILE_WHOLE;
    close_file(file);
    return file->part_count ? FILE_CANDIDATE : FILE_NONE;
}

/* Returns the number of an interface in the excerpt, by its description in the file. */
static uint32_t interface_of(struct found_file *file, struct excerpt *excerpt, uint32_t number) {
    struct records *records = &file->records;
    struct record_interface *interface = &records->interfaces[number];
    if (interface->number != RECORD_UNNUMBERED)
        return interface->number;
    if (records->classic)
        return interface->number = excerpt_classic_interface(excerpt, interface->link_type,
                                                             records->classic_resolution == 9);
    const uint8_t *head = window_at(&records->window, interface->offset, 8);
    uint32_t size = 0;
    if (head)
        memcpy(&size, head + 4, sizeof size);
    const uint8_t *block = window_at(&records->window, interface->offset, size);
    if (!block)
        fail(EXIT_IO, "%s: cannot be read any more", file->name);
    return interface->number = excerpt_interface(excerpt, block, size);
}

static void add_match(struct found_file *file, struct excerpt *excerpt,
                      const struct record *record) {
    if (file->match_count == file->match_room) {
        file->match_room = 2 * file->match_room + 64;
        file->matches = allocate(file->matches, file->match_room, sizeof *file->matches);
    }
    file->bytes += record->captured;
    struct match match = {record->time_ns, record->offset, record->size, 0};
    match.interface = interface_of(file, excerpt, record->interface);
    file->matches[file->match_count++] = match;
}

static int compare_matches(const void *one, const void *other) {
    const struct match *a = one, *b = other;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static void sort_matches(struct found_file *file) {
    for (size_t i = 1; i < file->match_count; i++)
        if (file->matches[i].time_ns < file->matches[i - 1].time_ns) {
            qsort(file->matches, file->match_count, sizeof *file->matches, compare_matches);
            return;
        }
}

/* Reads section header and interfaces, which precede the parts. Returns false if they are not where
 * the index says. */
static bool read_places(struct found_file *file) {
    struct record record;
    for (uint32_t i = 0; i < file->place_count; i++) {
        const struct index_place *place = &file->places[i];
        file->records.at = place->offset;
        if (place->kind != RECORD_STATISTICS &&
            (uint32_t)records_next(&file->records, &record) != place->kind)
            return false;
    }
    return true;
}

/* Returns false if a part does not consist of whole records: then the index is of another file. */
static bool read_parts(struct found_file *file, const struct query *query,
                       struct excerpt *excerpt) {
    struct records *records = &file->records;
    struct record record;
    for (size_t i = 0; i < file->part_count; i++) {
        const struct part *part = &file->parts[i];
        records->window.until = part->to;
        records->at = part->from;
        while (records->at < part->to) {
            enum record_kind kind = records_next(records, &record);
            if (kind == RECORD_END || kind == RECORD_SECTION)
                return false;
            if (kind == RECORD_INTERFACE)
                records->interface_count--; /* known from its place */
            else if (kind == RECORD_PACKET && query_has(query, &record))
                add_match(file, excerpt, &record);
        }
    }
    return true;
}

static void read_all(struct found_file *file, const struct query *query, struct excerpt *excerpt) {
    struct records *records = &file->records;
    struct record record;
    records->at = 0;
    records->interface_count = records->sections = 0;
    records->window.until = UINT64_MAX;
    file->match_count = 0;
    file->bytes = 0;
    while (records_next(records, &record) != RECORD_END)
        if (record.kind == RECORD_PACKET && query_has(query, &record))
            add_match(file, excerpt, &record);
}

/* Adds the drop counts, if the file has only one section. */
static void add_counts(struct found_file *file, struct excerpt *excerpt) {
    struct records *records = &file->records;
    struct record record;
    for (uint32_t i = 0; i < file->place_count; i++) {
        if (file->places[i].kind != RECORD_STATISTICS)
            continue;
        records->at = file->places[i].offset;
        uint32_t number = 0;
        if (records_next(records, &record) != RECORD_STATISTICS)
            continue;
        memcpy(&number, record.bytes + 8, sizeof number);
        if (number >= records->interface_count)
            continue;
        uint32_t interface = interface_of(file, excerpt, number);
        records->at = file->places[i].offset; /* whose bytes may have been replaced */
        if (records_next(records, &record) == RECORD_STATISTICS)
            excerpt_add_counts(excerpt, interface, &record);
    }
}

static void begin_excerpt(struct found_file *file, struct excerpt *excerpt) {
    struct record section;
    struct records *records = &file->records;
    uint32_t count = records->interface_count;
    records->at = 0;
    if (!excerpt->begun && records_next(records, &section) == RECORD_SECTION)
        excerpt_begin(excerpt, records->classic ? NULL : &section);
    records->interface_count = count;
}

enum file_state found_file_collect(struct found_file *file, const struct query *query,
                                   struct excerpt *excerpt) {
    struct stat status;
    enum file_state state = file->fd < 0 ? open_file(file, &status) : FILE_CANDIDATE;
    if (state != FILE_CANDIDATE)
        return state;
    file->fd = plain_bytes(file->fd);
    if (!records_open(&file->records, file->fd)) {
        file->error = errno;
        close_file(file);
        return file->error == EPROTO ? FILE_FOREIGN : FILE_UNREADABLE;
    }
    if (!file->has_index || !read_places(file) || !read_parts(file, query, excerpt))
        read_all(file, query, excerpt);
    sort_matches(file);
    if (!file->match_count) {
        found_file_close(file);
        return FILE_NONE;
    }
    file->first_ns = file->matches[0].time_ns;
    add_counts(file, excerpt);
    begin_excerpt(file, excerpt);
    return FILE_CANDIDATE;
}

bool found_file_copy(struct found_file *file, struct excerpt *excerpt) {
    const struct match *match = &file->matches[file->next++];
    struct records *records = &file->records;
    struct record record = {.size = match->size};
    records->window.until = match->offset + COPIED_AHEAD;
    if (records->classic) {
        records->at = match->offset;
        if (records_next(records, &record) != RECORD_PACKET)
            return false;
    } else {
        record.bytes = window_at(&records->window, match->offset, match->size);
        if (!record.bytes)
            return false;
        memcpy(&record.captured, record.bytes + 20, sizeof record.captured);
    }
    excerpt_packet(excerpt, match->interface, &record, records->classic);
    return true;
}

void found_file_close(struct found_file *file) {
    file->bytes_read += file->records.window.read;
    if (file->records.window.bytes)
        records_close(&file->records);
    close_file(file);
    free(file->parts);
    free(file->places);
    free(file->matches);
    file->parts = NULL;
    file->places = NULL;
    file->matches = NULL;
}
