/* SPDX-License-Identifier: Apache-2.0 */
/* The frame around the format readers: opens a file, detects its format by the first bytes,
 * refills the window, and records damage. Readers are handed in by file->formats, so that this
 * file depends on none of them. */
#include "format/capture_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"

#define PACKET_MAX (256u << 10) /* MAXIMUM_SNAPLEN of libpcap's pcap-int.h */
#define NAME_SHOWN 96           /* bytes of a long path that a damage text shows, from its end */

uint32_t link_type_packet_max(uint16_t link_type) {
    /* max_snaplen_for_dlt() of libpcap's pcap-common.c. */
    static const struct {
        uint16_t link_type;
        uint32_t packet_max;
    } larger[] = {
        {231, 128u << 20}, /* DBUS */
        {279, 8u << 20},   /* EBHSCR */
        {189, 128u << 20}, /* USB_LINUX */
        {220, 128u << 20}, /* USB_LINUX_MMAPPED */
        {249, 128u << 20}, /* USBPCAP */
    };
    for (size_t i = 0; i < sizeof larger / sizeof *larger; i++)
        if (larger[i].link_type == link_type)
            return larger[i].packet_max;
    return PACKET_MAX;
}

uint16_t link_type_normalize(uint16_t link_type) {
    enum { RAW_OF_MOST = 12, RAW_OF_OPENBSD = 14, LINKTYPE_RAW = 101 };
    return link_type == RAW_OF_MOST || link_type == RAW_OF_OPENBSD ? LINKTYPE_RAW : link_type;
}

/* Returns the end of a name that is too long for a message: the base name matters most. */
static const char *shown_name(const struct capture_file *file) {
    size_t length = strlen(file->name);
    if (length <= NAME_SHOWN)
        return file->name;
    const char *name = file->name + length - NAME_SHOWN;
    while ((*name & 0xC0) == 0x80) /* not within a character */
        name++;
    return name;
}

bool capture_file_set_damage(struct capture_file *file, const char *format, ...) {
    char problem[160], where[64];
    uint64_t offset = input_stream_offset(&file->stream);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    if (file->frame)
        snprintf(where, sizeof where, "after frame %" PRIu64, file->frame);
    else
        snprintf(where, sizeof where, "before the first frame");
    struct damage *damage = &file->damage;
    *damage = (struct damage){.present = true, .offset = offset, .frame = file->frame};
    /* If the text is too long, the name is cut. */
    char tail[sizeof damage->text];
    snprintf(tail, sizeof tail, ": at byte %" PRIu64 ": %s (%s)", offset, problem, where);
    size_t room = sizeof tail - 1 - strlen(tail), length = strlen(shown_name(file));
    length = length < room ? length : room;
    memcpy(damage->text, shown_name(file), length);
    memcpy(damage->text + length, tail, strlen(tail) + 1);
    file->ended = true;
    return false;
}

static bool header_error(const struct capture_file *file, struct error *error,
                         const char *problem) {
    return error_set(error, ERROR_UNREADABLE, "%s: at byte 0: %s", file->name, problem);
}

/* Waits for a pipe, because nothing can be returned before the header. Signals end that. */
bool capture_file_need_header(struct capture_file *file, size_t need, const char *header,
                              struct error *error) {
    enum input_state state;
    do
        state = input_stream_fill(&file->stream, need);
    while (state == INPUT_WAITING);
    if (state == INPUT_READY)
        return true;
    if (state == INPUT_INTERRUPTED)
        return header_error(file, error, "interrupted before its header was read");
    if (state == INPUT_FAILED)
        return header_error(file, error, file->stream.error);
    size_t there = input_stream_available(&file->stream);
    if (!there)
        return error_set(error, ERROR_UNREADABLE, "%s: empty (0 bytes)", file->name);
    return error_set(error, ERROR_UNREADABLE, "%s: truncated: %s needs %zu bytes, the file has %zu",
                     file->name, header, need, there);
}

/* The name as a shell takes it; FILE if it would need quotes, or is a pipe. */
static const char *name_in_command(const struct capture_file *file) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_./+,:@%-";
    bool is_plain = !file->name[strspn(file->name, plain)] && file->name[0] != '-';
    return is_plain && strlen(file->name) <= NAME_SHOWN ? file->name : "FILE";
}

/* --- formats that are not read ---------------------------------------------------------------- */

#define EDITCAP "editcap %s out.pcapng"

/* ERF (Endace): a record has a header of 16 bytes and no magic number. */
#define ERF_HEADER     16
#define ERF_TYPE_MOST  48
#define ERF_FIRST_SEC  631152000u  /* 1990 */
#define ERF_LAST_SEC   4102444800u /* 2100 */
#define ERF_DAY        86400u      /* s */
#define ERF_EXTENSIONS 0x80

