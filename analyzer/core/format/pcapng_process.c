/* SPDX-License-Identifier: Apache-2.0 */
/* Processes come in two forms, secrets in one (draft-ietf-opsawg-pcapng, section 4.7; wiretap of
 * Wireshark 4.6 and 5; pcap-ng.h of Apple's libpcap):
 *
 *   Darwin's block 0x80000001    Custom block of Wireshark     Secrets, block 10
 *   OFFSET SIZE                  OFFSET SIZE                   OFFSET SIZE
 *   0      4   process id        0      4   PEN 32622          0      4   type, as 544c534b TLSK
 *   4      ..  options: 2 name,  4      4   entry type 3       4      4   length
 *              4 UUID            8      4   entry length       8      ..  secrets, padded
 *                                12     4   process id         ..     ..  options
 *                                16     ..  options: 2 name, 3 path, ... 9 start in ns
 *                                ..     ..  options of the block
 *
 * An entry is little-endian in each section. A packet names a block of Darwin's by its number in
 * the section, from 0 (option 8001; 8003 is the process on whose behalf it was sent), and a process
 * of Wireshark by its id (option 8: process, thread). An id is used again, so that the start that
 * is the latest before the packet counts, or the block that is the last without one.
 *
 * Darwin's types are for local use: a block of another form is another vendor's, and skipped, as
 * are secrets longer than their block. In a cut ids of two sections could be those of two hosts.
 * The first section with ids keeps them, the processes of others become blocks of Darwin's. */
#include "format/pcapng_process.h"

#include <stdlib.h>

#include "base/arena.h"
#include "format/kept_blocks.h"

#define PEN_WIRESHARK 32622u
#define ENTRY_PROCESS 3u
#define SECRETS_FIXED 8u
#define ENTRY_FIXED   12u /* PEN, type, length */
#define SEARCHED_MOST 64u /* processes of a bucket; older ones are unknown */
#define PADDED(size)  (((size_t)(size) + 3) & ~(size_t)3)
#define DARWIN_FIXED  4u
#define CUSTOM_FIXED  4u

enum { OPTION_PROCESS_START = 9 };

/* A file may be opened again, so each place of it counts once. */
static bool is_new(struct capture_file *file) {
    uint64_t offset = input_stream_offset(&file->stream);
    if (offset < file->kept_until)
        return false;
    file->kept_until = offset + 1;
    return true;
}

bool pcapng_take_secrets(struct capture_file *file, struct pcapng_block *block) {
    struct kept_blocks *kept = file->list->kept;
    const uint8_t *body = block->body;
    uint32_t length = block->size < SECRETS_FIXED ? 0 : load_u32(body + 4, block->big_endian);
    if (!kept || !length || length > block->size - SECRETS_FIXED || !is_new(file))
        return true;
    kept->secrets++;
    if (!kept->with_secrets)
        return true;
    kept_begin(kept, BLOCK_SECRETS);
    kept_u32(kept, load_u32(body, block->big_endian));
    kept_u32(kept, length);
    kept_bytes(kept, body + SECRETS_FIXED, length);
    kept_options(kept, pcapng_options_after(block, SECRETS_FIXED + PADDED(length)));
    return kept_end(kept, file);
}

/* Returns the section's processes, NULL without memory. */
static struct process_section *section_of(struct capture_file *file) {
    struct pcapng_reader *reader = file->reader;
    if (!reader->processes)
        reader->processes = processes_add_section(&file->list->processes);
    return reader->processes;
}

static struct process *add_process(struct capture_file *file, uint32_t id,
                                   struct pcapng_options options) {
    struct process_section *section = section_of(file);
    struct pcapng_option name = {.value = (const uint8_t *)""};
    uint64_t start_ns = 0;
    while (pcapng_options_next(&options)) {
        if (options.current.code == OPTION_PROCESS_NAME)
            name = options.current;
        if (options.current.code == OPTION_PROCESS_START && options.current.length == 8)
            start_ns = load_u64(options.current.value, options.big_endian);
    }
    if (!section)
        return NULL;
    struct process *added =
        processes_add(&file->list->processes, section, id, (const char *)name.value, name.length);
    if (added)
        added->start_ns = start_ns;
    return added;
}

/* Gives a process a block of Darwin's in the cut. Without options, it has its name. */
static bool keep_as_block(struct capture_file *file, struct process *process,
                          const struct pcapng_options *options) {
    struct kept_blocks *kept = file->list->kept;
    size_t length = strlen(process->name);
    if (!kept || !kept->with_others)
        return true;
    process->block = kept->process_blocks++;
    kept_begin(kept, BLOCK_PROCESS);
    kept_u32(kept, process->id);
    if (options) {
        kept_options(kept, *options);
    } else if (length) {
        kept_u32(kept, (uint32_t)length << 16 | OPTION_PROCESS_NAME);
        kept_bytes(kept, process->name, length);
        kept_u32(kept, OPTION_END);
    }
    return kept_end(kept, file);
}

bool pcapng_take_process(struct capture_file *file, struct pcapng_block *block) {
    if (block->size < DARWIN_FIXED)
        return true;
    struct pcapng_options options = pcapng_options_after(block, DARWIN_FIXED);
    struct process *added = add_process(file, load_u32(block->body, block->big_endian), options);
    struct process_section *section = section_of(file);
    if (file->list->kept)
        file->list->kept->processes += is_new(file);
    if (!added ||
        !list_grow(&section->blocks, &section->room, section->count + 1, sizeof *section->blocks))
        return true;
    section->blocks[section->count++] = added;
    return keep_as_block(file, added, &options);
}

