/* SPDX-License-Identifier: Apache-2.0 */
/* The input: capture files, read as one sequence of packets in time order.
 *
 * Files are pcap or pcapng in every variant that libpcap reads, plain or compressed with gzip,
 * zstd or lz4. Formats are detected by the first bytes, never by names. Memory is bounded for
 * any size and number of files, because a file is opened only when the merge reaches its first
 * packet. */
#ifndef WIRETALE_MERGED_INPUT_H
#define WIRETALE_MERGED_INPUT_H

#include "format/capture_file.h"

struct merged_input;

/* Every format, NULL last. */
extern const struct capture_format *const capture_formats[];

/* Opens `count` paths ("-" is standard input; the caller must have expanded folders). Rows and
 * messages show their `names`, unless it is NULL, instead of them. Returns
 * NULL with `error` set (ERROR_UNREADABLE, with file, offset and expectation) unless every path
 * opens and begins as a capture. An empty or truncated file header is unreadable; any later
 * error is damage. */
struct merged_input *merged_input_open(const char *const *paths, const char *const *names,
                                       size_t count, struct error *error);
/* The same for a cut, which takes over other blocks of the files (format/kept_blocks.h). */
struct merged_input *merged_input_open_keeping(const char *const *paths, size_t count,
                                               struct kept_blocks *kept, struct error *error);
/* The same for files that come after those of `before`, which has ended and is closed; numbers of
 * interfaces and files go on. If it fails, `before` stays. */
struct merged_input *merged_input_follow(struct merged_input *before, const char *const *paths,
                                         const char *const *names, size_t count,
                                         struct error *error);
/* Lets threads, fewer than `jobs`, decompress regular files ahead of the reader from now on. It
 * must be called before the first read. The packets of each read do not depend on it. */
void merged_input_read_ahead(struct merged_input *set, unsigned jobs);
void merged_input_close(struct merged_input *set);

/* Reads up to `most` packets in time order and returns their number, 0 at the end of the input.
 * Their data are valid until the next call. Inside a file the order is the file's own, even if
 * times step back; across files the earliest next packet comes first, on a tie that of the lower
 * file_index. Damage ends that file only. */
size_t merged_input_read(struct merged_input *set, struct packet *packets, size_t most);

/* Reads further packets without invalidating those that were returned before. Returns 0 if only
 * merged_input_read() can continue. */
size_t merged_input_read_on(struct merged_input *set, struct packet *packets, size_t most);

/* Memory for the data of packets. */
struct packet_bytes {
    uint8_t *bytes; /* from malloc() */
    size_t size;
};

/* Makes the data of packets valid as long as `kept` is, which the caller frees: all packets that
 * were returned since the last merged_input_read(). Returns false if that would take too much
 * memory: they are as before. */
bool merged_input_keep(struct merged_input *set, struct packet *packets, size_t count,
                       struct packet_bytes *kept);

/* Returns whether all input was read. If it is false after 0 packets, a signal came or a pipe
 * has no data yet: the caller should call again. */
bool merged_input_ended(const struct merged_input *set);

/* Interfaces appear when their blocks are read; their number only grows, and pointers stay valid
 * until merged_input_close(). */
const struct interface_list *merged_input_interfaces(const struct merged_input *set);

/* Files are numbered as in `paths`. Returns the damage of a file, whose `present` is false unless
 * reading ended early. */
size_t merged_input_files(const struct merged_input *set);
const struct damage *merged_input_damage(const struct merged_input *set, size_t file_index);

/* Compressed bytes on disk: those read so far, and the total, 0 if unknown. */
uint64_t merged_input_bytes_read(const struct merged_input *set);
uint64_t merged_input_bytes_total(const struct merged_input *set);

#endif