/* The magic numbers are those of Wireshark's wiretap, file(1) and the formats' specifications. */
static const struct foreign_format foreign_formats[] = {
    {"a bzip2 file", "bunzip2 -c %s | wiretale analyze -", "BZh", 3},
    {"an xz file", "xz -dc %s | wiretale analyze -",
     "\xFD"
     "7zXZ\0",
     6},
    {"a lzip file", "lzip -dc %s | wiretale analyze -", "LZIP", 4},
    {"a file of compress", "uncompress -c %s | wiretale analyze -", "\x1F\x9D", 2},
    {"a zip file", "unzip -p %s | wiretale analyze -", "PK\3\4", 4},
    {"a 7z file", "7z x -so %s | wiretale analyze -", "7z\xBC\xAF\x27\x1C", 6},
    {"a rar file", "unrar p -inul %s | wiretale analyze -", "Rar!\x1A\x07", 6},
    {"a snoop capture", EDITCAP, "snoop\0\0\0", 8},
    {"a Network Monitor capture", EDITCAP, "RTSS", 4},
    {"a Network Monitor capture", EDITCAP, "GMBU", 4},
    {"a Sniffer capture", EDITCAP, "TRSNIFF data", 12},
    {"a NetXRay or Windows Sniffer capture", EDITCAP, "XCP\0", 4},
    {"a K12 text capture", EDITCAP, "+---------+---------------+----------+", 38},
    {"an iptrace capture", EDITCAP, "iptrace ", 8},
    {"a btsnoop capture", EDITCAP, "btsnoop\0", 8},
    {"an OmniPeek capture", EDITCAP, "\177ver", 4},
};
static const struct foreign_format erf = {"an ERF capture", EDITCAP, "", 0};

/* Returns whether a record begins here, and sets where the next one begins. ERF: time of 8 bytes
 * (fraction, then seconds, little-endian), type, flags, length (big-endian) with the header, loss
 * counter, length on the wire. Without a magic number only plausible fields are evidence, so their
 * bounds must be narrow. */
static bool is_erf_record(const uint8_t *bytes, size_t size, size_t *next) {
    if (size < ERF_HEADER)
        return false;
    uint32_t seconds = load_le32(bytes + 4);
    unsigned type = bytes[8] & ~ERF_EXTENSIONS & 0xFF, length = load_be16(bytes + 10);
    *next = length;
    return seconds >= ERF_FIRST_SEC && seconds < ERF_LAST_SEC && type >= 1 &&
           type <= ERF_TYPE_MOST && length >= ERF_HEADER;
}

/* Two records within a day, or one that is the whole file. Without the day, one in some thousand
 * Parquet files would be taken for a capture, and must then not be replaced. */
static bool is_erf(const uint8_t *bytes, size_t size) {
    size_t next, unused;
    if (!is_erf_record(bytes, size, &next) || next > size)
        return false;
    if (next == size)
        return true;
    return is_erf_record(bytes + next, size - next, &unused) &&
           load_le32(bytes + next + 4) - load_le32(bytes + 4) + ERF_DAY <= 2 * ERF_DAY;
}

const struct foreign_format *foreign_format_of(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < sizeof foreign_formats / sizeof *foreign_formats; i++)
        if (size >= foreign_formats[i].size &&
            !memcmp(bytes, foreign_formats[i].magic, foreign_formats[i].size))
            return &foreign_formats[i];
    return is_erf(bytes, size) ? &erf : NULL;
}

/* Names the format and the command that converts it, if it is known. */
static bool unknown_format(const struct capture_file *file, struct error *error) {
    const uint8_t *first = file->stream.cursor;
    const struct foreign_format *foreign =
        foreign_format_of(first, input_stream_available(&file->stream));
    if (!foreign)
        return error_set(error, ERROR_UNREADABLE,
                         "%s: not a capture (expected pcap or pcapng, found %02x %02x %02x %02x)",
                         file->name, first[0], first[1], first[2], first[3]);
    if (file->stream.source.codec)
        return error_set(error, ERROR_UNREADABLE,
                         "%s: %s within %s, not pcap or pcapng; decompress the %s first",
                         file->name, foreign->name, file->stream.source.codec->name,
                         file->stream.source.codec->name);
    const char *place = strstr(foreign->command, "%s");
    return error_set(error, ERROR_UNREADABLE, "%s: %s, not pcap or pcapng; convert it: %.*s%s%s",
                     file->name, foreign->name, (int)(place - foreign->command), foreign->command,
                     name_in_command(file), place + 2);
}

