/* SPDX-License-Identifier: Apache-2.0 */
/* The program as its user calls it: `wiretale send` when wiretale started it, which says so by
 * argv[0], and else `wiretale-traffic send`. */
#ifndef WIRETALE_PROGRAM_NAME_H
#define WIRETALE_PROGRAM_NAME_H

#define PROGRAM_NAME_ROOM 64

/* "" as the command: of no command. */
void program_name_set(const char *argv0, const char *command);

/* With the command: what messages begin with. */
const char *program_name(void);
/* Without: what examples begin with. */
const char *program_base(void);

/* One line on standard error: the name, a colon and this. */
void program_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
