/* SPDX-License-Identifier: Apache-2.0 */
/* Confines a receiver that listens, before it hears from anybody. */
#ifndef WIRETALE_RECEIVE_CONFINE_H
#define WIRETALE_RECEIVE_CONFINE_H

#include "receive/session_set.h"

/* As root, becomes another user without capabilities; leaves files and system calls that tests
 * need. Exits with one line if it cannot, or if that user may not write to --output-dir. To be
 * called before threads start. */
void receive_confine(const struct receive_options *options);

#endif
