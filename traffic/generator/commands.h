/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of wiretale-traffic. `argv` begins after the command's name; each returns an exit
 * code (common/log.h). */
#ifndef WIRETALE_COMMANDS_H
#define WIRETALE_COMMANDS_H

int send_main(int argc, char **argv);
int receive_main(int argc, char **argv);
int ttcp_main(int argc, char **argv);
int path_main(int argc, char **argv);

#endif