/* Whether the cut has the ids of this section as they are. */
static bool keeps_ids(const struct capture_file *file) {
    const struct pcapng_reader *reader = file->reader;
    struct kept_blocks *kept = file->list->kept;
    if (!kept->has_ids) {
        kept->has_ids = true;
        kept->ids_file = file->index;
        kept->ids_section = reader->section_offset;
    }
    return kept->ids_file == file->index && kept->ids_section == reader->section_offset;
}

/* Returns the process that had an id at a time: the latest that had started, else the first. */
static struct process *find_by_id(const struct pcapng_reader *reader, uint32_t id,
                                  int64_t time_ns) {
    struct process *found = NULL,
                   *next = reader->by_id ? reader->by_id[id % PROCESS_BUCKETS] : NULL;
    uint64_t now_ns = time_ns > 0 ? (uint64_t)time_ns : 0;
    for (unsigned searched = 0; next && searched < SEARCHED_MOST; next = next->older, searched++) {
        if (next->id != id)
            continue;
        bool started = next->start_ns <= now_ns, had = found && found->start_ns <= now_ns;
        if (!found || (started && (!had || next->start_ns > found->start_ns)) ||
            (!started && !had && next->start_ns < found->start_ns))
            found = next;
    }
    return found;
}

/* Whether the id was that of another process, and no start tells which packets are whose. */
static bool is_reused(const struct process *before, const struct process *added) {
    return before && *before->name && strcmp(before->name, added->name) != 0 &&
           (!before->start_ns || !added->start_ns);
}

/* Adds a process that packets name by its id. */
static bool add_by_id(struct capture_file *file, uint32_t id, struct pcapng_options options,
                      struct process **added) {
    struct pcapng_reader *reader = file->reader;
    if (!reader->by_id)
        reader->by_id = calloc(PROCESS_BUCKETS, sizeof *reader->by_id);
    *added = reader->by_id ? add_process(file, id, options) : NULL;
    if (!*added)
        return true;
    bool reused = is_reused(find_by_id(reader, id, TIME_MOST_NS), *added);
    (*added)->older = reader->by_id[id % PROCESS_BUCKETS];
    reader->by_id[id % PROCESS_BUCKETS] = *added;
    reader->has_ids = true;
    return !file->list->kept || (keeps_ids(file) && !reused) || keep_as_block(file, *added, NULL);
}

/* Returns the bytes of the entry, 0 if it is no process. */
static uint32_t process_entry(const struct pcapng_block *block) {
    if (block->size < ENTRY_FIXED + DARWIN_FIXED ||
        load_u32(block->body, block->big_endian) != PEN_WIRESHARK ||
        load_le32(block->body + 4) != ENTRY_PROCESS)
        return 0;
    uint32_t length = load_le32(block->body + 8);
    return length >= DARWIN_FIXED && PADDED(length) <= block->size - ENTRY_FIXED ? length : 0;
}

/* Copies a block that may be copied. Of other vendors' the order of bytes is unknown, so that those
 * of big-endian sections are left out. */
static bool keep_custom(struct capture_file *file, const struct pcapng_block *block, uint32_t entry,
                        const struct process *added) {
    struct kept_blocks *kept = file->list->kept;
    size_t opaque = entry ? ENTRY_FIXED + PADDED(entry) : block->size;
    if (!kept || !is_new(file))
        return true;
    kept->processes += entry > 0;
    if (!kept->with_others || block->type != BLOCK_CUSTOM || (added && added->block != NO_BLOCK) ||
        (!entry && block->big_endian))
        return true;
    kept_begin(kept, BLOCK_CUSTOM);
    kept_u32(kept, load_u32(block->body, block->big_endian));
    kept_bytes(kept, block->body + CUSTOM_FIXED, opaque - CUSTOM_FIXED);
    kept_options(kept, pcapng_options_after(block, opaque));
    return kept_end(kept, file);
}

/* Wireshark numbers custom blocks as frames, but for those whose entries it reads. */
bool pcapng_take_custom(struct capture_file *file, struct pcapng_block *block) {
    uint32_t entry = process_entry(block);
    struct process *added = NULL;
    if (!entry)
        file->frame++;
    else if (!add_by_id(file, load_le32(block->body + ENTRY_FIXED),
                        (struct pcapng_options){.cursor = block->body + ENTRY_FIXED + DARWIN_FIXED,
                                                .left = entry - DARWIN_FIXED},
                        &added))
        return false;
    return block->size < CUSTOM_FIXED || keep_custom(file, block, entry, added);
}

const struct process *pcapng_process_of(struct capture_file *file, const struct packet *packet,
                                        const struct pcapng_option *option, bool big_endian) {
    const struct pcapng_reader *reader = file->reader;
    struct process_section *section = reader->processes;
    if (option->code == OPTION_PROCESS && option->length == 4 && section) {
        uint32_t block = load_u32(option->value, big_endian);
        return block < section->count ? section->blocks[block] : NULL;
    }
    if (option->code != OPTION_PROCESS_ID || option->length != 8)
        return NULL;
    uint32_t id = load_u32(option->value, big_endian);
    struct process *found = find_by_id(reader, id, packet->time_ns);
    if (!found && !add_by_id(file, id, (struct pcapng_options){0}, &found))
        return NULL;
    return found;
}
