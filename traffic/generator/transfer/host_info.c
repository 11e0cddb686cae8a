/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of this host that bound or explain a transfer: the rate of the link, and whether
 * the kernel segments joined datagrams, from ethtool's ioctl, and datagrams that UDP dropped for
 * want of buffer, from /proc/net.
 *
 * The kernel segments a joined datagram when it leaves the queueing discipline and before captures
 * see it (validate_xmit_skb() in net/core/dev.c), unless the interface has the feature
 * tx-udp-segmentation: a network card then segments it behind the captures of this host, and a
 * virtual interface passes it on as it is, as loopback and veth do. */
#include "transfer/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/units.h"

/* Virtual drivers report a constant speed, which bounds nothing. */
static const char *const nominal_drivers[] = {"veth",        "tun",        "bridge", "dummy",
                                              "openvswitch", "virtio_net", "vmxnet3"};

#define MAX_FEATURES     256u /* the kernel has 64 */
#define FEATURES_OF_WORD 32

/* Answers of which each has a list at its end. */
union answer_list {
    struct ethtool_sset_info sets;
    struct ethtool_gstrings names;
    struct ethtool_gfeatures features;
    uint8_t room[sizeof(struct ethtool_gstrings) + MAX_FEATURES * ETH_GSTRING_LEN];
};

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

/* Returns the number of a feature, -1 if it is unknown. */
static int find_feature(int fd, const char *interface, const char *name) {
    union answer_list answer = {
        .sets = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = UINT64_C(1) << ETH_SS_FEATURES}};
    if (!ask_interface(fd, interface, &answer) || !answer.sets.sset_mask ||
        answer.sets.data[0] > MAX_FEATURES)
        return -1;
    answer.names =
        (struct ethtool_gstrings){.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES};
    if (!ask_interface(fd, interface, &answer))
        return -1;
    for (uint32_t i = 0; i < answer.names.len && i < MAX_FEATURES; i++)
        if (!strncmp((const char *)answer.names.data + (size_t)i * ETH_GSTRING_LEN, name,
                     ETH_GSTRING_LEN))
            return (int)i;
    return -1;
}

/* Returns false only if the interface is known to lack the feature. */
static bool may_have_feature(int fd, const char *interface, const char *name) {
    union answer_list answer = {
        .features = {.cmd = ETHTOOL_GFEATURES, .size = MAX_FEATURES / FEATURES_OF_WORD}};
    int number = find_feature(fd, interface, name);
    if (number < 0 || !ask_interface(fd, interface, &answer) ||
        (uint32_t)number / FEATURES_OF_WORD >= answer.features.size)
        return true;
    return answer.features.features[number / FEATURES_OF_WORD].active >>
               (number % FEATURES_OF_WORD) &
           1;
}

/* Returns the interface by which datagrams of a connected socket leave; 0: unknown. A socket that
 * is bound to an interface (--device) needs no route. */
static int interface_of(int fd) {
    union endpoint own, peer;
    int bound = 0;
    socklen_t size = sizeof bound, own_size = sizeof own, peer_size = sizeof peer;
    if (!getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &bound, &size) && bound)
        return bound;
    if (getsockname(fd, &own.address, &own_size) || getpeername(fd, &peer.address, &peer_size))
        return 0;
    return host_interface_to(&own, &peer);
}

/* Other kinds of interfaces than Ethernet's, such as tunnels, may pass joined datagrams on. A
 * shaper counts the bytes of a joined datagram otherwise than those of its segments (tbf_segment()
 * leaves out the overhead of a frame). */
bool host_segments_datagrams(int fd) {
    struct ifreq request = {0};
    int interface = interface_of(fd);
    return interface && if_indextoname((unsigned)interface, request.ifr_name) &&
           !ioctl(fd, SIOCGIFHWADDR, &request) && request.ifr_hwaddr.sa_family == ARPHRD_ETHER &&
           !may_have_feature(fd, request.ifr_name, "tx-udp-segmentation") &&
           !host_may_shape(interface);
}

/* Any user may set a time of CLOCK_MONOTONIC. Other disciplines than fq would ignore it. */
bool host_time_datagrams(int fd, char error[ERROR_SIZE]) {
    struct sock_txtime times = {.clockid = CLOCK_MONOTONIC};
    char name[IF_NAMESIZE];
    int interface = interface_of(fd);
    if (!interface || !if_indextoname((unsigned)interface, name))
        snprintf(error, ERROR_SIZE, "--kernel-pacing: the interface to the peer is unknown");
    else if (!host_has_fq(interface))
        snprintf(error, ERROR_SIZE,
                 "--kernel-pacing: expected the queueing discipline fq at %s (tc qdisc replace dev "
                 "%s root fq)",
                 name, name);
    else if (setsockopt(fd, SOL_SOCKET, SO_TXTIME, &times, sizeof times))
        snprintf(error, ERROR_SIZE, "--kernel-pacing: %s", strerror(errno));
    else
        return true;
    return false;
}

/* Returns the number that `format` finds in a line of the file, -1 if there is none. thread-self is
 * the network namespace of this thread, which may differ from that of the process. */
static int64_t read_counter(const char *path, const char *format) {
    char line[1024];
    long long value = -1;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, format, &value) != 1)
        value = -1;
    if (file)
        fclose(file);
    return value;
}

/* RcvbufErrors is the fifth number of the second of two lines "Udp:"; the first has names. Kernels
 * add numbers only at the end. Without IPv6 there is no snmp6. */
int64_t host_udp_drops(void) {
    int64_t four = read_counter("/proc/thread-self/net/snmp", "Udp: %*u %*u %*u %*u %lld");
    int64_t six = read_counter("/proc/thread-self/net/snmp6", "Udp6RcvbufErrors %lld");
    return four < 0 || six < 0 ? four : four + six;
}

/* BLAKE2b-128 of the text of boot_id, keyed with the run. */
void host_name_kernel(uint64_t run, char name[HOST_NAME_SIZE]) {
    unsigned char bytes[128], digest[(HOST_NAME_SIZE - 1) / 2];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    name[0] = 0;
    if (got <= 0 || sodium_init() < 0)
        return;
    uint64_t key[2] = {htole64(run)}; /* libsodium needs 16 bytes */
    crypto_generichash(digest, sizeof digest, bytes, (size_t)got, (const unsigned char *)key,
                       sizeof key);
    sodium_bin2hex(name, HOST_NAME_SIZE, digest, sizeof digest);
}
