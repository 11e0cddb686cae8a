/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_RECEIVE_H
#define WIRETALE_RECEIVE_H

int receive_main(int argc, char **argv);

#endif
