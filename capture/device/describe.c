/* SPDX-License-Identifier: Apache-2.0 */
/* Describes an interface by ioctls, which need no privilege. A question that the driver does not
 * answer leaves its field empty. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/device.h"

#define SPEED_UNKNOWN_MBIT 65535u

/* Asks the driver. Returns false if it does not support the question. */
static bool ask(int fd, const char *name, void *question) {
    struct ifreq request = {.ifr_data = question};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    return !ioctl(fd, SIOCETHTOOL, &request);
}

static __attribute__((format(printf, 2, 3))) void add_fact(struct description *description,
                                                           const char *format, ...) {
    va_list arguments;
    size_t used = strlen(description->facts);
    va_start(arguments, format);
    vsnprintf(description->facts + used, sizeof description->facts - used, format, arguments);
    va_end(arguments);
}

/* Offloads are part of the description, because they make captured packets differ from those on the
 * wire: joined segments, missing checksums. */
static void describe_offloads(int fd, const char *name, struct description *description) {
    static const struct {
        const char *name;
        uint32_t command, mask;
    } offloads[] = {
        {"rx-checksumming", ETHTOOL_GRXCSUM, ~0u},
        {"tx-checksumming", ETHTOOL_GTXCSUM, ~0u},
        {"tso", ETHTOOL_GTSO, ~0u},
        {"gso", ETHTOOL_GGSO, ~0u},
        {"gro", ETHTOOL_GGRO, ~0u},
        {"lro", ETHTOOL_GFLAGS, ETH_FLAG_LRO},
        {"rx-vlan", ETHTOOL_GFLAGS, ETH_FLAG_RXVLAN},
    };
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        struct ethtool_value question = {.cmd = offloads[i].command};
        if (!ask(fd, name, &question))
            continue;
        add_fact(description, " %s=%s", offloads[i].name,
                 question.data & offloads[i].mask ? "on" : "off");
    }
}

/* Driver, firmware and bus identify the adapter, if time stamps or drops look wrong. */
static void describe_driver(int fd, const char *name, struct description *description) {
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    if (!ask(fd, name, &driver))
        return;
    snprintf(description->hardware, sizeof description->hardware, "%.31s %.31s%s%.31s",
             driver.driver, driver.fw_version, *driver.fw_version ? " " : "", driver.bus_info);
    size_t end = strlen(description->hardware);
    while (end && description->hardware[end - 1] == ' ')
        description->hardware[--end] = '\0';
}

static void describe_address(int fd, const char *name, struct description *description) {
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, SIOCGIFHWADDR, &request) || request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        return;
    memcpy(description->mac, request.ifr_hwaddr.sa_data, sizeof description->mac);
    description->has_mac = true;
}

/* Virtual interfaces report no speed, or one that means unknown. */
static void describe_speed(int fd, const char *name, struct description *description) {
    struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
    if (!ask(fd, name, &command))
        return;
    uint32_t mbit = ethtool_cmd_speed(&command);
    if (!mbit || mbit == (uint32_t)SPEED_UNKNOWN || mbit == SPEED_UNKNOWN_MBIT)
        return;
    description->speed_bps = mbit * UINT64_C(1000000);
    add_fact(description, " speed_mbit=%u", mbit);
    if (command.duplex == DUPLEX_FULL || command.duplex == DUPLEX_HALF)
        add_fact(description, " duplex=%s", command.duplex == DUPLEX_FULL ? "full" : "half");
}

static void describe_mtu(int fd, const char *name, struct description *description) {
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (!ioctl(fd, SIOCGIFMTU, &request))
        add_fact(description, " mtu=%d", request.ifr_mtu);
}

/* The hardware clock of the adapter, if it has one (/dev/ptpN). */
static void describe_clock(int fd, const char *name, struct description *description) {
    struct ethtool_ts_info stamps = {.cmd = ETHTOOL_GET_TS_INFO};
    if (ask(fd, name, &stamps) && stamps.phc_index >= 0)
        add_fact(description, " phc=%d", stamps.phc_index);
}

void device_describe(const char *name, struct description *description) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    describe_mtu(fd, name, description);
    describe_speed(fd, name, description);
    describe_clock(fd, name, description);
    describe_offloads(fd, name, description);
    describe_driver(fd, name, description);
    describe_address(fd, name, description);
    close(fd);
}
