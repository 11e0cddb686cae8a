/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and sockets. Functions that fail return -1 and leave one line in `why`. */
#ifndef WIRETALE_ENDPOINT_H
#define WIRETALE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transfer/transfer_plan.h"

#define ERROR_SIZE   256
#define ADDRESS_SIZE 72 /* the longest IPv6 address with its scope */

union endpoint {
    struct sockaddr address;
    struct sockaddr_storage storage;
};

/* Where and how this host's own sockets are; not told to the other end. */
struct local_plan {
    const char *bind;               /* an address or name; NULL: the system's choice */
    const char *device;             /* NULL: any */
    int family;                     /* AF_UNSPEC, AF_INET, AF_INET6 */
    uint16_t port_first, port_last; /* of UDP sockets that receive; 0: the system's choice */
};

int endpoint_find(union endpoint *found, const char *host, uint16_t port, int family, bool passive,
                  char error[ERROR_SIZE]);
socklen_t endpoint_size(const union endpoint *endpoint);
uint16_t endpoint_port(const union endpoint *endpoint);
void endpoint_set_port(union endpoint *endpoint, uint16_t port);
bool endpoint_same_host(const union endpoint *one, const union endpoint *other);
void endpoint_name(const union endpoint *endpoint, char name[ADDRESS_SIZE]);

/* A listening TCP socket, non-blocking. An IPv6 one takes no IPv4. */
int endpoint_listen(const union endpoint *at, const struct local_plan *local,
                    char error[ERROR_SIZE]);

/* A TCP connection made within `limit_ns`; blocking afterwards. */
int endpoint_connect(const union endpoint *to, const struct local_plan *local,
                     const struct socket_plan *plan, uint64_t limit_ns, char error[ERROR_SIZE]);

/* A UDP socket at `at` (its port 0: one of the local plan's). */
int endpoint_bind_udp(const union endpoint *at, const struct local_plan *local,
                      const struct socket_plan *plan, char error[ERROR_SIZE]);
/* A UDP socket that sends to `to`. */
int endpoint_connect_udp(const union endpoint *to, const struct local_plan *local,
                         const struct socket_plan *plan, char error[ERROR_SIZE]);

/* The options of the plan on a socket of data; for accepted ones too. */
int endpoint_apply(int fd, int family, bool udp, const struct socket_plan *plan,
                   char error[ERROR_SIZE]);

/* So that sends and receives wait no longer. */
void endpoint_limit_waits(int fd, uint64_t ns);

#endif
