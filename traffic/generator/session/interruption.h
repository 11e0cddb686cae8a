/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM end tests in order, with a report; a second one ends the program. */
#ifndef WIRETALE_INTERRUPTION_H
#define WIRETALE_INTERRUPTION_H

void interruption_watch(void);

#endif
