/* SPDX-License-Identifier: Apache-2.0 */
/* Packet sockets. Segments that an adapter merged, and those that it would still have to split, are
 * not packets of the wire, so these offloads are switched off. The kernel removes a VLAN tag from
 * the frame and passes it as ancillary data; it is put back. */
#include "io/link_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/block.h"
#include "common/clock.h"
#include "common/log.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define BUFFER_BYTES (64 << 20)

static void set(const struct link_port *port, int level, int option, int value, const char *name) {
    if (setsockopt(port->socket, level, option, &value, sizeof value))
        fail(EXIT_MISSING, "%s: cannot set %s: %s", port->name, name, strerror(errno));
}

/* An interface that does not support an offload refuses the request, which is as good. */
static void stop_merging(const struct link_port *port) {
    static const uint32_t commands[] = {ETHTOOL_SGRO, ETHTOOL_STSO, ETHTOOL_SGSO};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct ethtool_value value = {.cmd = commands[i], .data = 0};
        struct ifreq request = {.ifr_data = (char *)&value};
        strncpy(request.ifr_name, port->name, IFNAMSIZ - 1);
        (void)!ioctl(port->socket, SIOCETHTOOL, &request);
    }
}

/* Packets wait in it while the worker has no CPU. SO_RCVBUFFORCE may exceed net.core.rmem_max, if
 * it is permitted. */
static void set_buffer(const struct link_port *port) {
    int bytes = BUFFER_BYTES;
    if (setsockopt(port->socket, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        set(port, SOL_SOCKET, SO_RCVBUF, bytes, "SO_RCVBUF");
}

/* Frames that the link itself sends must not come back, hence PACKET_IGNORE_OUTGOING. Exits with
 * EXIT_IO if the interface is missing, and with EXIT_MISSING without the privilege. */
void link_port_open(struct link_port *port, const char *name) {
    *port = (struct link_port){.name = name};
    unsigned index = if_nametoindex(name);
    if (!index)
        fail(EXIT_IO, "%s: no such interface in this network namespace", name);
    port->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          0); /* 0: no packets before bind() */
    if (port->socket < 0)
        fail(EXIT_MISSING, "%s: cannot open a packet socket (it needs root or CAP_NET_RAW): %s",
             name, strerror(errno));
    set_buffer(port);
    set(port, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
    set(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING (Linux 4.20)");
    set(port, SOL_PACKET, PACKET_AUXDATA, 1, "PACKET_AUXDATA");
    stop_merging(port);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    if (bind(port->socket, (struct sockaddr *)&address, sizeof address))
        fail(EXIT_MISSING, "%s: cannot listen on it: %s", name, strerror(errno));
    struct packet_mreq all = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    if (setsockopt(port->socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all))
        fail(EXIT_MISSING, "%s: cannot see packets for others: %s", name, strerror(errno));
}

union control {
    char bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    struct cmsghdr alignment;
};

/* Puts the VLAN tag behind the addresses, where it was on the wire. If the kernel does not report
 * the TPID, it is that of IEEE 802.1Q. */
static void restore_tag(struct port_frame *frame, const struct tpacket_auxdata *data) {
    if (!(data->tp_status & TP_STATUS_VLAN_VALID) || frame->size < 12 ||
        frame->size + 4 > MAX_FRAME)
        return;
    uint16_t type = data->tp_status & TP_STATUS_VLAN_TPID_VALID ? data->tp_vlan_tpid : 0x8100;
    memmove(frame->bytes + 16, frame->bytes + 12, frame->size - 12);
    block_store(frame->bytes + 12, type, 2);
    block_store(frame->bytes + 14, data->tp_vlan_tci, 2);
    frame->size += 4;
}

/* Reads the timestamp and the VLAN tag of a frame from its ancillary data. */
static void take_control(struct link_port *port, struct port_frame *frame, struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(part), sizeof time);
            frame->in_ns = timespec_ns(time);
        }
        if (part->cmsg_level == SOL_PACKET && part->cmsg_type == PACKET_AUXDATA) {
            struct tpacket_auxdata data;
            memcpy(&data, CMSG_DATA(part), sizeof data);
            port->unfinished += !!(data.tp_status & TP_STATUS_CSUMNOTREADY);
            restore_tag(frame, &data);
        }
    }
}

/* Four bytes of each buffer are kept for a tag. ENETDOWN passes, because an interface may come up
 * again. */
unsigned link_port_receive(struct link_port *port, struct port_frame *frames) {
    struct mmsghdr messages[PORT_BATCH];
    struct iovec parts[PORT_BATCH];
    union control controls[PORT_BATCH];
    memset(messages, 0, sizeof messages);
    for (unsigned i = 0; i < PORT_BATCH; i++) {
        parts[i] = (struct iovec){frames[i].bytes, MAX_FRAME - 4};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i],
                                              .msg_iovlen = 1,
                                              .msg_control = &controls[i],
                                              .msg_controllen = sizeof controls[i]};
    }
    int count = recvmmsg(port->socket, messages, PORT_BATCH, MSG_DONTWAIT, NULL);
    if (count < 0 && errno != EAGAIN && errno != EINTR && errno != ENETDOWN)
        fail(EXIT_IO, "%s: cannot receive: %s", port->name, strerror(errno));
    for (int i = 0; i < count; i++) {
        frames[i].size = messages[i].msg_len;
        frames[i].in_ns = 0;
        take_control(port, &frames[i], &messages[i].msg_hdr);
    }
    return count > 0 ? (unsigned)count : 0;
}

/* Never waits: if the device's queue is full, waiting would delay all packets behind. */
unsigned link_port_send(const struct link_port *port, struct link_packet *const *packets,
                        unsigned count) {
    struct mmsghdr messages[PORT_BATCH];
    struct iovec parts[PORT_BATCH];
    memset(messages, 0, count * sizeof *messages);
    for (unsigned i = 0; i < count; i++) {
        parts[i] = (struct iovec){packets[i]->frame, packets[i]->size};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    int sent = sendmmsg(port->socket, messages, count, MSG_DONTWAIT);
    return sent > 0 ? (unsigned)sent : 0;
}

bool link_port_send_frame(const struct link_port *port, const uint8_t *frame, uint32_t size) {
    return send(port->socket, frame, size, MSG_DONTWAIT) == (ssize_t)size;
}

uint64_t link_port_overruns(const struct link_port *port) {
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    if (getsockopt(port->socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size))
        return 0;
    return stats.tp_drops;
}
