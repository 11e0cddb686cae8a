/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of this host that bound or explain a transfer: the rate of the link, from ethtool's
 * ioctl, and datagrams that UDP dropped for want of buffer, from /proc/net. */
#include "session/host_info.h"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/units.h"

/* Virtual drivers report a constant speed, which bounds nothing. */
static const char *const nominal_drivers[] = {"veth",        "tun",        "bridge", "dummy",
                                              "openvswitch", "virtio_net", "vmxnet3"};

/* `answer` is a struct of linux/ethtool.h whose `cmd` is the question. Returns false if the driver
 * does not answer it. */
static bool ask_interface(int fd, const char *name, void *answer) {
    struct ifreq request = {.ifr_data = answer};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return !ioctl(fd, SIOCETHTOOL, &request);
}

/* Unknown drivers are treated as virtual, because a wrong bound is worse than no bound. */
static bool is_nominal(int fd, const char *name) {
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    if (!ask_interface(fd, name, &driver))
        return true;
    driver.driver[sizeof driver.driver - 1] = 0;
    for (size_t i = 0; i < sizeof nominal_drivers / sizeof *nominal_drivers; i++)
        if (!strcmp(driver.driver, nominal_drivers[i]))
            return true;
    return false;
}

/* Returns 0 if the speed is unknown, as without a cable, or nominal. */
static uint64_t interface_bps(const char *name) {
    struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
    uint64_t bps = 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (!is_nominal(fd, name) && ask_interface(fd, name, &settings)) {
        uint32_t speed = ethtool_cmd_speed(&settings); /* Mbit/s */
        bps = speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed * UINT64_C(1000000);
    }
    close(fd);
    return bps;
}

/* Finds the interface by the connection's own address, because a route may change. Loopback has no
 * rate. */
uint64_t host_link_bps(const union endpoint *own) {
    const char *emulated = getenv(LINK_RATE_VARIABLE);
    double bps;
    struct ifaddrs *list = NULL;
    uint64_t found = 0;
    if (emulated && units_parse_decimal(emulated, UNIT_RATE, &bps) && bps >= 1 && bps < 1e15)
        return (uint64_t)bps;
    if (getifaddrs(&list))
        return 0;
    for (struct ifaddrs *at = list; at && !found; at = at->ifa_next)
        if (at->ifa_addr && at->ifa_addr->sa_family == own->address.sa_family &&
            !(at->ifa_flags & IFF_LOOPBACK) &&
            endpoint_same_host((const union endpoint *)at->ifa_addr, own))
            found = interface_bps(at->ifa_name);
    freeifaddrs(list);
    return found;
}

/* /proc/net/snmp has two lines that begin with "Udp:": names, then values. Columns are matched by
 * name, because kernels add some. thread-self is the network namespace of this thread, which may
 * differ from that of the process. */
static int64_t ipv4_drops(void) {
    char names[1024], values[1024] = "";
    FILE *file = fopen("/proc/thread-self/net/snmp", "re");
    int64_t found = -1;
    while (file && fgets(names, sizeof names, file))
        if (!strncmp(names, "Udp: ", 5) && fgets(values, sizeof values, file))
            break;
    char *name_rest = names, *value_rest = values, *name, *value;
    while (*values && (name = strsep(&name_rest, " \n")) && (value = strsep(&value_rest, " \n")))
        if (!strcmp(name, "RcvbufErrors"))
            found = atoll(value);
    if (file)
        fclose(file);
    return found;
}

static int64_t ipv6_drops(void) {
    char name[64];
    long long value;
    FILE *file = fopen("/proc/thread-self/net/snmp6", "re");
    int64_t found = 0; /* no such file without IPv6 */
    while (file && fscanf(file, "%63s %lld", name, &value) == 2)
        if (!strcmp(name, "Udp6RcvbufErrors"))
            found = value;
    if (file)
        fclose(file);
    return found;
}

int64_t host_udp_drops(void) {
    int64_t four = ipv4_drops();
    return four < 0 ? -1 : four + ipv6_drops();
}
