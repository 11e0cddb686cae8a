/* SPDX-License-Identifier: Apache-2.0 */
#include "find/excerpt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer/pcapng.h"
#include "buffer/record.h"
#include "common/log.h"

#define OUT_BUFFER   (1u << 20)
#define BLOCK_MOST   4096u
#define MODE         0666
#define DESCRIPTION  28u /* bytes of the block that describes an interface of a classic file */
#define FIXED_COUNTS 20u /* bytes of a block of counts before its options */
#define FIXED_HEADER 24u /* of a section header */
#define COMMENT      "drops of the whole files that the packets come from"

static char *to_remove;

static void remove_temporary(void) {
    if (to_remove)
        unlink(to_remove);
}

static void remove_and_end(int number) {
    remove_temporary();
    signal(number, SIG_DFL);
    raise(number);
}

static _Noreturn void fail_output(const struct excerpt *excerpt) {
    if (errno == EPIPE)
        exit(EXIT_DONE); /* the reader has what it wanted */
    fail(EXIT_IO, "cannot write %s: %s", excerpt->path, strerror(errno));
}

static void put(struct excerpt *excerpt, const void *bytes, size_t size) {
    if (excerpt->out && size && fwrite(bytes, size, 1, excerpt->out) != 1)
        fail_output(excerpt);
}

void excerpt_open(struct excerpt *excerpt, const char *path, bool overwrite) {
    excerpt->path = path;
    if (!path)
        return;
    if (!strcmp(path, "-")) {
        excerpt->out = stdout;
    } else {
        const char *slash = strrchr(path, '/');
        int folder = slash ? (int)(slash + 1 - path) : 0;
        struct stat existing;
        bool exists = !stat(path, &existing);
        if (exists && !S_ISREG(existing.st_mode))
            fail(EXIT_USAGE, "%s is no file: expected one, or - for standard output", path);
        if (exists && !overwrite)
            fail(EXIT_USAGE, "%s exists: expected another name, or --overwrite", path);
        if (asprintf(&excerpt->temporary, "%.*s.%s.XXXXXX", folder, path, path + folder) < 0)
            fail(EXIT_IO, "out of memory");
        int fd = mkstemp(excerpt->temporary);
        if (fd < 0)
            fail(EXIT_IO, "cannot write %s: %s", path, strerror(errno));
        to_remove = excerpt->temporary;
        atexit(remove_temporary);
        signal(SIGINT, remove_and_end);
        signal(SIGTERM, remove_and_end);
        signal(SIGHUP, remove_and_end);
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(fd, MODE & ~mask) || !(excerpt->out = fdopen(fd, "w")))
            fail_output(excerpt);
    }
    setvbuf(excerpt->out, NULL, _IOFBF, OUT_BUFFER);
}

static struct excerpt_interface *add_interface(struct excerpt *excerpt) {
    if (excerpt->count == RECORD_INTERFACES_MAX)
        fail(EXIT_IO, "more than %u different interfaces", RECORD_INTERFACES_MAX);
    if (excerpt->count == excerpt->room) {
        excerpt->room = 2 * excerpt->room + 8;
        excerpt->interfaces =
            realloc(excerpt->interfaces, excerpt->room * sizeof *excerpt->interfaces);
        if (!excerpt->interfaces)
            fail(EXIT_IO, "out of memory");
    }
    struct excerpt_interface *interface = &excerpt->interfaces[excerpt->count++];
    *interface = (struct excerpt_interface){.start = UINT64_MAX};
    return interface;
}

uint32_t excerpt_interface(struct excerpt *excerpt, const uint8_t *block, uint32_t size) {
    for (uint32_t i = 0; i < excerpt->count; i++)
        if (excerpt->interfaces[i].size == size &&
            !memcmp(excerpt->interfaces[i].block, block, size))
            return i;
    struct excerpt_interface *interface = add_interface(excerpt);
    interface->block = malloc(size);
    if (!interface->block)
        fail(EXIT_IO, "out of memory");
    memcpy(interface->block, block, size);
    interface->size = size;
    return excerpt->count - 1;
}

uint32_t excerpt_classic_interface(struct excerpt *excerpt, uint16_t link_type, bool in_ns) {
    enum { NS_DIGITS = 9, US_DIGITS = 6 };
    uint32_t size = DESCRIPTION + 4, options[] = {1u << 16 | IF_TSRESOL, NS_DIGITS, 0};
    options[1] = in_ns ? NS_DIGITS : US_DIGITS;
    uint32_t head[] = {BLOCK_INTERFACE, size, link_type, 0};
    uint8_t block[DESCRIPTION + 4];
    memcpy(block, head, sizeof head);
    memcpy(block + sizeof head, options, sizeof options);
    memcpy(block + size - 4, &size, 4);
    return excerpt_interface(excerpt, block, size);
}

static uint64_t get_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

void excerpt_add_counts(struct excerpt *excerpt, uint32_t interface, const struct record *block) {
    struct excerpt_interface *to = &excerpt->interfaces[interface];
    const uint8_t *options = block->bytes + FIXED_COUNTS, *end = block->bytes + block->size - 4;
    size_t size;
    for (unsigned i = 0; i < EXCERPT_COUNTS; i++) {
        const uint8_t *value = record_option(options, end, ISB_RECEIVED + i, &size);
        bool known = value && size == sizeof(uint64_t);
        to->counts[i] += known ? get_u64(value) : 0;
        to->known[i] = known && (to->known[i] || !to->is_counted);
    }
    to->is_counted = true;
    const uint8_t *from = record_option(options, end, ISB_START, &size);
    if (from && size == sizeof(uint64_t)) {
        uint64_t time = (uint64_t)get_u32(from) << 32 | get_u32(from + 4);
        to->start = time < to->start ? time : to->start;
    }
    uint64_t time = (uint64_t)get_u32(block->bytes + 12) << 32 | get_u32(block->bytes + 16);
    to->end = time > to->end ? time : to->end;
}

