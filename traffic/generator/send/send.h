/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_SEND_H
#define WIRETALE_SEND_H

int send_main(int argc, char **argv);

#endif
