/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_CAPTURE_FIND_H
#define WIRETALE_CAPTURE_FIND_H

/* Runs `find` with the arguments after it and returns the exit code. */
int find_main(int count, char **arguments);

#endif
