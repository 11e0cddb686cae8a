/* SPDX-License-Identifier: Apache-2.0 */
#include "format/foreign_format.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

#define EDITCAP "editcap %s out.pcapng"

/* ERF (Endace): a record has a header of 16 bytes and no magic number. */
#define ERF_HEADER     16
#define ERF_TYPE_MOST  48
#define ERF_FIRST_SEC  631152000u  /* 1990 */
#define ERF_LAST_SEC   4102444800u /* 2100 */
#define ERF_EXTENSIONS 0x80

/* The magic numbers are those of Wireshark's wiretap, file(1) and the formats' specifications. */
static const struct foreign_format formats[] = {
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

/* Whether a record begins here, and where the next one does. */
static bool is_erf_record(const uint8_t *bytes, size_t size, size_t *next) {
    if (size < ERF_HEADER)
        return false;
    uint32_t seconds = load_le32(bytes + 4);
    unsigned type = bytes[8] & ~ERF_EXTENSIONS & 0xFF, length = load_be16(bytes + 10);
    *next = length;
    return seconds >= ERF_FIRST_SEC && seconds < ERF_LAST_SEC && type >= 1 &&
           type <= ERF_TYPE_MOST && length >= ERF_HEADER;
}

/* Two records, or one that is the whole file. */
static bool is_erf(const uint8_t *bytes, size_t size) {
    size_t next, unused;
    if (!is_erf_record(bytes, size, &next) || next > size)
        return false;
    return next == size || is_erf_record(bytes + next, size - next, &unused);
}

const struct foreign_format *foreign_format_of(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (size >= formats[i].size && !memcmp(bytes, formats[i].magic, formats[i].size))
            return &formats[i];
    return is_erf(bytes, size) ? &erf : NULL;
}
