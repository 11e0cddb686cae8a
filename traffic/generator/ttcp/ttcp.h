/* SPDX-License-Identifier: Apache-2.0 */
/* Tests with a classic ttcp or PCATTCP at the other end. */
#ifndef WIRETALE_TTCP_H
#define WIRETALE_TTCP_H

int ttcp_main(int argc, char **argv);

#endif