/* The magic numbers of all formats have four bytes and exclude one another. */
static bool begin_reading(struct capture_file *file, struct error *error) {
    enum { MAGIC_SIZE = 4 };
    if (!capture_file_need_header(file, MAGIC_SIZE, "a magic number", error))
        return false;
    for (const struct capture_format *const *format = file->formats; *format; format++)
        if ((*format)->match(file->stream.cursor)) {
            file->format = *format;
            return file->format->begin(file, error);
        }
    return unknown_format(file, error);
}

static enum input_state open_stream(struct capture_file *file) {
    return input_stream_open(&file->stream, file->path, file->window ? file->window : INPUT_WINDOW);
}

bool capture_file_start(struct capture_file *file, struct read_ahead *threads) {
    file->started =
        open_stream(file) == INPUT_READY && input_stream_read_ahead(&file->stream, threads);
    if (!file->started)
        input_stream_close(&file->stream);
    return file->started;
}

bool capture_file_open(struct capture_file *file, struct error *error) {
    file->open = true;
    file->frame = 0;
    for (uint32_t i = 0; i < file->interface_count; i++)
        /* A file that was probed is read from its beginning again. */
        file->list->items[file->interfaces[i]]->comments = 0;
    enum input_state state = file->started ? INPUT_READY : open_stream(file);
    file->started = false;
    file->regular = file->stream.source.regular;
    file->bytes_total = file->stream.source.bytes_total;
    bool opened = false;
    if (state == INPUT_FAILED)
        error_set(error, ERROR_UNREADABLE, "%s: %s", file->name, file->stream.error);
    else if (state == INPUT_INTERRUPTED)
        header_error(file, error, "interrupted before its header was read");
    else
        opened = begin_reading(file, error);
    if (!opened)
        capture_file_close(file);
    return opened;
}

void capture_file_close(struct capture_file *file) {
    if (file->started)
        input_stream_close(&file->stream);
    file->started = false;
    if (!file->open)
        return;
    file->bytes_read = file->stream.bytes_read;
    if (file->reader)
        file->format->close(file->reader);
    file->reader = NULL;
    input_stream_close(&file->stream);
    file->open = false;
}

void capture_file_free(struct capture_file *file) {
    capture_file_close(file);
    free(file->interfaces);
    file->interfaces = NULL;
}

/* Bytes that are left at the end belong to a truncated record. */
static void end_file(struct capture_file *file) {
    size_t left = input_stream_available(&file->stream);
    file->ended = true;
    if (left)
        capture_file_set_damage(file,
                                "truncated: a record needs at least %zu bytes, only %zu are left",
                                file->need, left);
}

/* Ends reading if no more bytes will come; returns whether it has. */
static bool end_reading(struct capture_file *file, enum input_state state) {
    if (state == INPUT_ENDED)
        end_file(file);
    if (state == INPUT_FAILED)
        capture_file_set_damage(file, "%s", file->stream.error);
    return file->ended;
}

/* The reader parses records that are complete in the window; if it finds none, the window is filled
 * with the bytes that it asks for. Packets point into the window, so a fill must not follow in a
 * call that returns packets. */
size_t capture_file_read(struct capture_file *file, struct packet *packets, size_t most, bool on,
                         enum input_state *state) {
    *state = INPUT_READY;
    while (!file->ended) {
        size_t count = file->format->parse(file, packets, most);
        if (count || file->ended)
            return count;
        *state =
            on ? input_stream_extend(&file->stream) : input_stream_fill(&file->stream, file->need);
        if (*state != INPUT_READY && !end_reading(file, *state))
            return 0;
    }
    return 0;
}

void capture_file_note_header(struct capture_file *file, uint32_t size, bool section) {
    struct header_blocks *headers = file->headers;
    if (!headers)
        return;
    if (!list_grow(&headers->places, &headers->room, headers->count + 1, sizeof *headers->places)) {
        headers->out_of_memory = true;
        return;
    }
    headers->places[headers->count++] =
        (struct header_place){file->frame, input_stream_offset(&file->stream), size, section};
}

uint64_t capture_file_bytes_read(const struct capture_file *file) {
    return file->open ? file->stream.bytes_read : file->bytes_read;
}

/* Interfaces of a file come in order, so a new one has the next index. */
struct interface *capture_file_interface(struct capture_file *file, uint32_t index,
                                         uint32_t *number) {
    if (index >= INTERFACES_PER_FILE_MAX)
        return NULL;
    if (index < file->interface_count) {
        *number = file->interfaces[index];
        return file->list->items[*number];
    }
    if (!list_grow(&file->interfaces, &file->interface_room, index + 1, sizeof *file->interfaces))
        return NULL;
    struct interface *added = interface_list_add(file->list, number);
    if (!added)
        return NULL;
    file->interfaces[file->interface_count++] = *number;
    added->file = file->shown;
    added->file_index = file->index;
    added->index = index;
    added->compression = file->stream.source.codec ? file->stream.source.codec->name : "none";
    return added;
}
