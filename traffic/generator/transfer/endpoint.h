/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and sockets. If a function fails, it returns -1 (or false) and writes one line without
 * a line feed into `error`. */
#ifndef WIRETALE_ENDPOINT_H
#define WIRETALE_ENDPOINT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transfer/transfer_plan.h"

#define ERROR_SIZE     256
#define ADDRESS_SIZE   72 /* the longest IPv6 address with its scope */
#define HOST_NAME_SIZE 33
#define MOST_ADDRESSES 8 /* of a name */
#define REASONS_SIZE   (MOST_ADDRESSES * (ADDRESS_SIZE + 128))

union endpoint {
    struct sockaddr address;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    struct sockaddr_storage storage;
};

/* Options of this host's own sockets, which the peer does not learn. */
struct local_plan {
    const char *bind;               /* address or name; NULL: the system chooses */
    const char *device;             /* interface; NULL: any */
    uint16_t port_first, port_last; /* of receiving UDP sockets; 0: the system chooses */
};

/* Parses the option "40000-40100" into a local_plan (common/options.h). Returns false if it is
 * anything else. */
bool local_plan_take_ports(void *local, const char *text, const char **expected);

/* Resolves `host` with the flags of getaddrinfo(3) and stores its addresses, each once, in the
 * order of RFC 6724. NULL with AI_PASSIVE is any address. Returns their number, at least 1, or -1.
 */
int endpoint_find(union endpoint list[MOST_ADDRESSES], const char *host, uint16_t port, int family,
                  int flags, char error[ERROR_SIZE]);
/* Appends an address and the reason why it cannot be used to a text. */
void endpoint_add_reason(char reasons[REASONS_SIZE], const union endpoint *endpoint,
                         const char *reason);
socklen_t endpoint_size(const union endpoint *endpoint);
uint16_t endpoint_port(const union endpoint *endpoint);
void endpoint_set_port(union endpoint *endpoint, uint16_t port);
bool endpoint_same_host(const union endpoint *one, const union endpoint *other);
/* Writes the numeric address, without the port. */
void endpoint_name(const union endpoint *endpoint, char name[ADDRESS_SIZE]);

/* Each returns a descriptor. A `plan` of NULL leaves the system's options. */

/* Listens at an address, non-blocking. An IPv6 socket accepts no IPv4. */
int endpoint_listen(const union endpoint *at, const struct local_plan *local,
                    char error[ERROR_SIZE]);
/* Returns whether errno of a failed endpoint_listen() is that of an address which this host does
 * not have. */
bool endpoint_is_absent(void);
/* Connects within `limit_ns`; the socket is blocking afterwards. */
int endpoint_connect(const union endpoint *to, const struct local_plan *local,
                     const struct socket_plan *plan, uint64_t limit_ns, char error[ERROR_SIZE]);
/* Binds a UDP socket to the address `at` and to a port of `local`; the port of `at` is ignored. */
int endpoint_bind_udp(const union endpoint *at, const struct local_plan *local,
                      const struct socket_plan *plan, char error[ERROR_SIZE]);
int endpoint_connect_udp(const union endpoint *to, const struct local_plan *local,
                         const struct socket_plan *plan, char error[ERROR_SIZE]);

/* Sets the options of `plan` on a data socket. Returns 0 or -1. */
int endpoint_apply(int fd, int family, bool udp, const struct socket_plan *plan,
                   char error[ERROR_SIZE]);

/* Environment variable with the rate of an emulated link (10M, 1Gbit), because the interface of a
 * lab's host reports none. */
#define LINK_RATE_VARIABLE "WIRETALE_LINK_RATE"

/* Figures of this host (host_info.c, host_drops.c). */

/* Returns bit/s: LINK_RATE_VARIABLE, else the rate of the interface with address `own`; 0 if
 * unknown. A measured rate above it is not a rate of the wire. */
uint64_t host_link_bps(const union endpoint *own);
/* Returns the index of the interface of the route to the peer; 0 if there is none. `own`: of a UDP
 * socket with that address, because rules of the route may depend on it; NULL: of any packet. */
int host_interface_to(const union endpoint *own, const union endpoint *peer);
/* Returns whether packets at an interface may wait for a rate; true if unknown. */
bool host_may_shape(int interface);
/* Returns whether the kernel segments joined datagrams of a connected UDP socket before its
 * interface, so that captures there see each datagram of the wire, and no shaper sees them joined;
 * false if unknown. */
bool host_segments_datagrams(int fd);
/* Returns whether an interface has the queueing discipline fq, for all its queues. */
bool host_has_fq(int interface);
/* Lets the kernel send datagrams of a connected socket at their times of CLOCK_MONOTONIC
 * (SO_TXTIME), for which their interface must have fq. Returns false with `error` set. */
bool host_time_datagrams(int fd, char error[ERROR_SIZE]);
/* Returns the datagrams that all UDP sockets of this host dropped so far because their buffers were
 * full (RcvbufErrors of IPv4 and IPv6); -1 if unknown. */
int64_t host_udp_drops(void);

/* Writes a name by which two ends of a run recognize that they are under the same kernel, in
 * hexadecimal: its boot_id, hashed so that it is of no other use. Empty if there is none. */
void host_name_kernel(uint64_t run, char name[HOST_NAME_SIZE]);

/* Packets that this host dropped at the interface to the peer, of all traffic; -1: unknown. */
struct host_drops {
    int interface;    /* index; 0: unknown */
    int64_t queue;    /* by the queueing disciplines, of packets to be sent */
    int64_t sent;     /* by the interface, of packets to be sent */
    int64_t received; /* by the interface and the queue of the CPU behind it */
};

/* Reads the counters of drops->interface, which is that of the route to the peer if it is 0. */
void host_drops_read(struct host_drops *drops, const union endpoint *peer);

/* Bounds the time that a send or receive waits: it then fails with EAGAIN. */
void endpoint_limit_waits(int fd, uint64_t ns);

#endif
