/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng blocks about the host that captured: its processes, and secrets of its connections. */
#ifndef WIRETALE_PCAPNG_PROCESS_H
#define WIRETALE_PCAPNG_PROCESS_H

#include "format/pcapng_section.h"

/* An option of a process block, and of an entry: its name. */
#define OPTION_PROCESS_NAME 2

/* Options of a packet that concern its process (the head of pcapng_process.c). */
enum process_option {
    OPTION_PROCESS_ID = 8,
    OPTION_PROCESS = 0x8001,
    OPTION_SERVICE_CLASS = 0x8002,
    OPTION_EFFECTIVE_PROCESS = 0x8003,
    OPTION_DARWIN_LAST = 0x800A
};

/* Each takes a block of its type; they return false with damage set. */
bool pcapng_take_secrets(struct capture_file *file, struct pcapng_block *block);
bool pcapng_take_process(struct capture_file *file, struct pcapng_block *block);
bool pcapng_take_custom(struct capture_file *file, struct pcapng_block *block);

/* Returns the process that an option of a packet names, NULL if it is unknown or the option is
 * another one. */
const struct process *pcapng_process_of(struct capture_file *file, const struct packet *packet,
                                        const struct pcapng_option *option, bool big_endian);

#endif
