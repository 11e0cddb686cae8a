/* SPDX-License-Identifier: Apache-2.0 */
/* The options' names, and what is said of one that there is not. */
#ifndef WIRETALE_SETTINGS_OPTION_H
#define WIRETALE_SETTINGS_OPTION_H

#include <getopt.h>

/* Options without a letter. */
enum long_only {
    ONLY_HEADERS = 256,
    ONLY_IMMEDIATE,
    ONLY_NANO,
    ONLY_TOTAL_SIZE,
    ONLY_ALIGN,
    ONLY_PCAP,
    ONLY_OVERWRITE,
    ONLY_ON_CLOSE,
    ONLY_BUFFER,
    ONLY_STATUS,
    ONLY_INTERVAL,
    ONLY_JSON,
    ONLY_NO_SANDBOX,
    ONLY_WAIT,
};

/* The next option, with its value in optarg; -1 at the end, and optind is then the first word of a
 * filter. Fails with EXIT_USAGE and one line for one that there is not; no name may be abbreviated.
 */
int settings_option(int count, char **arguments);

#endif
