/* SPDX-License-Identifier: Apache-2.0 */
/* The input: one or many capture files, read as one sequence of packets in time order.
 *
 * Files are pcap and pcapng of every variant that libpcap reads, plain or compressed with gzip,
 * zstd or lz4, told by their first bytes and never by their names. Memory is bounded whatever the
 * files' sizes and numbers: a file is opened only when the merge reaches its first packet.
 */
#ifndef WIRETALE_MERGED_INPUT_H
#define WIRETALE_MERGED_INPUT_H

#include "format/capture_file.h"

struct merged_input;

/* Opens `count` paths ("-" is standard input; folders are expanded by the caller). Every path must
 * open and begin as a capture, else NULL with error->kind ERROR_UNREADABLE naming file, offset
 * and what was expected. An empty or cut file header is unreadable; anything later is damage. */
struct merged_input *merged_input_open(const char *const *paths, size_t count, struct error *error);
void merged_input_close(struct merged_input *set);

/* Fills up to `most` packets in time order and returns their number, 0 at the end of the input.
 * Their data stays valid until the next call. Within a file the order is the file's own, whatever
 * its times (a backward step is the analysis's business); across files the earliest head is next,
 * the lower file_index first on a tie. Damage ends that file only. */
size_t merged_input_read(struct merged_input *set, struct packet *packets, size_t most);

/* Whether all was read. After 0 packets without it a signal came, or a pipe has nothing yet: the
 * caller has a turn and reads on. */
bool merged_input_ended(const struct merged_input *set);

/* Interfaces appear as their blocks are read; their number only grows. */
size_t merged_input_interfaces(const struct merged_input *set);
const struct interface *merged_input_interface(const struct merged_input *set, size_t index);

size_t merged_input_files(const struct merged_input *set);
const char *merged_input_file(const struct merged_input *set, size_t file_index);
const struct damage *merged_input_damage(const struct merged_input *set, size_t file_index);

/* Bytes of the files as they lie on disk (compressed): read so far, and in all (0 when unknown). */
uint64_t merged_input_bytes_read(const struct merged_input *set);
uint64_t merged_input_bytes_total(const struct merged_input *set);

#endif