/* A block that is built option by option. */
struct block {
    uint8_t bytes[BLOCK_MOST];
    uint32_t size;
};

static void add_option(struct block *block, unsigned code, const void *value, size_t size) {
    size_t padded = (size + 3) & ~(size_t)3;
    if (block->size + padded + 12 > BLOCK_MOST)
        return;
    uint32_t head = (uint32_t)size << 16 | code;
    memcpy(block->bytes + block->size, &head, sizeof head);
    memset(block->bytes + block->size + 4, 0, padded);
    if (size)
        memcpy(block->bytes + block->size + 4, value, size);
    block->size += 4 + (uint32_t)padded;
}

static void put_block(struct excerpt *excerpt, struct block *block) {
    memset(block->bytes + block->size, 0, 4); /* end of options */
    uint32_t size = block->size + 8;
    memcpy(block->bytes + 4, &size, 4);
    memcpy(block->bytes + size - 4, &size, 4);
    put(excerpt, block->bytes, size);
}

/* Hardware, system and comments of the first file stay; the application is this program. */
void excerpt_begin(struct excerpt *excerpt, const struct record *section) {
    static const char name[] = "wiretale find " WIRETALE_VERSION;
    uint32_t head[] = {BLOCK_SECTION, 0, PCAPNG_BYTE_ORDER_MAGIC, 1, UINT32_MAX, UINT32_MAX};
    struct block block = {.size = FIXED_HEADER};
    if (excerpt->begun)
        return;
    excerpt->begun = true;
    memcpy(block.bytes, head, sizeof head);
    if (section) {
        const uint8_t *at = section->bytes + FIXED_HEADER,
                      *end = section->bytes + section->size - 4;
        for (size_t padded; end - at >= 4 && get_u32(at); at += 4 + padded) {
            uint32_t code = get_u32(at) & 0xFFFF, size = get_u32(at) >> 16;
            padded = (size + 3u) & ~3u;
            if (padded > (size_t)(end - at) - 4)
                break;
            if (code != SHB_APPLICATION)
                add_option(&block, code, at + 4, size);
        }
    }
    add_option(&block, SHB_APPLICATION, name, sizeof name - 1);
    put_block(excerpt, &block);
}

/* The order of the descriptions is that of their numbers. */
static void describe(struct excerpt *excerpt, uint32_t interface) {
    for (uint32_t i = 0; i <= interface; i++) {
        struct excerpt_interface *of = &excerpt->interfaces[i];
        if (!of->written)
            put(excerpt, of->block, of->size);
        of->written = true;
    }
}

void excerpt_packet(struct excerpt *excerpt, uint32_t interface, const struct record *record,
                    bool classic) {
    excerpt->packets++;
    excerpt->bytes += record->captured;
    if (!excerpt->out)
        return;
    if (!excerpt->interfaces[interface].written)
        describe(excerpt, interface);
    if (!classic) {
        put(excerpt, record->bytes, 8);
        put(excerpt, &interface, 4);
        put(excerpt, record->bytes + 12, record->size - 12);
        return;
    }
    uint64_t unit = excerpt->interfaces[interface].block[20] == 9 ? 1 : 1000;
    uint64_t ticks = (uint64_t)record->time_ns / unit;
    uint32_t size = (uint32_t)record_epb_size(record->captured, RECORD_UNKNOWN), zero = 0;
    const uint32_t head[] = {
        RECORD_PACKET_TYPE, size,          interface, (uint32_t)(ticks >> 32), (uint32_t)ticks,
        record->captured,   record->length};
    put(excerpt, head, sizeof head);
    put(excerpt, record->data, record->captured);
    put(excerpt, &zero, -record->captured & 3);
    put(excerpt, &size, 4);
}

static void put_counts(struct excerpt *excerpt, uint32_t number) {
    const struct excerpt_interface *of = &excerpt->interfaces[number];
    uint32_t end[] = {(uint32_t)(of->end >> 32), (uint32_t)of->end};
    uint32_t start[] = {(uint32_t)(of->start >> 32), (uint32_t)of->start};
    uint32_t head[] = {BLOCK_STATISTICS, 0, number, end[0], end[1]};
    struct block block = {.size = FIXED_COUNTS};
    memcpy(block.bytes, head, sizeof head);
    add_option(&block, OPTION_COMMENT, COMMENT, sizeof COMMENT - 1);
    if (of->start <= of->end) {
        add_option(&block, ISB_START, start, sizeof start);
        add_option(&block, ISB_END, end, sizeof end);
    }
    for (unsigned i = 0; i < EXCERPT_COUNTS; i++)
        if (of->known[i])
            add_option(&block, ISB_RECEIVED + i, &of->counts[i], sizeof of->counts[i]);
    put_block(excerpt, &block);
}

void excerpt_close(struct excerpt *excerpt, bool overwrite) {
    if (!excerpt->out)
        return;
    excerpt_begin(excerpt, NULL);
    for (uint32_t i = 0; i < excerpt->count; i++)
        if (excerpt->interfaces[i].written && excerpt->interfaces[i].is_counted)
            put_counts(excerpt, i);
    bool done = excerpt->temporary ? !fclose(excerpt->out) : !fflush(excerpt->out);
    if (done && excerpt->temporary)
        done = overwrite ? !rename(excerpt->temporary, excerpt->path)
                         : !renameat2(AT_FDCWD, excerpt->temporary, AT_FDCWD, excerpt->path,
                                      RENAME_NOREPLACE);
    if (!done)
        fail_output(excerpt);
    to_remove = NULL;
}
