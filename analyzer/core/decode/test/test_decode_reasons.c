/* SPDX-License-Identifier: Apache-2.0 */
/* Every reason not to be decoded, each length check at its least length and one byte below, each
 * bound on depth at its last level and one above: packets made by hand, and what is to be known of
 * them. A reason without a row fails the test. */
#include <stdarg.h>
#include <string.h>

#include "common/test/check.h"
#include "decode/headers.h"

#define LOOPBACK 0 /* link types as in capture files */
#define ETHER    1
#define PPP      9
#define RAW      101
#define HDLC     104
#define WLAN     105
#define COOKED   113
#define PRISM    119
#define RADIOTAP 127
#define PPI      192
#define COOKED_2 276

struct row {
    const char *what;
    uint16_t link_type;
    const char *bytes;   /* those captured, in hexadecimal digits; blanks are skipped. `+1` at the
                            end:   bytes on the wire that were not captured */
    const char *decoded; /* as describe() has it */
};

/* A header of the least length; without its last byte, which was on the wire; without it on the
 * wire. */
#define LEAST_KEPT(what, link, bytes, last, decoded, cut, absent)                                  \
    {what, link, bytes last, decoded}, {what ", cut", link, bytes " +1", cut}, {                   \
        what ", absent", link, bytes, absent                                                       \
    }

/* The same if both reasons are those of a layer. */
#define LEAST(what, layer, link, bytes, last, decoded, kept)                                       \
    LEAST_KEPT(what, link, bytes, last, decoded, layer "-cut" kept, layer "-short" kept)

/* The same in an IP packet, whose header tells the length: `below` one byte less than `ip`. */
#define LEAST_IN(what, ip, below, bytes, last, decoded, cut, absent)                               \
    {what, RAW, ip bytes last, decoded}, {what ", cut", RAW, ip bytes " +1", cut}, {               \
        what ", absent", RAW, below bytes, absent                                                  \
    }

#define TWICE(x)   x x
#define TIMES_4(x) TWICE(x) TWICE(x)
#define TIMES_6(x) TIMES_4(x) TWICE(x)
#define TIMES_7(x) TIMES_6(x) x
#define TIMES_8(x) TIMES_4(x) TIMES_4(x)
#define ZERO_4     "00000000 "
#define ZERO_7     "00000000 000000 "
#define ZERO_8     "00000000 00000000 "

/* Link headers; what is left open is digits too. Destination, source, type or length: */
#define ETHERNET(type) "020000000001 020000000002 " type " "
#define ETHER_CUT      "020000000001 020000000002 08" /* all but a byte */
#define SNAP(type)     "aaaa03 000000 " type " "      /* 802.2, organization, EtherType */
#define VLAN(id, type) id " " type " "
#define VLANS_7(type)  ETHERNET("8100") TIMES_6(VLAN("0005", "8100")) VLAN("0005", type)
#define VLANS_8(type)  ETHERNET("8100") TIMES_7(VLAN("0005", "8100")) VLAN("0005", type)
#define MPLS           "000101ff " /* label 16, the only one */

/* IP; a length of 0 (V4_TCP) lets the frame end it. Version and header length, traffic class, total
 * length, identification; fragment; time to live, protocol, addresses. check_network() has them. */
#define V4_START(first, len)             first " b8 " len " 0001 "
#define V4_REST(protocol)                " 40 " protocol " 0000 0a000001 0a000002 "
#define V4(len, protocol)                V4_START("45", len) "0000" V4_REST(protocol)
#define V4_IHL(first, len)               V4_START(first, len) "0000" V4_REST("3b")
#define V4_FRAGMENT(len, word, protocol) V4_START("45", len) word V4_REST(protocol)
#define V4_TCP                           V4("0000", "06")
#define V6_ADDRESSES                     "fd000000000000000000000000000001 fe" ZERO_7 ZERO_7 "02 "
#define V6(len, next)                    "6b800000 " len " " next " 40 " V6_ADDRESSES
#define EMPTY                            V4("0014", "3b")         /* 20 bytes, no next header */
#define EMPTY_6                          V6("0000", "3b")         /* 40 bytes */
#define OPTIONS_8(next)                  next "00 0104 00000000 " /* destination options: padding */

/* Ports 1024 and 80, sequence, acknowledgment, data offset, flags, window, checksum, urgent
 * pointer; ports, length, checksum. */
#define TCP(offset)         "0400 0050 00000001 00000002 " offset "1 11 1234 abcd 0000 "
#define UDP(port, len)      "0400 " port " " len " abcd "
#define INNER               ETHERNET("0800") EMPTY
#define VXLAN(port, header) V4("0046", "11") UDP(port, "0032") header " " INNER

/* What is known of them. */
#define EMPTY_AT(offset)   "ipv4@" offset " 20+0 p59"
#define EMPTY_6_AT(offset) "ipv6@" offset " 40+0 p59"
#define VLANS_7_THEN       TIMES_7("vlan 5, ")
#define VLANS_8_THEN       TIMES_8("vlan 5, ")
#define GRE_OUTER(n)       "ipv4@0 20+" n " p47"
#define UDP_OUTER(port)    "ipv4@0 20+50 p17 1024>" port " t8"
#define NO_OPTIONS(n)      "ipv4@0 20+" n " p6 1024>80 t" n
#define OPTIONS(n, seen)   "ipv4@0 20+" n " p6 1024>80 t" n " options " seen

/* Linux cooked capture: packet type, ARPHRD, address length, address, protocol 4. */
#define COOKED_802_2 "0000 0001 0006 0200000000010000 0004 "

static const struct row link_rows[] = {
    {"unknown link type", 147, "00", "link-type"},
    {"nothing captured", ETHER, "+60", "link-cut"},
    {"nothing sent", ETHER, "", "link-short"},
    LEAST("Ethernet", "link", ETHER, ETHER_CUT, "06", "not-ip link", ""),
    {"least EtherType", ETHER, ETHERNET("0600"), "not-ip link"},
    {"largest 802.3 length", ETHER, ETHERNET("05ff"), "link-bad link"},
    {"length claimed below bytes", ETHER, ETHERNET("0800") EMPTY "-20", EMPTY_AT("14")},
    {"802.3 length is all", ETHER, ETHERNET("0003") "424203", "not-ip link"},
    {"802.3 length over the frame", ETHER, ETHERNET("0004") "424203", "link-bad link"},
    {"802.3 length over capture", ETHER, ETHERNET("0004") "424203 +1", "not-ip link"},
    {"802.3 length before padding", ETHER, ETHERNET("0002") "424203", "link-short link"},
    LEAST("802.2", "link", COOKED, COOKED_802_2 "4242", "03", "not-ip link", " link"),
    LEAST("SNAP", "link", COOKED, COOKED_802_2 "aaaa03 000000 08", "06", "not-ip link", " link"),
    {"SNAP in 802.3", ETHER, ETHERNET("001c") SNAP("0800") EMPTY, EMPTY_AT("22")},
    {"SNAP of 802.1H", COOKED, COOKED_802_2 "aaaa03 0000f8 0800" EMPTY, EMPTY_AT("24")},
    {"SNAP of others", COOKED, COOKED_802_2 "aaaa03 0000f9 0800" EMPTY, "not-ip link"},
    {"SNAP type under 0600", COOKED, COOKED_802_2 "aaaa03 000000 05ff", "not-ip link"},
    {"no SNAP: destination", COOKED, COOKED_802_2 "abaa03 000000 0800" EMPTY, "not-ip link"},
    {"no SNAP: source", COOKED, COOKED_802_2 "aaab03 000000 0800" EMPTY, "not-ip link"},
    {"no SNAP: control", COOKED, COOKED_802_2 "aaaa13 000000 0800" EMPTY, "not-ip link"},
    {"IP in 802.2", COOKED, COOKED_802_2 "060603" EMPTY, EMPTY_AT("19")},
    {"not IP in 802.2: destination", COOKED, COOKED_802_2 "070603" EMPTY, "not-ip link"},
    {"not IP in 802.2: source", COOKED, COOKED_802_2 "060703" EMPTY, "not-ip link"},
    {"not IP in 802.2: control", COOKED, COOKED_802_2 "060613" EMPTY, "not-ip link"},
    /* type, ARPHRD, address length, address, protocol */
    LEAST("Linux cooked", "link", COOKED, "0000 0001 0006 0200000000010000 08", "06", "not-ip link",
          ""),
    {"cooked IP", COOKED, "0000 0001 0006 0200000000010000 0800" EMPTY, EMPTY_AT("16")},
    {"cooked 802.2", COOKED, COOKED_802_2 "060603" EMPTY, EMPTY_AT("19")},
    {"cooked below 0600", COOKED, "0000 0001 0006 0200000000010000 05ff", "not-ip link"},
    /* protocol, reserved, interface, ARPHRD, type, address length, address */
    LEAST("Linux cooked 2", "link", COOKED_2, "0806 0000 00000001 0001 00 06 02000000000100", "00",
          "not-ip link", ""),
    {"cooked 2 IP", COOKED_2, "0800 0000 00000001 0001 00 06 0200000000010000" EMPTY,
     EMPTY_AT("20")},
    LEAST("loopback", "link", LOOPBACK, "070000", "00", "not-ip link", ""),
    {"loopback, big-endian", LOOPBACK, "00000002" EMPTY, EMPTY_AT("4")},
    {"loopback of OpenBSD", 108, "00000018" EMPTY_6, EMPTY_6_AT("4")},
    {"loopback 10", LOOPBACK, "0a000000" EMPTY_6, EMPTY_6_AT("4")},
    {"loopback 23", LOOPBACK, "17000000" EMPTY_6, EMPTY_6_AT("4")},
    {"loopback 28", LOOPBACK, "1c000000" EMPTY_6, EMPTY_6_AT("4")},
    {"loopback 30", LOOPBACK, "1e000000" EMPTY_6, EMPTY_6_AT("4")},
    {"loopback 2 is IPv4", LOOPBACK, "02000000" EMPTY_6, "ip-version link"},
    LEAST("Cisco HDLC", "link", HDLC, "0f00 20", "00", "not-ip link", ""),
    {"HDLC on a serial line", PPP, "0f00 0800" EMPTY, EMPTY_AT("4")},
    {"HDLC broadcast", 50, "8f00 0800" EMPTY, EMPTY_AT("4")},
    {"empty serial line", PPP, "", "link-short"},
    {"cut serial line", PPP, "+1", "link-cut"},
    LEAST("PPP", "link", PPP, "c0", "21", "ppp-protocol link", ""),
    LEAST("PPP with address", "link", PPP, "ff03 c0", "21", "ppp-protocol link", ""),
    LEAST("PPP compressed", "link", PPP, "ff03", "21", "ip-short link", ""),
    {"PPP, one byte", PPP, "21", "link-short"},
    {"PPP, one byte captured", PPP, "21 +20", "link-cut"},
    {"PPP, short protocol", PPP, "21" EMPTY, EMPTY_AT("1")},
    {"PPP, IPv6", PPP, "0057" EMPTY_6, EMPTY_6_AT("2")},
    {"PPP, MPLS", PPP, "0281" MPLS EMPTY, "mpls 16, " EMPTY_AT("6")},
    {"PPP, MPLS multicast", PPP, "0283" MPLS EMPTY, "mpls 16, " EMPTY_AT("6")},
    {"PPP ff04", PPP, "ff04 0021" EMPTY, "ppp-protocol link"},
    {"PPP fe03", PPP, "fe03 0021" EMPTY, "ppp-protocol link"},
    {"raw IP of 12", 12, EMPTY, EMPTY_AT("0")},
    {"raw IP of 14", 14, EMPTY_6, EMPTY_6_AT("0")},
    LEAST("raw IP", "ip", RAW, "", "50", "ip-version link", " link"),
    {"raw IPv4", 228, EMPTY, EMPTY_AT("0")},
    {"raw IPv4 that is IPv6", 228, EMPTY_6, "ip-version link"},
    {"raw IPv6", 229, EMPTY_6, EMPTY_6_AT("0")},
    {"raw IPv6 that is IPv4", 229, EMPTY EMPTY, "ip-version link"},
};

/* 802.11: frame control in little-endian order, duration, three addresses, sequence. */
#define WLAN_START(control) control " 0000 020000000001 020000000002 020000000003 "
#define WLAN_DATA(control)  WLAN_START(control) "0000 "
#define WLAN_SHORT(control) WLAN_START(control) "00"
/* Its 802.11-Common field: the frame ends with its checksum; behind a field of unknown type. */
#define PPI_COMMON          "0200 0a00" ZERO_8 "0100 "
#define PPI_CHECKSUM(frame) "00 00 1600 69000000" PPI_COMMON frame
#define PPI_SECOND(flags, length, first)                                                           \
    "00 " flags length "00 69000000 0100 " first PPI_COMMON "80000000"
#define AGGREGATE(length) WLAN_DATA("8800") "8000 " ETHERNET(length) "424203"

static const struct row wlan_rows[] = {
    LEAST("frame control", "link", WLAN, "80", "00", "wlan-not-data", ""),
    {"version 1", WLAN, WLAN_DATA("0900"), "link-bad"},
    {"version 2", WLAN, WLAN_DATA("0a00"), "link-bad"},
    {"control frame", WLAN, WLAN_DATA("d400"), "wlan-not-data"},
    {"extension frame", WLAN, WLAN_DATA("0c00"), "wlan-not-data"},
    {"null data", WLAN, WLAN_DATA("4800"), "wlan-no-data"},
    {"protected null data", WLAN, WLAN_DATA("4840"), "wlan-no-data"},
    {"protected", WLAN, WLAN_DATA("0840") SNAP("0800") EMPTY, "wlan-protected"},
    LEAST("data", "link", WLAN, WLAN_SHORT("0800"), "00", "wlan-no-data link", ""),
    LEAST("to the network", "link", WLAN, WLAN_SHORT("0801"), "00", "wlan-no-data link", ""),
    LEAST("from the network", "link", WLAN, WLAN_SHORT("0802"), "00", "wlan-no-data link", ""),
    LEAST("four addresses", "link", WLAN, WLAN_DATA("0803") "0200000000", "04", "wlan-no-data link",
          ""),
    LEAST("order, no QoS", "link", WLAN, WLAN_SHORT("0880"), "00", "wlan-no-data link", ""),
    LEAST("QoS", "link", WLAN, WLAN_DATA("8800") "7f", "00", "wlan-no-data link", ""),
    LEAST("QoS with HT control", "link", WLAN, WLAN_DATA("8880") "0000 000000", "00",
          "wlan-no-data link", ""),
    LEAST("four addresses, QoS", "link", WLAN, WLAN_DATA("8803") "8000 00000004 00", "00",
          "wlan-no-data link", ""),
    LEAST("four addresses, QoS, HT", "link", WLAN, WLAN_DATA("8883") "020000000004 0000 000000",
          "00", "wlan-no-data link", ""),
    LEAST("802.2 in data", "link", WLAN, WLAN_DATA("0800") "4242", "03", "not-ip link", " link"),
    {"IP in data", WLAN, WLAN_DATA("0800") SNAP("0800") EMPTY, EMPTY_AT("32")},
    LEAST("aggregate", "link", WLAN, WLAN_DATA("8800") "8000 020000000001 020000000002 00", "03",
          "link-bad link", " link"),
    {"aggregate's only part", WLAN, AGGREGATE("0003"), "not-ip link"},
    {"part over the frame", WLAN, AGGREGATE("0004"), "link-bad link"},
    {"part over capture", WLAN, AGGREGATE("0004") "+1", "not-ip link"},
    {"first of two parts", WLAN, AGGREGATE("0002"), "link-short link"},
    {"aggregate of four addresses", WLAN,
     WLAN_DATA("8803") "020000000004 8000" ETHERNET("0004") "424203", "link-bad link"},
    /* version, padding, length, presence, fields; the frames are beacons where nothing is dropped
       of the 4 bytes that they are */
    LEAST("radiotap, version 1", "link", RADIOTAP, "01 00 0800 000000", "00", "link-bad", ""),
    {"radiotap", RADIOTAP, "00 00 0800 00000000 8000", "wlan-not-data"},
    {"radiotap under 8", RADIOTAP, "00 00 0700 00000000 8000", "link-bad"},
    {"radiotap over the frame", RADIOTAP, "00 00 0900 02000000", "link-short"},
    {"radiotap over capture", RADIOTAP, "00 00 0900 02000000 +1", "link-cut"},
    {"radiotap, checksum", RADIOTAP, "00 00 0900 02000000 10" WLAN_DATA("0800") ZERO_4,
     "wlan-no-data link"},
    {"radiotap, checksum cut", RADIOTAP, "00 00 0900 02000000 10" WLAN_DATA("0800") "+4",
     "wlan-no-data link"},
    {"radiotap, cut before checksum", RADIOTAP, "00 00 0900 02000000 10" WLAN_SHORT("0800") "+5",
     "link-cut"},
    {"radiotap, short before checksum", RADIOTAP,
     "00 00 0900 02000000 10" WLAN_SHORT("0800") ZERO_4, "link-short"},
    {"radiotap, checksum only", RADIOTAP, "00 00 0900 02000000 10 80000000", "link-short"},
    {"radiotap, under a checksum", RADIOTAP, "00 00 0900 02000000 10 800000", "wlan-not-data"},
    LEAST("radiotap, padded", "link", RADIOTAP,
          "00 00 0900 02000000 20" WLAN_DATA("8800") "0000 00", "00", "wlan-no-data link", ""),
    LEAST("radiotap, nothing to pad", "link", RADIOTAP, "00 00 0900 02000000 20" WLAN_SHORT("0800"),
          "00", "wlan-no-data link", ""),
    {"radiotap, time", RADIOTAP, "00 00 1100 03000000" ZERO_8 "10 80000000", "link-short"},
    {"radiotap, only time", RADIOTAP, "00 00 1100 01000000" ZERO_8 "10 80000000", "wlan-not-data"},
    {"radiotap, two words", RADIOTAP, "00 00 0d00 02000080 00000000 10 80000000", "link-short"},
    {"radiotap, three words", RADIOTAP, "00 00 1100 02000080 00000080 00000000 10 80000000",
     "link-short"},
    {"radiotap, two words, time", RADIOTAP,
     "00 00 1900 03000080 00000000 00000000" ZERO_8 "10 80000000", "link-short"},
    {"radiotap ends in words", RADIOTAP, "00 00 0b00 02000080 000000 80001000", "wlan-not-data"},
    {"radiotap ends in words, no frame", RADIOTAP, "00 00 0b00 02000080 000000", "link-short"},
    {"radiotap, other flags", RADIOTAP, "00 00 0900 02000000 cf" WLAN_DATA("8800") "0000",
     "wlan-no-data link"},
    {"radiotap ends before words", RADIOTAP, "00 00 0800 02000080" WLAN_DATA("1800"),
     "wlan-no-data link"},
    {"radiotap ends before flags", RADIOTAP, "00 00 0800 02000000" WLAN_DATA("1800"),
     "wlan-no-data link"},
    /* version, flags, length, link type; fields of type and size */
    LEAST("PPI, version 1", "link", PPI, "01 00 0800 690000", "00", "link-bad", ""),
    {"PPI", PPI, "00 00 0800 69000000 8000", "wlan-not-data"},
    {"PPI under 8", PPI, "00 00 0700 69000000 8000", "link-bad"},
    {"PPI over the frame", PPI, "00 00 0900 69000000", "link-short"},
    {"PPI over capture", PPI, "00 00 0900 69000000 +1", "link-cut"},
    {"PPI of Ethernet", PPI, "00 00 0800 01000000" INNER, "link-type"},
    {"PPI, checksum", PPI, PPI_CHECKSUM("80000000"), "link-short"},
    {"PPI, no checksum", PPI, "00 00 1600 69000000 0200 0a00" ZERO_8 "fe00 80000000",
     "wlan-not-data"},
    {"PPI, field under 10", PPI, "00 00 1600 69000000 0200 0900" ZERO_8 "0100 80000000",
     "wlan-not-data"},
    {"PPI, field over the header", PPI, "00 00 1500 69000000 0200 0a00" ZERO_8 "01 80000000",
     "wlan-not-data"},
    {"PPI, under a checksum", PPI, PPI_CHECKSUM("8000 00"), "wlan-not-data"},
    {"PPI ends in a field", PPI, "00 00 0b00 69000000 0200 0a", "link-short"},
    {"PPI, second field", PPI, PPI_SECOND("00", "1d", "0300 ffffff"), "link-short"},
    {"PPI, aligned after 1", PPI, PPI_SECOND("01", "1e", "0100 ffffffff"), "link-short"},
    {"PPI, aligned after 2", PPI, PPI_SECOND("01", "1e", "0200 ffffffff"), "link-short"},
    {"PPI, aligned after 3", PPI, PPI_SECOND("01", "1e", "0300 ffffffff"), "link-short"},
    {"PPI, aligned after 4", PPI, PPI_SECOND("01", "1e", "0400 ffffffff"), "link-short"},
    {"PPI, QoS", PPI, "00 00 0800 69000000" WLAN_DATA("8800") "0000", "wlan-no-data link"},
    /* message code, length; AVS: version, length */
    LEAST("Prism under 8", "link", PRISM, "44000000 070000", "00", "link-bad", ""),
    {"Prism", PRISM, "44000000 08000000 8000", "wlan-not-data"},
    {"Prism, QoS", PRISM, "44000000 08000000" WLAN_DATA("8800") "0000", "wlan-no-data link"},
    {"Prism over the frame", PRISM, "44000000 09000000", "link-short"},
    {"Prism over capture", PRISM, "44000000 09000000 +1", "link-cut"},
    {"Prism of 4 GiB", PRISM, "44000000 ffffffff 8000", "link-short"},
    {"AVS", 163, "80211001 00000008 8000", "wlan-not-data"},
    {"AVS as Prism", PRISM, "80211002 00000008 8000", "wlan-not-data"},
    {"AVS under 8", 163, "80211001 00000007 8000", "link-bad"},
    {"not AVS", 163, "80212001 00000008 8000", "link-short"},
};

/* Link headers of less common networks (link_types.c). */
#define ADDRESSES   "020000000001 020000000002 "
#define RELAY       "1841 " /* frame relay: an address of two bytes */
#define LONG        V4("05dc", "3b")
#define ZERO_16     ZERO_8 ZERO_8
#define NFLOG_IP    "1800 0900 " EMPTY
#define WPAN_9      " 01 cdab 0200 0100 " /* sequence, network, addresses of two bytes */
#define FIRST_OF_AT "20+1480 p59 payload 0"

static const struct row other_link_rows[] = {
    LEAST("FDDI", "link", 10, "50 020000000001 0200000000", "02", "link-short link", ""),
    {"FDDI IP", 10, "50 " ADDRESSES SNAP("0800") EMPTY, EMPTY_AT("21")},
    {"FDDI, priority", 10, "57 " ADDRESSES SNAP("0800") EMPTY, EMPTY_AT("21")},
    {"FDDI, synchronous", 10, "d0 " ADDRESSES SNAP("0800") EMPTY, EMPTY_AT("21")},
    {"FDDI station management", 10, "41 " ADDRESSES SNAP("0800") EMPTY, "not-ip link"},
    LEAST("frame relay", "link", 107, "18", "41", "link-short link", ""),
    LEAST("frame relay address", "link", 107, "184040", "41", "link-short link", ""),
    LEAST("frame relay control", "link", 107, RELAY "03", "08", "not-ip link", " link"),
    LEAST("frame relay NLPID", "link", 107, RELAY "0300", "08", "not-ip link", " link"),
    {"frame relay address of 1", 107, "1941 03cc" EMPTY, "link-bad"},
    {"frame relay address of 5", 107, "1840404041 03cc" EMPTY, "link-bad"},
    {"frame relay IP", 107, RELAY "03cc" EMPTY, EMPTY_AT("4")},
    {"frame relay IP, address of 4", 107, "18404041 03cc" EMPTY, EMPTY_AT("6")},
    {"frame relay IPv6", 107, RELAY "038e" EMPTY_6, EMPTY_6_AT("4")},
    {"frame relay, padded", 107, RELAY "0300cc" EMPTY, EMPTY_AT("5")},
    {"frame relay SNAP", 107, RELAY "030080 000000 0800" EMPTY, EMPTY_AT("10")},
    {"frame relay, bridged", 107, RELAY "030080 0080c2 0007" INNER, EMPTY_AT("24")},
    {"frame relay PPP", 107, RELAY "03cf 0021" EMPTY, EMPTY_AT("6")},
    {"frame relay of Cisco", 107, RELAY "0800" EMPTY, EMPTY_AT("4")},
    {"frame relay of Cisco, CDP", 107, RELAY "2000" EMPTY, "not-ip link"},
    {"frame relay, direction", 206, "01" RELAY "03cc" EMPTY, EMPTY_AT("5")},
    LEAST("multilink frame relay", "link", 182, "40", "00", "link-fragment link", ""),
    LEAST("multilink address", "link", 182, "c000 18", "41", "link-short link", " link"),
    {"multilink, whole", 182, "c000" RELAY "03cc" EMPTY, EMPTY_AT("6")},
    {"multilink, first part", 182, "8000" RELAY "03cc" LONG, "ipv4@6 " FIRST_OF_AT},
    {"multilink control", 182, "e100 01", "not-ip link"},
    LEAST("SLIP", "link", 8, "0040" ZERO_7 "000000000000", "00", "ip-short link", ""),
    {"SLIP IP", 8, "0040" ZERO_7 ZERO_7 EMPTY, EMPTY_AT("16")},
    {"SLIP IPv6", 8, "0140" ZERO_7 ZERO_7 EMPTY_6, EMPTY_6_AT("16")},
    {"SLIP of BSD/OS", 102, ZERO_16 ZERO_8 EMPTY, EMPTY_AT("24")},
    LEAST("ARCNET", "link", 7, "0102", "f1", "not-ip link", ""),
    LEAST("ARCNET of RFC 1201", "link", 7, "0102 d5 00 00", "01", "not-ip link", ""),
    LEAST("ARCNET exception", "link", 7, "0102 d5 ff ffff d5 00 00", "01", "not-ip link", ""),
    {"ARCNET IP", 7, "0102 d4 00 0001" EMPTY, EMPTY_AT("6")},
    {"ARCNET IPv6", 7, "0102 c4 00 0001" EMPTY_6, EMPTY_6_AT("6")},
    {"ARCNET IP of RFC 1051", 7, "0102 f0" EMPTY, EMPTY_AT("3")},
    {"ARCNET IP, exception", 7, "0102 d4 ff ffff d4 00 0001" EMPTY, EMPTY_AT("10")},
    {"ARCNET, first part", 7, "0102 d4 03 0001" LONG, "ipv4@6 " FIRST_OF_AT},
    {"ARCNET, second part", 7, "0102 d4 02 0001 45", "link-fragment link"},
    LEAST("ARCNET of Linux", "link", 129, "0102 0000", "f1", "not-ip link", ""),
    {"ARCNET IP of Linux", 129, "0102 0000 d4 00 0001" EMPTY, EMPTY_AT("8")},
    {"ARCNET of Linux, RFC 1051", 129, "0102 0000 f0" EMPTY, EMPTY_AT("5")},
    LEAST("IPNET", "link", 226, "0103" ZERO_16 ZERO_4 "00", "00", "not-ip link", ""),
    {"IPNET IP", 226, "0102" ZERO_16 ZERO_4 "0000" EMPTY, EMPTY_AT("24")},
    {"IPNET IPv6", 226, "011a" ZERO_16 ZERO_4 "0000" EMPTY_6, EMPTY_6_AT("24")},
    LEAST("NFLOG", "link", 239, "020000", "00", "not-ip link", ""),
    LEAST("NFLOG attribute", "link", 239, "02000000 0400 0a", "00", "not-ip link", " link"),
    {"NFLOG IP", 239, "02000000" NFLOG_IP, EMPTY_AT("8")},
    {"NFLOG IPv6", 239, "0a000000 2c00 0900" EMPTY_6, EMPTY_6_AT("8")},
    {"NFLOG, big-endian", 239, "02000000 0018 0009" EMPTY, EMPTY_AT("8")},
    {"NFLOG, prefix", 239, "02000000 0500 0a00 61000000" NFLOG_IP, EMPTY_AT("16")},
    {"NFLOG of a bridge", 239, "07000000 0800 0100 0800 0300" NFLOG_IP, EMPTY_AT("16")},
    {"NFLOG of a bridge, ARP", 239, "07000000 0800 0100 0806 0300 0600 0900 4242", "not-ip link"},
    {"NFLOG of unknown type", 239, "07000000" NFLOG_IP, "not-ip link"},
    {"NFLOG cut by its rule", 239, "02000000 1800 0900" LONG, "ipv4@8 " FIRST_OF_AT " record cut"},
    {"NFLOG length 3", 239, "02000000 0300 0a00", "link-bad link"},
    {"NFLOG length over the frame", 239, "02000000 1900 0900" EMPTY, "link-bad link"},
    {"NFLOG, padding absent", 239, "02000000 0500 0a00 61", "not-ip link"},
    LEAST("IPoIB", "link", 242, ZERO_16 ZERO_16 ZERO_8 "0806 00", "00", "not-ip link", ""),
    {"IPoIB IP", 242, ZERO_16 ZERO_16 ZERO_8 "0800 0000" EMPTY, EMPTY_AT("44")},
    {"ATM", 100, SNAP("0800") EMPTY, EMPTY_AT("8")},
    {"ATM of BSD", 11, SNAP("0800") EMPTY, EMPTY_AT("8")},
    {"ATM, one protocol", 100, EMPTY, EMPTY_AT("0")},
    {"ATM, one protocol, IPv6", 100, EMPTY_6, EMPTY_6_AT("0")},
    LEAST("ATM, NLPID", "link", 100, "fefe03", "83", "not-ip link", " link"),
    {"ATM, NLPID of IP", 100, "fefe03 cc" EMPTY, EMPTY_AT("4")},
    LEAST("ATM, bridged", "link", 100, "aaaa03 0080c2 0007 00", "00", "link-short link", " link"),
    {"ATM, bridged IP", 100, "aaaa03 0080c2 0001 0000" INNER, EMPTY_AT("24")},
    {"ATM, spanning tree", 100, "aaaa03 0080c2 000e 0000" INNER, "not-ip link"},
    LEAST("SunATM", "link", 123, "060000", "05", "not-ip link", ""),
    {"SunATM IP", 123, "82000064" SNAP("0800") EMPTY, EMPTY_AT("12")},
    {"SunATM LAN emulation", 123, "01000064 0001" INNER, EMPTY_AT("20")},
    {"SunATM LAN emulation control", 123, "01000064 ff00" INNER, "not-ip link"},
    LEAST("DSA", "link", 284, ADDRESSES "c0000005 08", "06", "not-ip link", ""),
    {"DSA IP", 284, ADDRESSES "c0000005 0800" EMPTY, EMPTY_AT("18")},
    {"DSA, VLAN", 284, ADDRESSES "e000f005 0800" EMPTY, "vlan 5, " EMPTY_AT("18")},
    LEAST("EDSA", "link", 285, ADDRESSES "dada0000 c0000005 08", "06", "not-ip link", ""),
    {"EDSA IP", 285, ADDRESSES "dada0000 c0000005 0800" EMPTY, EMPTY_AT("22")},
    {"EDSA, VLAN", 285, ADDRESSES "dada0000 20000fff 0800" EMPTY, "vlan 4095, " EMPTY_AT("22")},
    LEAST("Broadcom", "link", 281, ADDRESSES "20000001 08", "06", "not-ip link", ""),
    {"Broadcom IP", 281, ADDRESSES "20000001 0800" EMPTY, EMPTY_AT("18")},
    LEAST("Broadcom before", "link", 282, "20000001" ETHER_CUT, "06", "not-ip link", ""),
    {"Broadcom before IP", 282, "20000001" INNER, EMPTY_AT("18")},
    LEAST("802.15.4", "link", 230, "00", "80", "not-ip link", ""),
    LEAST("802.15.4 data", "link", 230, "4188" WPAN_9, "00", "not-ip link", ""),
    {"6LoWPAN", 230, "4188" WPAN_9 "41" EMPTY_6, EMPTY_6_AT("10")},
    {"6LoWPAN, compressed", 230, "4188" WPAN_9 "7a33", "6lowpan link"},
    {"6LoWPAN, fragment", 195, "4188" WPAN_9 "c0680001", "6lowpan link"},
    {"802.15.4, checksum", 195, "4188" WPAN_9 "41" EMPTY_6 "abcd", EMPTY_6_AT("10")},
    {"802.15.4 of Linux", 191, "4188" WPAN_9 "41" EMPTY_6, EMPTY_6_AT("10")},
    {"802.15.4, encrypted", 230, "4988" WPAN_9 "41" EMPTY_6, "encrypted link"},
    {"802.15.4, elements", 230, "41aa" WPAN_9 "41" EMPTY_6, "not-ip link"},
    {"802.15.4, two networks", 230, "0188 01 cdab 0200 cdab 0100 41" EMPTY_6, EMPTY_6_AT("12")},
    {"802.15.4, long addresses", 230, "41cc 01 cdab" ZERO_16 "41" EMPTY_6, EMPTY_6_AT("22")},
    {"802.15.4-2015, long addresses", 230, "41ec 01" ZERO_16 "41" EMPTY_6, EMPTY_6_AT("20")},
    {"802.15.4-2015, a network", 230, "01ec 01 cdab" ZERO_16 "41" EMPTY_6, EMPTY_6_AT("22")},
    {"802.15.4-2015, no sequence", 230, "41ed " ZERO_16 "41" EMPTY_6, EMPTY_6_AT("19")},
    {"802.15.4-2015, short addresses", 230, "41a8" WPAN_9 "41" EMPTY_6, EMPTY_6_AT("10")},
    {"802.15.4-2015, to one", 230, "0128 01 cdab 0200 41" EMPTY_6, EMPTY_6_AT("8")},
    LEAST("802.15.4 with preamble", "link", 215, "00000000 a7 10 00", "80", "not-ip link", ""),
    {"6LoWPAN with preamble", 215, "00000000 a7 10 4188" WPAN_9 "41" EMPTY_6, EMPTY_6_AT("16")},
    LEAST("802.15.4 TAP", "link", 283, "0000 0500 00 00", "80", "not-ip link", ""),
    {"802.15.4 TAP of 3", 283, "0000 0300 4188", "link-bad"},
    {"6LoWPAN in TAP", 283, "0000 0400 4188" WPAN_9 "41" EMPTY_6, EMPTY_6_AT("14")},
};

#define PSEUDO_WIRE ETHERNET("8847") MPLS

/* Encapsulations below IP. */
static const struct row encapsulation_rows[] = {
    LEAST("VLAN", "tunnel", ETHER, ETHERNET("8100") "0005 08", "06", "not-ip vlan 5, link",
          " link"),
    {"VLAN id", ETHER, ETHERNET("8100") VLAN("ffff", "0800") EMPTY, "vlan 4095, " EMPTY_AT("18")},
    {"VLAN 0", ETHER, ETHERNET("8100") VLAN("e000", "0800") EMPTY, EMPTY_AT("18")},
    {"9 VLANs 0", ETHER, ETHERNET("8100") TIMES_8(VLAN("0000", "8100")) VLAN("0000", "0806"),
     "too-deep link"},
    {"QinQ", ETHER, ETHERNET("88a8") VLAN("0001", "8100") VLAN("0002", "86dd") EMPTY_6,
     "vlan 1, vlan 2, ipv6@22 40+0 p59"},
    {"QinQ, older types", ETHER, ETHERNET("9100") VLAN("0001", "9200") VLAN("0002", "0800") EMPTY,
     "vlan 1, vlan 2, " EMPTY_AT("22")},
    {"length in VLAN", ETHER, ETHERNET("8100") VLAN("0005", "0001"), "link-bad vlan 5, link"},
    {"8 VLANs", ETHER, VLANS_8("0806"), "not-ip " VLANS_8_THEN "link"},
    {"9 VLANs", ETHER, VLANS_8("8100") VLAN("0005", "0806"), "too-deep " VLANS_8_THEN "link"},
    LEAST("MPLS", "tunnel", ETHER, ETHERNET("8847") "000101", "ff", "tunnel-short mpls 16, link",
          " link"),
    LEAST("second label", "tunnel", ETHER, ETHERNET("8848") "000100ff 000201", "ff",
          "tunnel-short mpls 16, mpls 32, link", " mpls 16, link"),
    LEAST("MPLS payload", "tunnel", ETHER, PSEUDO_WIRE, "50", "not-ip mpls 16, link",
          " mpls 16, link"),
    {"IPv4 in MPLS", ETHER, PSEUDO_WIRE EMPTY, "mpls 16, " EMPTY_AT("18")},
    {"IPv6 in MPLS", ETHER, PSEUDO_WIRE EMPTY_6, "mpls 16, ipv6@18 40+0 p59"},
    {"control word", ETHER, PSEUDO_WIRE "00000000" INNER, "mpls 16, " EMPTY_AT("36")},
    {"no control word", ETHER, PSEUDO_WIRE INNER, "mpls 16, " EMPTY_AT("32")},
    {"no control word, group address", ETHER, PSEUDO_WIRE "330000000001 020000000002 0800" EMPTY,
     "mpls 16, " EMPTY_AT("32")},
    {"no control word, only Ethernet", ETHER, PSEUDO_WIRE ETHERNET("86dd"),
     "ip-short mpls 16, link"},
    {"no control word, cut type", ETHER, PSEUDO_WIRE ETHER_CUT "+60", "link-cut mpls 16, link"},
    {"neither IP nor Ethernet", ETHER, PSEUDO_WIRE "100000000001 020000000002 0806" EMPTY,
     "not-ip mpls 16, link"},
    {"8th label", ETHER, VLANS_7("8847") MPLS EMPTY, VLANS_7_THEN "mpls 16, " EMPTY_AT("46")},
    {"9th label", ETHER, VLANS_7("8847") "000100ff 000201ff" EMPTY,
     "too-deep " VLANS_7_THEN "mpls 16, link"},
    LEAST("PPPoE", "tunnel", ETHER, ETHERNET("8864") "1100 0001 00", "01",
          "link-short pppoe 1, link", " link"),
    {"PPPoE version", ETHER, ETHERNET("8864") "2100 0001 0002 c021", "tunnel-bad link"},
    {"PPPoE type", ETHER, ETHERNET("8864") "1200 0001 0002 c021", "tunnel-bad link"},
    {"PPPoE code", ETHER, ETHERNET("8864") "1101 0001 0002 c021", "tunnel-bad link"},
    {"PPPoE length is all", ETHER, ETHERNET("8864") "1100 0001 0002 c021",
     "ppp-protocol pppoe 1, link"},
    {"PPPoE length over the frame", ETHER, ETHERNET("8864") "1100 0001 0003 c021",
     "ppp-protocol pppoe 1, link"},
    {"PPPoE length over capture", ETHER, ETHERNET("8864") "1100 0001 0003 c021 +1",
     "ppp-protocol pppoe 1, link"},
    {"PPPoE length before padding", ETHER, ETHERNET("8864") "1100 0001 0001 c021",
     "link-short pppoe 1, link"},
    {"PPPoE, 8th", ETHER, VLANS_7("8864") "1100 0001 0016 0021" EMPTY,
     VLANS_7_THEN "pppoe 1, " EMPTY_AT("50")},
    {"PPPoE, 9th", ETHER, VLANS_8("8864") "1100 0001 0016 0021" EMPTY,
     "too-deep " VLANS_8_THEN "link"},
};

#define IN_IP(len) V4(len, "04")
#define IN_IP_8    IN_IP("00b4") IN_IP("00a0") IN_IP("008c") IN_IP("0078") IN_IP_4
#define IN_IP_4    IN_IP("0064") IN_IP("0050") IN_IP("003c") IN_IP("0028")
#define GRE(len)   V4(len, "2f")
#define LEAST_GRE(what, len, below, bytes, last, decoded, layer, payload, kept)                    \
    LEAST_IN(what, GRE(len), GRE(below), bytes, last, decoded,                                     \
             layer "-cut " GRE_OUTER(payload) " payload " kept, layer "-short " GRE_OUTER(kept))
#define PPTP(len) "3001 880b " len " 0009 00000000 " /* payload length, call */
#define VXLAN_7   "08000000 00000700"
#define GENEVE_7  "0000 6558 00000700"

/* Tunnels over IP: what of them is IP again counts, else the outer packet does. */
static const struct row tunnel_rows[] = {
    {"8 times IP in IP", RAW, IN_IP_8 EMPTY, TIMES_8("ipip 0, ") EMPTY_AT("160")},
    {"9 times IP in IP", RAW, IN_IP("00c8") IN_IP_8 EMPTY,
     "too-deep " TIMES_8("ipip 0, ") "ipv4@160 20+20 p4"},
    {"IPv6 in IP", RAW, V4("003c", "29") EMPTY_6, "ipip 0, ipv6@20 40+0 p59"},
    {"IP in IPv6", RAW, V6("0014", "04") EMPTY, "ipip 0, " EMPTY_AT("40")},
    {"bad IP in IP", RAW, IN_IP("0028") V4("0015", "3b"), "ip-length ipv4@0 20+20 p4"},
    {"cut before the tunnel", RAW,
     IN_IP("0028") "45 b8 0015 0001 0000 40 3b 65f3 0a000001 0a000002",
     "ipip 0, ipv4@20 20+1 p59 payload 0 record cut"},
    {"wrong checksum in the tunnel", RAW,
     IN_IP("0028") "45 b8 0015 0001 0000 40 3b 65f1 0a000001 0a000002",
     "ip-length ipv4@0 20+20 p4"},
    {"IP in IP, cut", RAW, IN_IP("0028") "45 +19", "ip-cut ipv4@0 20+20 p4 payload 1"},
    {"fragment of IP in IP", RAW, V4_FRAGMENT("0034", "2000", "04") V4("0020", "3b") ZERO_8 ZERO_4,
     "ipv4@0 20+32 p4 fragment 0+32 more"},
    LEAST_GRE("GRE", "0018", "0017", "0000 08", "06", GRE_OUTER("4"), "tunnel", "4", "3"),
    LEAST_GRE("GRE checksum", "001c", "001b", "8000 0806 000000", "00", GRE_OUTER("8"), "tunnel",
              "8", "7"),
    LEAST_GRE("GRE key", "001c", "001b", "2000 0806 000000", "00", GRE_OUTER("8"), "tunnel", "8",
              "7"),
    LEAST_GRE("GRE sequence", "001c", "001b", "1000 0806 000000", "00", GRE_OUTER("8"), "tunnel",
              "8", "7"),
    LEAST_GRE("GRE with all", "0024", "0023", "b000 0806" ZERO_8 "000000", "00", GRE_OUTER("16"),
              "tunnel", "16", "15"),
    {"GRE plain", RAW, GRE("002c") "0000 0800" EMPTY, "gre 0, " EMPTY_AT("24")},
    {"GRE key after checksum", RAW, GRE("0034") "a000 0800 11111111 00000007" EMPTY,
     "gre 7, " EMPTY_AT("32")},
    {"GRE key before sequence", RAW, GRE("0034") "3000 0800 00000007 22222222" EMPTY,
     "gre 7, " EMPTY_AT("32")},
    {"GRE routing", RAW, GRE("002c") "4000 0800" EMPTY, GRE_OUTER("24")},
    {"GRE version 2", RAW, GRE("002c") "0002 0800" EMPTY, GRE_OUTER("24")},
    {"GRE version 4", RAW, GRE("002c") "0004 0800" EMPTY, GRE_OUTER("24")},
    {"GRE, 8th", ETHER, VLANS_7("0800") GRE("002c") "0000 0800" EMPTY,
     VLANS_7_THEN "gre 0, " EMPTY_AT("66")},
    {"GRE, 9th", ETHER, VLANS_8("0800") GRE("002c") "0000 0800" EMPTY,
     "too-deep " VLANS_8_THEN "ipv4@46 20+24 p47"},
    LEAST_GRE("PPTP", "0020", "001f", "3001 880b 0001 0009 000000", "00",
              "tunnel-bad " GRE_OUTER("12"), "tunnel", "12", "11"),
    LEAST_GRE("PPTP acknowledgment", "0024", "0023", "3081 880b 0001 0009" ZERO_7, "00",
              "tunnel-bad " GRE_OUTER("16"), "tunnel", "16", "15"),
    {"PPTP length is all", RAW, GRE("0022") PPTP("0002") "c021", GRE_OUTER("14")},
    {"PPTP length over the packet", RAW, GRE("0022") PPTP("0003") "c021",
     "tunnel-bad " GRE_OUTER("14")},
    {"PPTP length within", RAW, GRE("0022") PPTP("0001") "c021", "link-short " GRE_OUTER("14")},
    {"PPTP of another protocol", RAW, GRE("0022") "3001 0800 0003 0009 00000000 c021",
     GRE_OUTER("14")},
    {"PPTP without key", RAW, GRE("0022") "1001 880b 0003 0009 00000000 c021", GRE_OUTER("14")},
    {"PPTP without sequence", RAW, GRE("0022") "2001 880b 0003 0009 00000000 c021",
     GRE_OUTER("14")},
    {"PPTP, 8th", ETHER, VLANS_7("0800") GRE("0036") PPTP("0016") "0021" EMPTY,
     VLANS_7_THEN "gre 0, " EMPTY_AT("76")},
    {"PPTP, 9th", ETHER, VLANS_8("0800") GRE("0036") PPTP("0016") "0021" EMPTY,
     "too-deep " VLANS_8_THEN "ipv4@46 20+34 p47"},
    LEAST_GRE("Ethernet in GRE", "0026", "0025", "0000 6558" ETHER_CUT, "06", GRE_OUTER("18"),
              "link", "18", "17"),
    {"ERSPAN I", RAW, GRE("003a") "0000 88be" INNER, "gre 0, " EMPTY_AT("38")},
    LEAST_GRE("ERSPAN II", "0024", "0023", "1000 88be 00000000" ZERO_7, "00",
              "link-short " GRE_OUTER("16"), "tunnel", "16", "15"),
    {"ERSPAN II", RAW, GRE("0046") "1000 88be 00000000" ZERO_8 INNER, "gre 0, " EMPTY_AT("50")},
    LEAST_GRE("ERSPAN III", "0028", "0027", "1000 22eb 00000000" ZERO_8 "000000", "00",
              "link-short " GRE_OUTER("20"), "tunnel", "20", "19"),
    {"ERSPAN III", RAW, GRE("004a") "1000 22eb 00000000" ZERO_8 "00008000" INNER,
     "gre 0, " EMPTY_AT("54")},
    {"ERSPAN III, frame type 1", RAW, GRE("004a") "1000 22eb 00000000" ZERO_8 "00000400" INNER,
     GRE_OUTER("54")},
    {"ERSPAN III, frame type 16", RAW, GRE("004a") "1000 22eb 00000000" ZERO_8 "00004000" INNER,
     GRE_OUTER("54")},
    LEAST_GRE("ERSPAN III with more", "0030", "002f", "1000 22eb 00000000" ZERO_8 "00000001" ZERO_7,
              "00", "link-short " GRE_OUTER("28"), "tunnel", "28", "27"),
    {"ERSPAN III with more", RAW, GRE("0052") "1000 22eb 00000000" ZERO_8 "00000001" ZERO_8 INNER,
     "gre 0, " EMPTY_AT("62")},
    {"MPLS in IP, 8th", ETHER, VLANS_7("0800") V4("002c", "89") MPLS EMPTY,
     VLANS_7_THEN "mpls 16, " EMPTY_AT("66")},
    {"MPLS in IP, 9th", ETHER, VLANS_8("0800") V4("002c", "89") MPLS EMPTY,
     "too-deep " VLANS_8_THEN "ipv4@46 20+24 p137"},
    {"VXLAN", RAW, VXLAN("12b5", VXLAN_7), "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN on Linux's port", RAW, VXLAN("2118", VXLAN_7), "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN policy", RAW, VXLAN("12b5", "88480001 00000700"), "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN generic", RAW, VXLAN("12b5", "0c000003 00000700"), "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN on no port of its", RAW, VXLAN("12b6", VXLAN_7), UDP_OUTER("4790")},
    {"VXLAN without flags", RAW, VXLAN("12b5", "00000000 00000700"), UDP_OUTER("4789")},
    {"VXLAN policy, reserved", RAW, VXLAN("12b5", "88800001 00000700"), "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN generic, IPv4", RAW, VXLAN("12b5", "0c000001 00000700"), UDP_OUTER("4789")},
    {"VXLAN, reserved", RAW, VXLAN("12b5", "08000000 00000701"), "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN absent", RAW, V4("0023", "11") UDP("12b5", "000f") "08000000 000007",
     "ipv4@0 20+15 p17 1024>4789 t8"},
    {"VXLAN with bad IP", RAW,
     V4("0046", "11") UDP("12b5", "0032") VXLAN_7 ETHERNET("0800") V4("0015", "3b"),
     UDP_OUTER("4789")},
    {"VXLAN in a fragment", RAW,
     V4_FRAGMENT("004c", "2000", "11") UDP("12b5", "0100") VXLAN_7 INNER "000000000000",
     "ipv4@0 20+56 p17 1024>4789 t8 fragment 0+56 more"},
    {"VXLAN, 8th", ETHER, VLANS_7("0800") VXLAN("12b5", VXLAN_7),
     VLANS_7_THEN "vxlan 7, " EMPTY_AT("92")},
    {"VXLAN, 9th", ETHER, VLANS_8("0800") VXLAN("12b5", VXLAN_7),
     "too-deep " VLANS_8_THEN "ipv4@46 20+50 p17 1024>4789 t8"},
    {"Geneve", RAW, VXLAN("17c1", GENEVE_7), "geneve 7, " EMPTY_AT("50")},
    {"Geneve absent", RAW, V4("0023", "11") UDP("17c1", "000f") "0000 6558 000007",
     "ipv4@0 20+15 p17 1024>6081 t8"},
    {"Geneve version", RAW, VXLAN("17c1", "4000 6558 00000700"), UDP_OUTER("6081")},
    {"Geneve, reserved", RAW, VXLAN("17c1", "0000 6558 00000701"), "geneve 7, " EMPTY_AT("50")},
    {"Geneve of ARP", RAW, VXLAN("17c1", "0000 0806 00000700"), UDP_OUTER("6081")},
    {"Geneve of IP", RAW, V4("0038", "11") UDP("17c1", "0024") "0000 0800 00000700" EMPTY,
     "geneve 7, " EMPTY_AT("36")},
    {"Geneve option", RAW, V4("004a", "11") UDP("17c1", "0036") "0100 6558 00000700" ZERO_4 INNER,
     "geneve 7, " EMPTY_AT("54")},
    {"Geneve, most options", RAW,
     V4("0142", "11") UDP("17c1", "012e") "3f00 6558 00000700" TIMES_8(TIMES_7(ZERO_4))
         TIMES_7(ZERO_4) INNER,
     "geneve 7, " EMPTY_AT("302")},
    {"Geneve options absent", RAW, V4("0027", "11") UDP("17c1", "0013") "0100 6558 00000700 000000",
     "ipv4@0 20+19 p17 1024>6081 t8"},
    {"Geneve, 8th", ETHER, VLANS_7("0800") VXLAN("17c1", GENEVE_7),
     VLANS_7_THEN "geneve 7, " EMPTY_AT("92")},
    {"Geneve, 9th", ETHER, VLANS_8("0800") VXLAN("17c1", GENEVE_7),
     "too-deep " VLANS_8_THEN "ipv4@46 20+50 p17 1024>6081 t8"},
};

#define SGT(type)                 "01 01 0001 0002 " type " " /* version, options, type, group */
#define NSH(next)                 "0fc2 02 " next " 000001ff "
#define ICV                       ZERO_8 ZERO_8
#define DATAGRAM(len, port, size) V4(len, "11") UDP(port, size)
#define OUTER(n, port)            "ipv4@0 20+" n " p17 1024>" port " t8"

/* Headers of switches. */
static const struct row shim_rows[] = {
    LEAST("MetaData", "tunnel", ETHER, ETHERNET("8909") "01 01 0001 0002 08", "06", "not-ip link",
          " link"),
    {"MetaData, IP", ETHER, ETHERNET("8909") SGT("0800") EMPTY, EMPTY_AT("22")},
    {"MetaData, two options", ETHER, ETHERNET("8909") "01 02 0001 0002 0003 0004 0800" EMPTY,
     EMPTY_AT("26")},
    {"MetaData version", ETHER, ETHERNET("8909") "02 01 0001 0002 0800" EMPTY, "not-ip link"},
    {"MetaData without option", ETHER, ETHERNET("8909") "01 00 0800" EMPTY, "tunnel-bad link"},
    {"MetaData in VLAN", ETHER, ETHERNET("8100") VLAN("0005", "8909") SGT("86dd") EMPTY_6,
     "vlan 5, " EMPTY_6_AT("26")},
    {"8 MetaData", ETHER, ETHERNET("8909") TIMES_7(SGT("8909")) SGT("0806"), "not-ip link"},
    {"9 MetaData", ETHER, ETHERNET("8909") TIMES_8(SGT("8909")) SGT("0806"), "too-deep link"},
    LEAST("VN-tag", "tunnel", ETHER, ETHERNET("8926") "8001 0002 08", "06", "not-ip link", " link"),
    {"VN-tag, IP", ETHER, ETHERNET("8926") "8001 0002 0800" EMPTY, EMPTY_AT("20")},
    LEAST("E-tag", "tunnel", ETHER, ETHERNET("893f") "0001 0002 0000 08", "06", "not-ip link",
          " link"),
    {"E-tag, IP", ETHER, ETHERNET("893f") "0001 0002 0000 0800" EMPTY, EMPTY_AT("22")},
    LEAST("FabricPath", "tunnel", ETHER, ETHERNET("8903") "04", "40", "link-short link", " link"),
    LEAST("FabricPath's frame", "link", ETHER, ETHERNET("8903") "0440" ETHER_CUT, "06",
          "not-ip link", " link"),
    {"FabricPath, IP", ETHER, ETHERNET("8903") "0440" INNER, EMPTY_AT("30")},
    {"FabricPath, 8 times", ETHER, ETHERNET("8903") TIMES_7("0440" ETHERNET("8903")) "0440" INNER,
     EMPTY_AT("142")},
    {"FabricPath, 9 times", ETHER, ETHERNET("8903") TIMES_8("0440" ETHERNET("8903")) "0440" INNER,
     "too-deep link"},
    LEAST_KEPT("PBB", ETHER, ETHERNET("88e7") "e00001", "00", "link-short pbb 256, link",
               "tunnel-cut link", "tunnel-short link"),
    {"PBB, IP", ETHER, ETHERNET("88e7") "e0000100" INNER, "pbb 256, " EMPTY_AT("32")},
    {"PBB, 8th", ETHER, VLANS_7("88e7") "00000100" INNER, VLANS_7_THEN "pbb 256, " EMPTY_AT("60")},
    {"PBB, 9th", ETHER, VLANS_8("88e7") "00000100" INNER, "too-deep " VLANS_8_THEN "link"},
    LEAST("NSH", "tunnel", ETHER, ETHERNET("894f") "0fc2 02 01 000001", "ff", "ip-short link",
          " link"),
    LEAST("NSH with metadata", "tunnel", ETHER,
          ETHERNET("894f") "0fc6 01 01 000001ff" ZERO_8 ZERO_7, "00", "ip-short link", " link"),
    {"NSH of IPv4", ETHER, ETHERNET("894f") "0fc6 01 01 000001ff" ZERO_8 ZERO_8 EMPTY,
     EMPTY_AT("38")},
    {"NSH of IPv6", ETHER, ETHERNET("894f") NSH("02") EMPTY_6, EMPTY_6_AT("22")},
    {"NSH of Ethernet", ETHER, ETHERNET("894f") NSH("03") INNER, EMPTY_AT("36")},
    {"NSH of MPLS", ETHER, ETHERNET("894f") NSH("05") MPLS EMPTY, "mpls 16, " EMPTY_AT("26")},
    {"NSH of 6", ETHER, ETHERNET("894f") NSH("06") EMPTY, "not-ip link"},
    {"NSH of 0", ETHER, ETHERNET("894f") NSH("00") EMPTY, "not-ip link"},
    {"NSH version", ETHER, ETHERNET("894f") "4fc2 02 01 000001ff" EMPTY, "not-ip link"},
    {"NSH under 8", ETHER, ETHERNET("894f") "0fc1 02 01 000001ff" EMPTY, "tunnel-bad link"},
    {"8 NSH", ETHER, ETHERNET("894f") TIMES_7(NSH("04")) NSH("01") EMPTY, EMPTY_AT("78")},
    {"9 NSH", ETHER, ETHERNET("894f") TIMES_8(NSH("04")) NSH("01") EMPTY, "too-deep link"},
    LEAST("Arista", "tunnel", ETHER, ETHERNET("d28b") "0001 00", "30", "not-ip link", " link"),
    LEAST("Arista, 8 bytes of time", "tunnel", ETHER, ETHERNET("d28b") "0001 0010" ZERO_8 "08",
          "06", "not-ip link", " link"),
    LEAST("Arista, 6 bytes of time", "tunnel", ETHER, ETHERNET("d28b") "0001 0121 000000000000 08",
          "06", "not-ip link", " link"),
    {"Arista of IP", ETHER, ETHERNET("d28b") "0001 0110" ZERO_8 "0800" EMPTY, EMPTY_AT("28")},
    {"Arista of IP, 6 bytes", ETHER, ETHERNET("d28b") "0001 0020 000000000000 0800" EMPTY,
     EMPTY_AT("26")},
    {"Arista, subtype 2", ETHER, ETHERNET("d28b") "0002 0010" ZERO_8 "0800" EMPTY, "not-ip link"},
    {"Arista, no format", ETHER, ETHERNET("d28b") "0001 0000" ZERO_8 "0800" EMPTY, "not-ip link"},
    LEAST("MACsec", "tunnel", ETHER, ETHERNET("88e5") "00 00 000000", "01", "tunnel-bad link",
          " link"),
    {"MACsec, IP", ETHER, ETHERNET("88e5") "00 00 00000001 0800" EMPTY ICV, EMPTY_AT("22")},
    {"MACsec, channel", ETHER, ETHERNET("88e5") "20 00 00000001" ZERO_8 "0800" EMPTY ICV,
     EMPTY_AT("30")},
    {"MACsec, short", ETHER, ETHERNET("88e5") "00 16 00000001 0800" EMPTY ICV "ffff",
     EMPTY_AT("22")},
    {"MACsec ends before its ICV", ETHER,
     ETHERNET("88e5") "00 00 00000001 0800" V4_TCP TCP("5") ICV, "ipv4@22 20+20 p6 1024>80 t20"},
    {"MACsec, short ends before its ICV", ETHER,
     ETHERNET("88e5") "00 2a 00000001 0800" V4_TCP TCP("5") ICV "ffff",
     "ipv4@22 20+20 p6 1024>80 t20"},
    {"MACsec, encrypted", ETHER, ETHERNET("88e5") "0c 00 00000001 0800" EMPTY ICV,
     "encrypted link"},
    {"MACsec, changed", ETHER, ETHERNET("88e5") "04 00 00000001 0800" EMPTY ICV, "encrypted link"},
    {"MACsec, of the key agreement", ETHER, ETHERNET("88e5") "08 00 00000001 0800" EMPTY ICV,
     "encrypted link"},
    {"MACsec version", ETHER, ETHERNET("88e5") "80 00 00000001 0800" EMPTY ICV, "not-ip link"},
    {"MACsec, 1 byte", ETHER, ETHERNET("88e5") "00 01 00000001 0800" EMPTY ICV, "tunnel-bad link"},
    {"MACsec, short over the frame", ETHER, ETHERNET("88e5") "00 27 00000001 0800" EMPTY ICV,
     "tunnel-bad link"},
    {"MACsec, short, short ICV", ETHER, ETHERNET("88e5") "00 16 00000001 0800" EMPTY "ff",
     EMPTY_AT("22")},
    {"MACsec, short is all", ETHER, ETHERNET("88e5") "00 26 00000001 0800" EMPTY ICV,
     EMPTY_AT("22")},
    {"MACsec without ICV", ETHER,
     ETHERNET("88e5") "00 00 00000001 0800 00000000 000000000000 000000", "tunnel-bad link"},
    {"MACsec without a type", ETHER, ETHERNET("88e5") "00 00 00000001 08" ICV, "tunnel-short link"},
};

/* More tunnels over IP. */
static const struct row ip_tunnel_rows[] = {
    {"EoIP", RAW, GRE("003e") "2001 6400 0022 0900" INNER, "gre 9, " EMPTY_AT("42")},
    LEAST_GRE("EoIP alone", "001c", "001b", "2001 6400 0000 09", "00", GRE_OUTER("8"), "tunnel",
              "8", "7"),
    {"EoIP length over the packet", RAW, GRE("003e") "2001 6400 0023 0900" INNER,
     "tunnel-bad " GRE_OUTER("42")},
    {"EoIP length within", RAW, GRE("003e") "2001 6400 0021 0900" INNER,
     "ip-short " GRE_OUTER("42")},
    {"EoIP with a sequence", RAW, GRE("003e") "3001 6400 0022 0900" INNER, GRE_OUTER("42")},
    {"WCCP 1", RAW, GRE("002c") "0000 883e" EMPTY, "gre 0, " EMPTY_AT("24")},
    {"WCCP 2", RAW, GRE("0030") "0000 883e 20000102" EMPTY, "gre 0, " EMPTY_AT("28")},
    {"WCCP 2, alternative bucket", RAW, GRE("0030") "0000 883e 45000000" EMPTY,
     "gre 0, " EMPTY_AT("28")},
    LEAST_GRE("WCCP alone", "001e", "001d", "0000 883e 00000000 45", "00",
              "ip-short " GRE_OUTER("10"), "tunnel", "10", "9"),
    {"Aruba 8200", RAW, GRE("004c") "0000 8200" WLAN_DATA("0800") SNAP("0800") EMPTY,
     "gre 0, " EMPTY_AT("56")},
    {"Aruba 8370", RAW, GRE("004c") "0000 8370" WLAN_DATA("0800") SNAP("0800") EMPTY,
     "gre 0, " EMPTY_AT("56")},
    {"Aruba 8380", RAW, GRE("004c") "0000 8380" WLAN_DATA("0800") SNAP("0800") EMPTY,
     GRE_OUTER("56")},
    {"Aruba 8201", RAW, GRE("004c") "0000 8201" WLAN_DATA("0800") SNAP("0800") EMPTY,
     GRE_OUTER("56")},
    {"Aruba 81f0", RAW, GRE("004c") "0000 81f0" WLAN_DATA("0800") SNAP("0800") EMPTY,
     GRE_OUTER("56")},
    {"Aruba, protected", RAW, GRE("004c") "0000 8200" WLAN_DATA("0840") SNAP("0800") EMPTY,
     GRE_OUTER("56")},
    {"EtherIP", RAW, V4("0038", "61") "3000" INNER, "etherip 0, " EMPTY_AT("36")},
    {"EtherIP version", RAW, V4("0038", "61") "4000" INNER, "ipv4@0 20+36 p97"},
    {"EtherIP, reserved", RAW, V4("0038", "61") "3001" INNER, "ipv4@0 20+36 p97"},
    LEAST_IN("EtherIP alone", V4("0016", "61"), V4("0015", "61"), "30", "00",
             "link-short ipv4@0 20+2 p97", "tunnel-cut ipv4@0 20+2 p97 payload 1",
             "tunnel-short ipv4@0 20+1 p97"),
    {"PIM register", RAW, V4("0030", "67") "2100 0000 00000000" EMPTY, "pim 0, " EMPTY_AT("28")},
    {"PIM register of IPv6", RAW, V4("0044", "67") "2100 0000 80000000" EMPTY_6,
     "pim 0, " EMPTY_6_AT("28")},
    {"PIM null register", RAW, V4("0030", "67") "2100 0000 40000000" EMPTY, "ipv4@0 20+28 p103"},
    {"PIM hello", RAW, V4("0018", "67") "2000 0000", "ipv4@0 20+4 p103"},
    {"PIM 1", RAW, V4("0030", "67") "1100 0000 00000000" EMPTY, "ipv4@0 20+28 p103"},
    LEAST_IN("PIM register alone", V4("001c", "67"), V4("001b", "67"), "2100 0000 000000", "00",
             "ip-short ipv4@0 20+8 p103", "tunnel-cut ipv4@0 20+8 p103 payload 7",
             "tunnel-short ipv4@0 20+7 p103"),
    {"IPComp, none", RAW, V4("002c", "6c") "06 00 0000" TCP("5"), "ipv4@0 24+20 p6 1024>80 t20"},
    {"IPComp, deflate", RAW, V4("0020", "6c") "06 00 0002" ZERO_8, "compressed ipv4@0 20+12 p108"},
    {"IPComp in a fragment", RAW, V4_FRAGMENT("001c", "2000", "6c") "06 00 0000" ZERO_4,
     "ipv4@0 20+8 p108 fragment 0+8 more"},
    {"8 times IPComp", RAW, V4("0034", "6c") TIMES_7("6c 00 0000") "3b 00 0000", "ipv4@0 52+0 p59"},
    {"9 times IPComp", RAW, V4("0038", "6c") TIMES_8("6c 00 0000") "3b 00 0000",
     "too-deep ipv4@0 52+4 p108"},
    LEAST_IN("IPComp alone", V4("0018", "6c"), V4("0017", "6c"), "3b 00 00", "00",
             "ipv4@0 24+0 p59", "transport-cut ipv4@0 20+4 p108 payload 3",
             "transport-short ipv4@0 20+3 p108"),
};

/* Tunnels over UDP, each with datagrams that nearly are such a tunnel. */
static const struct row udp_tunnel_rows[] = {
    {"GTP-U", RAW, DATAGRAM("0038", "0868", "0024") "30ff 0014 00000007" EMPTY,
     "gtp-u 0, " EMPTY_AT("36")},
    {"GTP-U of IPv6", RAW, DATAGRAM("004c", "0868", "0038") "30ff 0028 00000007" EMPTY_6,
     "gtp-u 0, " EMPTY_6_AT("36")},
    {"GTP-U, sequence", RAW, DATAGRAM("003c", "0868", "0028") "32ff 0018 00000007 0001 00 85" EMPTY,
     "gtp-u 0, " EMPTY_AT("40")},
    {"GTP-U, N-PDU", RAW, DATAGRAM("003c", "0868", "0028") "31ff 0018 00000007 0000 07 85" EMPTY,
     "gtp-u 0, " EMPTY_AT("40")},
    {"GTP-U, no extension", RAW,
     DATAGRAM("003c", "0868", "0028") "34ff 0018 00000007 0000 00 00" EMPTY,
     "gtp-u 0, " EMPTY_AT("40")},
    {"GTP-U, extension", RAW,
     DATAGRAM("0040", "0868", "002c") "34ff 001c 00000007 0000 00 85 01 1009 00" EMPTY,
     "gtp-u 0, " EMPTY_AT("44")},
    {"GTP-U, two extensions", RAW,
     DATAGRAM("0048", "0868",
              "0034") "36ff 0024 00000007 0001 00 85 02 1009 00000000 c0 01 0868 00" EMPTY,
     "gtp-u 0, " EMPTY_AT("52")},
    {"GTP-U, 16 extensions", RAW,
     DATAGRAM("007c", "0868", "0068") "34ff 0058 00000007 0000 00 85" TIMES_8("01 0000 85")
         TIMES_7("01 0000 85") "01 0000 00" EMPTY,
     "gtp-u 0, " EMPTY_AT("104")},
    {"GTP-U, 17 extensions", RAW,
     DATAGRAM("0080", "0868", "006c") "34ff 005c 00000007 0000 00 85"
                                      "01 0000 85" TIMES_8("01 0000 85")
                                          TIMES_7("01 0000 85") "01 0000 00" EMPTY,
     OUTER("108", "2152")},
    {"GTP-U, extension of 0", RAW,
     DATAGRAM("0040", "0868", "002c") "34ff 001c 00000007 0000 00 85 00 1009 00" EMPTY,
     OUTER("44", "2152")},
    {"GTP-U, extension over the packet", RAW,
     DATAGRAM("0040", "0868", "002c") "34ff 001c 00000007 0000 00 85 07 1009 00" EMPTY,
     OUTER("44", "2152")},
    {"GTP-U before other bytes", RAW,
     DATAGRAM("0039", "0868", "0025") "30ff 0014 00000007" EMPTY "00", "gtp-u 0, " EMPTY_AT("36")},
    {"GTP-U, options absent", RAW, DATAGRAM("0027", "0868", "0013") "32ff 0003 00000007 000000",
     OUTER("19", "2152")},
    {"GTP-U version 2", RAW, DATAGRAM("0038", "0868", "0024") "50ff 0014 00000007" EMPTY,
     OUTER("36", "2152")},
    {"GTP prime", RAW, DATAGRAM("0038", "0868", "0024") "20ff 0014 00000007" EMPTY,
     OUTER("36", "2152")},
    {"GTP-U echo", RAW, DATAGRAM("0038", "0868", "0024") "3001 0014 00000007" EMPTY,
     OUTER("36", "2152")},
    {"GTP-U length over the packet", RAW,
     DATAGRAM("0038", "0868", "0024") "30ff 0015 00000007" EMPTY, OUTER("36", "2152")},
    {"GTP-U length under its IP", RAW, DATAGRAM("0038", "0868", "0024") "30ff 0013 00000007" EMPTY,
     OUTER("36", "2152")},
    {"GTP-U length over its IP", RAW,
     DATAGRAM("0039", "0868", "0025") "30ff 0015 00000007" EMPTY "00", OUTER("37", "2152")},
    {"GTP-U of no IP", RAW,
     DATAGRAM("0038", "0868", "0024") "30ff 0014 00000007" TIMES_4("00000000") ZERO_4,
     OUTER("36", "2152")},
    {"GTP-U on no port of its", RAW, DATAGRAM("0038", "0869", "0024") "30ff 0014 00000007" EMPTY,
     OUTER("36", "2153")},
    {"GTP-U absent", RAW, DATAGRAM("0023", "0868", "000f") "30ff 0014 000000", OUTER("15", "2152")},
    {"GTP-U, IP cut", RAW, DATAGRAM("0038", "0868", "0024") "30ff 0014 00000007 45 +19",
     OUTER("36", "2152") " payload 9"},
    {"Teredo", RAW, DATAGRAM("0044", "0dd8", "0030") EMPTY_6, "teredo 0, " EMPTY_6_AT("28")},
    {"Teredo, authentication", RAW,
     DATAGRAM("0054", "0dd8", "0040") "0001 02 01 aabb cc 0102030405060708 00" EMPTY_6,
     "teredo 0, " EMPTY_6_AT("44")},
    {"Teredo, origin", RAW, DATAGRAM("004c", "0dd8", "0038") "0000 ffff ffffffff" EMPTY_6,
     "teredo 0, " EMPTY_6_AT("36")},
    {"Teredo, both", RAW,
     DATAGRAM("005c", "0dd8", "0048") "0001 02 01 aabb cc 0102030405060708 00"
                                      "0000 ffff ffffffff" EMPTY_6,
     "teredo 0, " EMPTY_6_AT("52")},
    {"Teredo from its port", RAW, V4("0044", "11") "0dd8 0400 0030 abcd " EMPTY_6,
     "teredo 0, " EMPTY_6_AT("28")},
    {"Teredo of IPv4", RAW, DATAGRAM("0030", "0dd8", "001c") EMPTY, OUTER("28", "3544")},
    {"Teredo, authentication absent", RAW,
     DATAGRAM("002c", "0dd8", "0018") "0001 ffff aabb cc 0102030405060708 00", OUTER("24", "3544")},
    {"Teredo before other bytes", RAW, DATAGRAM("0045", "0dd8", "0031") EMPTY_6 "00",
     OUTER("49", "3544")},
    {"Teredo absent", RAW, DATAGRAM("0021", "0dd8", "000d") "60000000 00", OUTER("13", "3544")},
    {"IPv6 on another port", RAW, DATAGRAM("0044", "0dd9", "0030") EMPTY_6, OUTER("48", "3545")},
    {"AYIYA", RAW,
     DATAGRAM("0070", "13d0",
              "005c") "41 52 11 29 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6,
     "ayiya 0, " EMPTY_6_AT("72")},
    {"AYIYA of IPv4", RAW,
     DATAGRAM("005c", "13d0",
              "0048") "41 52 11 04 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY,
     "ayiya 0, " EMPTY_AT("72")},
    {"AYIYA without signature", RAW,
     DATAGRAM("004d", "13d0", "0039") "01 00 01 29 00000000 00" EMPTY_6,
     "ayiya 0, " EMPTY_6_AT("37")},
    {"AYIYA from its port", RAW,
     V4("004d", "11") "13d0 0400 0039 abcd 01 00 01 29 00000000 00" EMPTY_6,
     "ayiya 0, " EMPTY_6_AT("37")},
    {"AYIYA, no operation", RAW,
     DATAGRAM("0070", "13d0",
              "005c") "41 52 10 29 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6,
     OUTER("92", "5072")},
    {"AYIYA, echo", RAW,
     DATAGRAM("0070", "13d0",
              "005c") "41 52 12 29 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6,
     OUTER("92", "5072")},
    {"AYIYA of TCP", RAW,
     DATAGRAM("0070", "13d0",
              "005c") "41 52 11 06 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6,
     OUTER("92", "5072")},
    {"AYIYA of IPv4 as IPv6", RAW,
     DATAGRAM("005c", "13d0",
              "0048") "41 52 11 29 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY,
     OUTER("72", "5072")},
    {"AYIYA of IPv6 as IPv4", RAW,
     DATAGRAM("0070", "13d0",
              "005c") "41 52 11 04 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6,
     OUTER("92", "5072")},
    {"AYIYA, identity over the packet", RAW,
     DATAGRAM("0070", "13d0",
              "005c") "f1 52 11 29 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6,
     OUTER("92", "5072")},
    {"AYIYA before other bytes", RAW,
     DATAGRAM("0071", "13d0",
              "005d") "41 52 11 29 00000000" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_4 EMPTY_6 "00",
     OUTER("93", "5072")},
    {"AYIYA absent", RAW, DATAGRAM("0023", "13d0", "000f") "41 52 11 29 000000",
     OUTER("15", "5072")},
    {"CAPWAP of 802.11", RAW,
     DATAGRAM("0058", "147f", "0044") "00104300 00000000" WLAN_DATA("0801") SNAP("0800") EMPTY,
     "capwap 0, " EMPTY_AT("68")},
    {"CAPWAP, radio", RAW,
     DATAGRAM("0060", "147f", "004c") "00204310 00000000" ZERO_8 WLAN_DATA("0801") SNAP("0800")
         EMPTY,
     "capwap 0, " EMPTY_AT("76")},
    {"CAPWAP, bytes of control exchanged", RAW,
     DATAGRAM("0058", "147f", "0044") "00104300 00000000" WLAN_DATA("0108") SNAP("0800") EMPTY,
     "capwap 0, " EMPTY_AT("68")},
    {"CAPWAP, exchanged with QoS", RAW,
     DATAGRAM("005a", "147f", "0046") "00104300 00000000" WLAN_DATA("0288") "0000" SNAP("0800")
         EMPTY,
     "capwap 0, " EMPTY_AT("70")},
    {"CAPWAP of Ethernet", RAW, DATAGRAM("0046", "147f", "0032") "00104200 00000000" INNER,
     "capwap 0, " EMPTY_AT("50")},
    {"CAPWAP from its port", RAW, V4("0046", "11") "147f 0400 0032 abcd 00104200 00000000" INNER,
     "capwap 0, " EMPTY_AT("50")},
    {"CAPWAP of ARP", RAW,
     DATAGRAM("0046", "147f", "0032") "00104200 00000000" ETHERNET("0806") EMPTY,
     OUTER("50", "5247")},
    {"CAPWAP management frame", RAW,
     DATAGRAM("0058", "147f", "0044") "00104300 00000000" WLAN_DATA("8000") SNAP("0800") EMPTY,
     OUTER("68", "5247")},
    {"CAPWAP in DTLS", RAW,
     DATAGRAM("0058", "147f", "0044") "01104300 00000000" WLAN_DATA("0801") SNAP("0800") EMPTY,
     OUTER("68", "5247")},
    {"CAPWAP fragment", RAW,
     DATAGRAM("0058", "147f", "0044") "00104380 00000000" WLAN_DATA("0801") SNAP("0800") EMPTY,
     OUTER("68", "5247")},
    {"CAPWAP keep-alive", RAW, DATAGRAM("0046", "147f", "0032") "00104208 00000000" INNER,
     OUTER("50", "5247")},
    {"CAPWAP of another binding", RAW,
     DATAGRAM("0058", "147f", "0044") "00104700 00000000" WLAN_DATA("0801") SNAP("0800") EMPTY,
     OUTER("68", "5247")},
    {"CAPWAP under 8", RAW,
     DATAGRAM("0058", "147f", "0044") "00084300 00000000" WLAN_DATA("0801") SNAP("0800") EMPTY,
     OUTER("68", "5247")},
    {"CAPWAP over the packet", RAW, DATAGRAM("0028", "147f", "0014") "00f84300 00000000 00000000",
     OUTER("20", "5247")},
    {"CAPWAP without control", RAW, DATAGRAM("0025", "147f", "0011") "00104300 00000000 08",
     OUTER("17", "5247")},
    {"CAPWAP absent", RAW, DATAGRAM("0023", "147f", "000f") "00104300 000000", OUTER("15", "5247")},
    {"MPLS in UDP", RAW, DATAGRAM("0034", "19eb", "0020") MPLS EMPTY, "mpls 16, " EMPTY_AT("32")},
    {"MPLS in UDP, two labels", RAW, DATAGRAM("004c", "19eb", "0038") "000200ff" MPLS EMPTY_6,
     "mpls 32, mpls 16, " EMPTY_6_AT("36")},
    {"MPLS in UDP of Ethernet", RAW, DATAGRAM("0042", "19eb", "002e") MPLS INNER,
     "mpls 16, " EMPTY_AT("46")},
    {"MPLS in UDP, control word", RAW, DATAGRAM("0046", "19eb", "0032") MPLS "00000000" INNER,
     "mpls 16, " EMPTY_AT("50")},
    {"MPLS in UDP before other bytes", RAW, DATAGRAM("0035", "19eb", "0021") MPLS EMPTY "00",
     OUTER("33", "6635")},
    {"MPLS in UDP, no last label", RAW, DATAGRAM("0034", "19eb", "0020") "000200ff" EMPTY,
     OUTER("32", "6635")},
    {"MPLS in UDP, 9 labels", RAW, DATAGRAM("0054", "19eb", "0040") TIMES_8("000200ff") MPLS EMPTY,
     OUTER("64", "6635")},
    {"MPLS in UDP, 8 labels", RAW, DATAGRAM("0050", "19eb", "003c") TIMES_7("000200ff") MPLS EMPTY,
     TIMES_7("mpls 32, ") "mpls 16, " EMPTY_AT("60")},
    {"MPLS in UDP absent", RAW, DATAGRAM("001f", "19eb", "000b") "000101", OUTER("11", "6635")},
    {"GPE of IPv4", RAW, DATAGRAM("0038", "12b6", "0024") "0c000001 00000700" EMPTY,
     "vxlan 7, " EMPTY_AT("36")},
    {"GPE without VNI", RAW, DATAGRAM("0038", "12b6", "0024") "04000001 00000000" EMPTY,
     "vxlan 0, " EMPTY_AT("36")},
    {"GPE of IPv6", RAW, DATAGRAM("004c", "12b6", "0038") "0c000002 00000700" EMPTY_6,
     "vxlan 7, " EMPTY_6_AT("36")},
    {"GPE of Ethernet", RAW, DATAGRAM("0046", "12b6", "0032") "0c000003 00000700" INNER,
     "vxlan 7, " EMPTY_AT("50")},
    {"GPE of NSH", RAW,
     DATAGRAM("0040", "12b6", "002c") "0c000004 00000700 0fc2 02 01 000001ff" EMPTY,
     "vxlan 7, " EMPTY_AT("44")},
    {"GPE of MPLS", RAW, DATAGRAM("003c", "12b6", "0028") "0c000005 00000700" MPLS EMPTY,
     "vxlan 7, mpls 16, " EMPTY_AT("40")},
    {"GPE on VXLAN's port", RAW, DATAGRAM("0038", "12b5", "0024") "0c000001 00000700" EMPTY,
     "vxlan 7, " EMPTY_AT("36")},
    {"GPE of 6", RAW, DATAGRAM("0038", "12b6", "0024") "0c000006 00000700" EMPTY,
     OUTER("36", "4790")},
    {"GPE of 0", RAW, DATAGRAM("0038", "12b6", "0024") "0c000000 00000700" EMPTY,
     OUTER("36", "4790")},
    {"GPE version 1", RAW, DATAGRAM("0038", "12b6", "0024") "1c000001 00000700" EMPTY,
     OUTER("36", "4790")},
    {"GPE of its operator", RAW, DATAGRAM("0038", "12b6", "0024") "0d000001 00000700" EMPTY,
     OUTER("36", "4790")},
    {"GPE, reserved", RAW, DATAGRAM("0038", "12b6", "0024") "0c000101 00000700" EMPTY,
     OUTER("36", "4790")},
    {"GPE without protocol", RAW, DATAGRAM("0038", "12b6", "0024") "08000001 00000700" EMPTY,
     OUTER("36", "4790")},
    {"GPE before other bytes", RAW, DATAGRAM("0039", "12b6", "0025") "0c000001 00000700" EMPTY "00",
     OUTER("37", "4790")},
    {"GPE absent", RAW, DATAGRAM("0023", "12b6", "000f") "0c000001 000007", OUTER("15", "4790")},
    {"VXLAN, all reserved bits", RAW, DATAGRAM("0046", "12b5", "0032") "ff01d1f2 000007ff" INNER,
     "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN, reserved, IPv6 in VLAN", RAW,
     DATAGRAM("005e", "12b5", "004a") "08000001 00000700" ETHERNET("8100") VLAN("0005", "86dd")
         EMPTY_6,
     "vxlan 7, vlan 5, " EMPTY_6_AT("54")},
    {"VXLAN, reserved, padded", RAW,
     DATAGRAM("0074", "12b5",
              "0060") "08000001 00000700" INNER ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_7 ZERO_7,
     "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN, reserved, more than padding", RAW,
     DATAGRAM("0075", "12b5",
              "0061") "08000001 00000700" INNER ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_7 ZERO_7 "00",
     OUTER("97", "4789")},
    {"VXLAN, reserved, no I flag", RAW, DATAGRAM("0046", "12b5", "0032") "f7010000 00000700" INNER,
     OUTER("50", "4789")},
    {"VXLAN, reserved, ARP", RAW,
     DATAGRAM("0046", "12b5", "0032") "08000001 00000700" ETHERNET("0806") EMPTY,
     OUTER("50", "4789")},
};

static const struct row ipv4_rows[] = {
    LEAST("IPv4", "ip", ETHER,
          ETHERNET("0800") V4_START("45", "0014") "0000 40 3b 0000 0a000001 0a0000", "02",
          EMPTY_AT("14"), " link"),
    {"IPv6 as IPv4", ETHER, ETHERNET("0800") EMPTY_6, "ip-version link"},
    {"version 5", RAW, V4_IHL("55", "0014"), "ip-version link"},
    {"header length 0", RAW, V4_IHL("40", "0014"), "ip-header-length link"},
    {"header length 4", RAW, V4_IHL("44", "0014"), "ip-header-length link"},
    {"header length 6", RAW, V4_IHL("46", "0018") ZERO_4, "ipv4@0 24+0 p59"},
    {"header length 6, cut", RAW, V4_IHL("46", "0018") "000000 +1", "ip-cut ipv4@0 24+0 p59"},
    {"header length over the record", RAW, V4_IHL("46", "0018") "000000",
     "ip-cut ipv4@0 24+0 p59 record cut"},
    {"header length over length", RAW, V4_IHL("46", "0017") "000000", "ip-header-length link"},
    {"header length over the packet around it", RAW, IN_IP("002b") V4_IHL("46", "0018") "000000",
     "ip-header-length ipv4@0 20+23 p4"},
    {"length over the record, later", ETHER, ETHERNET("0800") V4("0015", "3b"),
     "ipv4@14 20+1 p59 payload 0 record cut"},
    {"length 0, later", ETHER, ETHERNET("0800") V4_TCP TCP("5"), "ipv4@14 20+20 p6 1024>80 t20"},
    {"header length 15", RAW, V4_IHL("4f", "003c") TIMES_4(ZERO_8) ZERO_8, "ipv4@0 60+0 p59"},
    {"length under header", RAW, V4("0013", "3b"), "ip-length link"},
    {"length under options", RAW, V4_IHL("46", "0017") ZERO_4, "ip-length link"},
    {"length over the record", RAW, V4("0015", "3b"), "ipv4@0 20+1 p59 payload 0 record cut"},
    {"longest length over the record", RAW, V4("ffff", "3b"),
     "ipv4@0 20+65515 p59 payload 0 record cut"},
    {"length over the record, TCP", RAW, V4("05dc", "06") TCP("5") "00",
     "ipv4@0 20+1480 p6 1024>80 t20 payload 1 record cut"},
    {"length over the record, TCP cut", RAW, V4("05dc", "06") "0400 0050",
     "transport-cut ipv4@0 20+1480 p6 1024>80 payload 4 record cut"},
    {"fragment over the record", RAW, V4_FRAGMENT("05dc", "2001", "3b"),
     "ipv4@0 20+1480 p59 fragment 8+1480 more payload 0 record cut"},
    {"PPPoE and IP over the record", ETHER, ETHERNET("8864") "1100 0001 0017 0021" V4("0015", "3b"),
     "pppoe 1, ipv4@22 20+1 p59 payload 0 record cut"},
    {"IP over PPPoE over the record", ETHER,
     ETHERNET("8864") "1100 0001 0016 0021" V4("0015", "3b"), "ip-length pppoe 1, link"},
    {"radiotap's checksum over the record", RADIOTAP,
     "00 00 0900 02000000 10" WLAN_DATA("0800") SNAP("0800") V4("0015", "3b") ZERO_4,
     "ipv4@41 20+1 p59 payload 0 record cut"},
    {"length over capture", RAW, V4("0015", "3b") "+1", "ipv4@0 20+1 p59 payload 0"},
    {"length before padding", RAW, EMPTY "000000", EMPTY_AT("0")},
    {"length 0 of TCP", RAW, V4_TCP TCP("5"), NO_OPTIONS("20")},
    {"length 0 of UDP", RAW, V4("0000", "11") UDP("0050", "0008"), "ipv4@0 20+8 p17 1024>80 t8"},
    {"length 0 of ICMP", RAW, V4("0000", "01") ZERO_8, "ip-length link"},
    {"fragment of 8", RAW, V4_FRAGMENT("001c", "2001", "3b") ZERO_8,
     "ipv4@0 20+8 p59 fragment 8+8 more"},
    {"fragment of 7", RAW, V4_FRAGMENT("001b", "2001", "3b") ZERO_7,
     "ip-fragment ipv4@0 20+7 p59 fragment 8+7 more"},
    {"fragment of 12", RAW, V4_FRAGMENT("0020", "2001", "3b") ZERO_8 ZERO_4,
     "ip-fragment ipv4@0 20+12 p59 fragment 8+12 more"},
    {"last fragment of 7", RAW, V4_FRAGMENT("001b", "0001", "06") ZERO_7,
     "ipv4@0 20+7 p6 fragment 8+7"},
    {"don't fragment", RAW, V4_FRAGMENT("0014", "c000", "3b"), "ipv4@0 20+0 p59"},
    {"fragment up to 65,535", RAW, V4_FRAGMENT("0017", "1ffd", "3b") "000000",
     "ipv4@0 20+3 p59 fragment 65512+3"},
    {"fragment past 65,535", RAW, V4_FRAGMENT("0018", "1ffd", "3b") ZERO_4,
     "ip-fragment ipv4@0 20+4 p59 fragment 65512+4"},
    /* next header, length in words less 2, reserved, index, sequence, check value */
    LEAST_IN("authentication header", V4("0020", "33"), V4("001f", "33"), "3b01 0000" ZERO_7, "00",
             "ipv4@0 32+0 p59", "ip-cut ipv4@0 20+12 p51 payload 11",
             "ip-extension ipv4@0 20+11 p51"),
    LEAST_IN("its first 8 bytes", V4("001c", "33"), V4("001b", "33"), "3b00 0000 000000", "00",
             "ipv4@0 28+0 p59", "ip-cut ipv4@0 20+8 p51 payload 7", "ip-extension ipv4@0 20+7 p51"),
    {"later fragment of it", RAW, V4_FRAGMENT("001c", "0001", "33") "3bff 0000 00000000",
     "ipv4@0 20+8 p51 fragment 8+8"},
};

/* An extension header of 16 bytes whose length is as given. */
#define EXTENSION(what, next, p, length)                                                           \
    LEAST_IN(what, V6("0010", next), V6("000f", next), "3b" length " 0000" ZERO_4 ZERO_7, "00",    \
             "ipv6@0 56+0 p59", "ip-cut ipv6@0 40+16 " p " payload 15",                            \
             "ip-extension ipv6@0 40+15 " p)
#define JUMBO(options) V6("0000", "00") "3b00 " options

static const struct row ipv6_rows[] = {
    LEAST("IPv6", "ip", ETHER,
          ETHERNET("86dd") "6b800000 0000 3b40 fd000000000000000000000000000001 fe" ZERO_7 ZERO_7,
          "02", EMPTY_6_AT("14"), " link"),
    {"IPv4 as IPv6", ETHER, ETHERNET("86dd") EMPTY EMPTY, "ip-version link"},
    {"length over the record", RAW, V6("0001", "3b"), "ipv6@0 40+1 p59 payload 0 record cut"},
    {"length over the record, later", ETHER, ETHERNET("86dd") V6("0001", "3b"),
     "ipv6@14 40+1 p59 payload 0 record cut"},
    {"length over the packet around it", RAW, V4("003c", "29") V6("0001", "3b"),
     "ip-length ipv4@0 20+40 p41"},
    {"length 0, later", ETHER, ETHERNET("86dd") V6("0000", "06") TCP("5"),
     "ipv6@14 40+20 p6 1024>80 t20"},
    {"length over capture", RAW, V6("0001", "3b") "+1", "ipv6@0 40+1 p59 payload 0"},
    {"length before padding", RAW, EMPTY_6 "00", EMPTY_6_AT("0")},
    {"length 0 of TCP", RAW, V6("0000", "06") TCP("5"), "ipv6@0 40+20 p6 1024>80 t20"},
    {"length 0 of UDP", RAW, V6("0000", "11") UDP("0050", "0000"), "ipv6@0 40+8 p17 1024>80 t8"},
    {"length 0 of ICMPv6", RAW, V6("0000", "3a") ZERO_8, "transport-short ipv6@0 40+0 p58"},
    LEAST_IN("extension header", V6("0008", "3c"), V6("0007", "3c"), "3b00 0104 000000", "00",
             "ipv6@0 48+0 p59", "ip-cut ipv6@0 40+8 p60 payload 7", "ip-extension ipv6@0 40+7 p60"),
    EXTENSION("hop-by-hop options", "00", "p0", "01"),
    EXTENSION("routing", "2b", "p43", "01"),
    EXTENSION("destination options", "3c", "p60", "01"),
    EXTENSION("mobility", "87", "p135", "01"),
    EXTENSION("host identity", "8b", "p139", "01"),
    EXTENSION("shim6", "8c", "p140", "01"),
    EXTENSION("authentication", "33", "p51", "02"),
    {"protocol 255", RAW, V6("0000", "ff"), "ipv6@0 40+0 p255"},
    {"longest extension", RAW, V6("0800", "3c") "3bff 0000 00000000 +2040",
     "ip-cut ipv6@0 40+2048 p60 payload 8"},
    {"longest extension absent", RAW, V6("07ff", "3c") "3bff 0000 00000000 +2039",
     "ip-extension ipv6@0 40+2047 p60 payload 8"},
    {"16 extensions", RAW,
     V6("0080", "3c") TIMES_8(OPTIONS_8("3c")) TIMES_7(OPTIONS_8("3c")) OPTIONS_8("3b"),
     "ipv6@0 168+0 p59"},
    {"17 extensions", RAW, V6("0088", "3c") TWICE(TIMES_8(OPTIONS_8("3c"))) OPTIONS_8("3b"),
     "ip-extension ipv6@0 168+8 p60"},
    /* next header, reserved, offset with more fragments, identification */
    LEAST_IN("atomic fragment", V6("0008", "2c"), V6("0007", "2c"), "3bff 0000 000000", "07",
             "ipv6@0 48+0 p59 atomic", "ip-cut ipv6@0 40+8 p44 payload 7",
             "ip-extension ipv6@0 40+7 p44"),
    {"fragment of 8", RAW, V6("0010", "2c") "3b00 0001 00000007" ZERO_8,
     "ipv6@0 48+8 p59 fragment 0+8 more"},
    {"fragment of 7", RAW, V6("000f", "2c") "3b00 0001 00000007" ZERO_7,
     "ip-fragment ipv6@0 48+7 p59 fragment 0+7 more"},
    {"last fragment of 7", RAW, V6("000f", "2c") "3c00 0008 00000007" ZERO_7,
     "ipv6@0 48+7 p60 fragment 8+7"},
    {"options in first fragment", RAW, V6("0010", "2c") "3c00 0001 00000007" OPTIONS_8("3b"),
     "ipv6@0 56+0 p59 fragment 0+8 more"},
    {"fragment up to 65,535", RAW, V6("000f", "2c") "3b00 fff8 00000007" ZERO_7,
     "ipv6@0 48+7 p59 fragment 65528+7"},
    {"fragment past 65,535", RAW, V6("0010", "2c") "3b00 fff8 00000007" ZERO_8,
     "ip-fragment ipv6@0 48+8 p59 fragment 65528+8"},
    {"fragment twice", RAW, V6("0018", "2c") "2c00 0001 00000007 3b00 0001 00000007" ZERO_8,
     "ip-extension ipv6@0 48+16 p44 fragment 0+16 more"},
    {"atomic fragment twice", RAW, V6("0010", "2c") "2c00 0000 00000007 3b00 0000 00000007",
     "ip-extension ipv6@0 48+8 p44 atomic"},
    {"jumbo of its header", RAW, JUMBO("c204 00000008"), "ipv6@0 48+0 p59"},
    {"jumbo under its header", RAW, JUMBO("c204 00000007"), "ip-length link"},
    {"jumbo over the frame", RAW, JUMBO("c204 00000009"), "ip-length link"},
    {"jumbo over the frame, later", ETHER, ETHERNET("86dd") V6("0000", "00") "3b00 c204 00000009",
     "ip-length link"},
    {"jumbo over capture", RAW, JUMBO("c204 00000009") "+1", "ipv6@0 48+1 p59 payload 0"},
    {"jumbo before padding", RAW, JUMBO("c204 00000008 00"), "ipv6@0 48+0 p59"},
    {"jumbo of 65,536", RAW, JUMBO("c204 00010000") "+65528", "ipv6@0 48+65528 p59 payload 0"},
    {"jumbo of 4 GiB", RAW, JUMBO("c204 ffffffff"), "ip-length link"},
    {"no jumbo option", RAW, JUMBO("0104 00000000"), "ip-length link"},
    {"jumbo of 3 bytes", RAW, JUMBO("c203 00000800"), "ip-length link"},
    {"jumbo over its header", RAW, JUMBO("00 c204 000000 18" ZERO_7 ZERO_8), "ip-length link"},
    {"option over its header", RAW, JUMBO("0103 000000 01"), "ip-length link"},
    {"jumbo after Pad1", RAW, V6("0000", "00") "3b01 00 00 c204 00000010 0104" ZERO_4,
     "ipv6@0 56+0 p59"},
    {"jumbo after PadN", RAW, V6("0000", "00") "3b01 0102 0000 c204 00000010 0102 0000",
     "ipv6@0 56+0 p59"},
    {"jumbo last", RAW, V6("0000", "00") "3b01 0106 ffffffffffff c204 00000010", "ipv6@0 56+0 p59"},
};

#define UDP_TO_80(n) "ipv4@0 20+" n " p17 1024>80 t8"
#define TO_80(n, p)  "ipv4@0 20+" n " p" p " 1024>80"
#define LEAST_PORTS(what, protocol, p, len, below, bytes, last, n, kept)                           \
    LEAST_IN(what, V4(len, protocol), V4(below, protocol), bytes, last, TO_80(n, p) " t" n,        \
             "transport-cut " TO_80(n, p) " payload " kept, "transport-short " TO_80(kept, p))
#define DCCP(offset, x) "0400 0050 " offset " 00 0000 " x " 000000 "

static const struct row transport_rows[] = {
    LEAST_KEPT("ports", RAW, V4_TCP "0400 00", "50", "transport-short ipv4@0 20+4 p6 1024>80",
               "transport-short ipv4@0 20+4 p6 payload 3", "transport-short ipv4@0 20+3 p6"),
    {"TCP cut after ports", RAW, V4_TCP "0400 0050 +16",
     "transport-cut ipv4@0 20+20 p6 1024>80 payload 4"},
    {"TCP cut before", RAW, V4_TCP "+20", "transport-cut ipv4@0 20+20 p6 payload 0"},
    LEAST_KEPT("TCP", RAW, V4_TCP "0400 0050 00000001 00000002 5111 1234 abcd 00", "00",
               NO_OPTIONS("20"), "transport-cut ipv4@0 20+20 p6 1024>80 payload 19",
               "transport-short ipv4@0 20+19 p6 1024>80"),
    {"TCP by the IP length", RAW, V4("0027", "06") TCP("5"),
     "transport-short ipv4@0 20+19 p6 1024>80"},
    {"data offset 0", RAW, V4_TCP TCP("0"), "tcp-data-offset ipv4@0 20+20 p6 1024>80"},
    {"data offset 4", RAW, V4_TCP TCP("4"), "tcp-data-offset ipv4@0 20+20 p6 1024>80"},
    {"data offset over the packet", RAW, V4_TCP TCP("6") "010101",
     "tcp-data-offset ipv4@0 20+23 p6 1024>80"},
    {"data offset 15", RAW, V4_TCP TCP("f") TIMES_8("01010101") TWICE("01010101"),
     NO_OPTIONS("60")},
    LEAST_PORTS("UDP", "11", "17", "001c", "001b", "0400 0050 0008 00", "00", "8", "7"),
    {"UDP length 7", RAW, V4("001c", "11") UDP("0050", "0007"), "udp-length " UDP_TO_80("8")},
    {"UDP length 0", RAW, V4("001c", "11") UDP("0050", "0000"), "udp-length " UDP_TO_80("8")},
    {"UDP length over the packet", RAW, V4("001c", "11") UDP("0050", "0009"),
     "udp-length " UDP_TO_80("8")},
    {"UDP length over capture", RAW, V4("001d", "11") UDP("0050", "0009") "+1",
     UDP_TO_80("9") " payload 0"},
    {"UDP length within", RAW, V4("001e", "11") UDP("0050", "0009") "0000",
     UDP_TO_80("10") " payload 1/1"},
    {"UDP length of a header, more", RAW, V4("001e", "11") UDP("0050", "0008") "0000",
     UDP_TO_80("10") " payload 0/0"},
    {"UDP lengths left out", RAW, V4("0000", "11") UDP("0050", "0000") "0000", UDP_TO_80("10")},
    {"UDP length 7, no IP length", RAW, V4("0000", "11") UDP("0050", "0007"),
     "udp-length " UDP_TO_80("8")},
    {"UDP in first fragment", RAW, V4_FRAGMENT("0024", "2000", "11") UDP("0050", "0011") ZERO_8,
     UDP_TO_80("16") " fragment 0+16 more"},
    {"UDP length 7 in fragment", RAW, V4_FRAGMENT("0024", "2000", "11") UDP("0050", "0007") ZERO_8,
     "udp-length " UDP_TO_80("16") " fragment 0+16 more"},
    {"UDP in later fragment", RAW, V4_FRAGMENT("001c", "0001", "11") UDP("0050", "0007"),
     "ipv4@0 20+8 p17 fragment 8+8"},
    LEAST_PORTS("UDP-Lite", "88", "136", "001c", "001b", "0400 0050 0000 00", "00", "8", "7"),
    {"coverage 1", RAW, V4("001c", "88") UDP("0050", "0001"),
     "transport-bad ipv4@0 20+8 p136 1024>80 t8"},
    {"coverage 7", RAW, V4("001c", "88") UDP("0050", "0007"),
     "transport-bad ipv4@0 20+8 p136 1024>80 t8"},
    {"coverage 8", RAW, V4("001c", "88") UDP("0050", "0008"), "ipv4@0 20+8 p136 1024>80 t8"},
    {"coverage 9", RAW, V4("001c", "88") UDP("0050", "0009"),
     "transport-bad ipv4@0 20+8 p136 1024>80 t8"},
    {"coverage over capture", RAW, V4("001d", "88") UDP("0050", "0009") "+1",
     "ipv4@0 20+9 p136 1024>80 t8 payload 0"},
    {"coverage over a fragment", RAW, V4_FRAGMENT("001c", "2000", "88") UDP("0050", "0009"),
     "ipv4@0 20+8 p136 1024>80 t8 fragment 0+8 more"},
    LEAST_PORTS("SCTP", "84", "132", "0020", "001f", "0400 0050" ZERO_7, "00", "12", "11"),
    LEAST_PORTS("DCCP", "21", "33", "0020", "001f", "0400 0050 03 00 0000 04 0000", "00", "12",
                "11"),
    LEAST_PORTS("DCCP extended", "21", "33", "0024", "0023", DCCP("04", "05") "000000", "00", "16",
                "15"),
    {"DCCP offset 2, absent", RAW, V4("001f", "21") "0400 0050 02 00 0000 04 0000",
     "transport-short ipv4@0 20+11 p33 1024>80"},
    {"DCCP offset 2", RAW, V4("0020", "21") DCCP("02", "04"),
     "transport-bad ipv4@0 20+12 p33 1024>80"},
    {"DCCP extended, offset 3", RAW, V4("0024", "21") DCCP("03", "05") ZERO_4,
     "transport-bad ipv4@0 20+16 p33 1024>80"},
    LEAST_IN("ICMP", V4("001c", "01"), V4("001b", "01"), "0800 0000 0007 00", "09",
             "ipv4@0 20+8 p1 t8 echo 7", "transport-cut ipv4@0 20+8 p1 payload 7",
             "transport-short ipv4@0 20+7 p1"),
    LEAST_IN("ICMPv6", V6("0008", "3a"), V6("0007", "3a"), "8000 0000 0007 00", "09",
             "ipv6@0 40+8 p58 t8 echo 7", "transport-cut ipv6@0 40+8 p58 payload 7",
             "transport-short ipv6@0 40+7 p58"),
    {"ESP", RAW, V4("001c", "32") ZERO_8, "encrypted ipv4@0 20+8 p50"},
    {"ESP after options", RAW, V6("0010", "3c") OPTIONS_8("32") ZERO_8,
     "encrypted ipv6@0 48+8 p50"},
    {"ESP in first fragment", RAW, V4_FRAGMENT("001c", "2000", "32") ZERO_8,
     "encrypted ipv4@0 20+8 p50 fragment 0+8 more"},
    {"ESP in later fragment", RAW, V4_FRAGMENT("001c", "0001", "32") ZERO_8,
     "ipv4@0 20+8 p50 fragment 8+8"},
    {"ESP in IP in IP", RAW, V4("0030", "04") V4("001c", "32") ZERO_8,
     "encrypted ipip 0, ipv4@20 20+8 p50"},
};

/* Options as their bits in enum tcp_option_seen. */
static const struct row option_rows[] = {
    {"no operations", RAW, V4_TCP TCP("6") "01010101", NO_OPTIONS("24")},
    {"kind at the end", RAW, V4_TCP TCP("6") "01010102", "tcp-options " NO_OPTIONS("24")},
    {"end of options", RAW, V4_TCP TCP("6") "00010102", NO_OPTIONS("24")},
    {"length 0", RAW, V4_TCP TCP("6") "03000101", "tcp-options " NO_OPTIONS("24")},
    {"length 1", RAW, V4_TCP TCP("6") "03010101", "tcp-options " NO_OPTIONS("24")},
    {"length 2", RAW, V4_TCP TCP("6") "04020101", OPTIONS("24", "4")},
    {"length 2 at the end", RAW, V4_TCP TCP("6") "01010402", OPTIONS("24", "4")},
    {"length of all", RAW, V4_TCP TCP("6") "020405b4", OPTIONS("24", "1 mss 1460")},
    {"length over the header", RAW, V4_TCP TCP("6") "02050102" ZERO_8,
     "tcp-options ipv4@0 20+32 p6 1024>80 t24"},
    {"good after good", RAW, V4_TCP TCP("7") "020405b4 03030701",
     "ipv4@0 20+28 p6 1024>80 t28 options 3 mss 1460 scale 7"},
    {"good before bad", RAW, V4_TCP TCP("7") "020405b4 03060701",
     "tcp-options " OPTIONS("28", "1 mss 1460")},
    {"all cut", RAW, V4_TCP TCP("6") "+4", "tcp-options-cut " OPTIONS("24", "200")},
    {"cut after no operations", RAW, V4_TCP TCP("6") "010101 +1",
     "tcp-options-cut " OPTIONS("24", "200")},
    {"cut after the end", RAW, V4_TCP TCP("6") "000000 +1", NO_OPTIONS("24")},
    {"cut after a kind", RAW, V4_TCP TCP("6") "010104 +1", "tcp-options-cut " OPTIONS("24", "200")},
    {"cut after a length", RAW, V4_TCP TCP("6") "0204 +2", "tcp-options-cut " OPTIONS("24", "200")},
    {"cut in a value", RAW, V4_TCP TCP("6") "020405 +1", "tcp-options-cut " OPTIONS("24", "200")},
    {"cut after an option", RAW, V4_TCP TCP("7") "020405b4 +4",
     "tcp-options-cut " OPTIONS("28", "201 mss 1460")},
    {"cut after a bad length", RAW, V4_TCP TCP("6") "0205 +2", "tcp-options " NO_OPTIONS("24")},
    {"timestamps as usual", RAW, V4_TCP TCP("8") "0101080a 00000003 00000004",
     OPTIONS("32", "8 times 3/4")},
    {"timestamps otherwise", RAW, V4_TCP TCP("8") "080a 00000003 00000004 0101",
     OPTIONS("32", "8 times 3/4")},
    {"cut after timestamps", RAW, V4_TCP TCP("9") "0101080a 00000003 00000004 +4",
     "tcp-options-cut " OPTIONS("36", "208 times 3/4")},
    {"no fast open", RAW, V4_TCP TCP("7") "fe03f9 8902 000000", OPTIONS("28", "100")},
    {"timestamps cut", RAW, V4_TCP TCP("8") "0101080a 00000003 000000 +1",
     "tcp-options-cut " OPTIONS("32", "200")},
    {"two blocks", RAW, V4_TCP TCP("a") "0512 00000001 00000002 00000003 00000004 0101",
     OPTIONS("40", "10 sack 1-2 3-4")},
};

/* One option alone: its shortest and longest valid lengths. One byte beside, it is another one. */
static const struct option_lengths {
    uint8_t kind, least, most;
    uint16_t seen;
} option_lengths[] = {
    {2, 4, 4, TCP_OPTION_MSS},
    {3, 3, 3, TCP_OPTION_WINDOW_SCALE},
    {4, 2, 2, TCP_OPTION_SACK_PERMITTED},
    {5, 2, 2, TCP_OPTION_OTHER},
    {5, 10, 10, TCP_OPTION_SACK},
    {5, 18, 18, TCP_OPTION_SACK},
    {5, 34, 34, TCP_OPTION_SACK},
    {6, 6, 6, TCP_OPTION_OTHER},
    {8, 10, 10, TCP_OPTION_TIMESTAMPS},
    {19, 18, 18, TCP_OPTION_SIGNATURE},
    {29, 4, 40, TCP_OPTION_SIGNATURE},
    {30, 3, 40, TCP_OPTION_MPTCP},
    {34, 2, 18, TCP_OPTION_FAST_OPEN},
    {254, 4, 40, TCP_OPTION_FAST_OPEN}, /* f9 89: fast open before it had a kind */
    {253, 4, 4, TCP_OPTION_OTHER},
};

/* Errors quote what they are about: TCP from 1024 to 80, as far as it goes. */
#define TOO_BIG     "03 04 0000 0000 05dc "
#define TOO_BIG_6   "02 00 0000 00000500 "
#define QUOTED      V4("0028", "06") "0400 0050 00000001"
#define QUOTED_6(n) V6(n, "3c") OPTIONS_8("06") "0400 0050 00000001"
#define PADS_15(n)  V6(n, "3c") TIMES_8(OPTIONS_8("3c")) TIMES_7(OPTIONS_8("3c"))

static const struct row icmp_rows[] = {
    {"quotation", RAW, V4("0038", "01") TOO_BIG QUOTED,
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p6 1024>80 #1"},
    {"quotation without sequence", RAW,
     V4("0037", "01") TOO_BIG V4("0028", "06") "0400 0050 000000",
     "ipv4@0 20+35 p1 t8 mtu 1500 quotes p6 1024>80 #0"},
    {"quotation with ports", RAW, V4("0034", "01") TOO_BIG V4("0028", "06") "0400 0050",
     "ipv4@0 20+32 p1 t8 mtu 1500 quotes p6 1024>80 #0"},
    {"quotation with a port", RAW, V4("0033", "01") TOO_BIG V4("0028", "06") "0400 00",
     "ipv4@0 20+31 p1 t8 mtu 1500 quotes p6 0>0 #0"},
    {"quotation of a header", RAW, V4("0030", "01") TOO_BIG V4("0028", "06"),
     "ipv4@0 20+28 p1 t8 mtu 1500 quotes p6 0>0 #0"},
    {"quotation under a header", RAW, V4("002f", "01") TOO_BIG V4("0028", "06"),
     "ipv4@0 20+27 p1 t8 mtu 1500"},
    {"no quotation", RAW, V4("001c", "01") "0b00 0000 00000000", "ipv4@0 20+8 p1 t8"},
    {"quoted header length 4", RAW, V4("0030", "01") TOO_BIG V4_IHL("44", "0028"),
     "ipv4@0 20+28 p1 t8 mtu 1500"},
    {"quoted version 6", RAW, V4("0030", "01") TOO_BIG V4_IHL("65", "0028"),
     "ipv4@0 20+28 p1 t8 mtu 1500"},
    {"quoted later fragment", RAW,
     V4("0038", "01") TOO_BIG V4_FRAGMENT("0028", "0001", "06") "0400 0050 00000001",
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p6 0>0 #0"},
    {"quoted protocol without ports", RAW,
     V4("0038", "01") TOO_BIG V4("0028", "02") "0400 0050 00000001",
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p2 0>0 #0"},
    {"quoted UDP", RAW, V4("0038", "01") "0303 0000 000005dc" V4("0028", "11") UDP("0050", "0008"),
     "ipv4@0 20+36 p1 t8 quotes p17 1024>80 #0"},
    {"quoted UDP-Lite", RAW, V4("0038", "01") TOO_BIG V4("0028", "88") UDP("0050", "0008"),
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p136 1024>80 #0"},
    {"quoted SCTP", RAW, V4("0038", "01") TOO_BIG V4("0028", "84") UDP("0050", "0008"),
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p132 1024>80 #0"},
    {"quoted DCCP", RAW, V4("0038", "01") TOO_BIG V4("0028", "21") UDP("0050", "0008"),
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p33 1024>80 #0"},
    {"quotation of IPv6", RAW, V6("0040", "3a") TOO_BIG_6 QUOTED_6("001c"),
     "ipv6@0 40+64 p58 t8 mtu 1280 quotes p6 1024>80 #1"},
    {"quotation of its header", RAW, V6("0030", "3a") TOO_BIG_6 V6("001c", "3c"),
     "ipv6@0 40+48 p58 t8 mtu 1280 quotes p60 0>0 #0"},
    {"quotation under its header", RAW, V6("002f", "3a") TOO_BIG_6 V6("001c", "3c"),
     "ipv6@0 40+47 p58 t8 mtu 1280"},
    {"quotation of options", RAW, V6("0038", "3a") TOO_BIG_6 V6("001c", "3c") OPTIONS_8("06"),
     "ipv6@0 40+56 p58 t8 mtu 1280 quotes p6 0>0 #0"},
    {"quotation under options", RAW, V6("0037", "3a") TOO_BIG_6 V6("001c", "3c") OPTIONS_8("06"),
     "ipv6@0 40+55 p58 t8 mtu 1280 quotes p60 0>0 #0"},
    {"quoted fragment", RAW,
     V6("0040", "3a") TOO_BIG_6 V6("001c", "2c") "0600 0001 00000007 0400 0050 00000001",
     "ipv6@0 40+64 p58 t8 mtu 1280 quotes p6 1024>80 #1"},
    {"quoted later fragment", RAW,
     V6("0040", "3a") TOO_BIG_6 V6("001c", "2c") "0600 0008 00000007 0400 0050 00000001",
     "ipv6@0 40+64 p58 t8 mtu 1280 quotes p6 0>0 #0"},
    {"16 quoted extensions", RAW,
     V6("00b8", "3a") TOO_BIG_6 PADS_15("0094") OPTIONS_8("06") "0400 0050 00000001",
     "ipv6@0 40+184 p58 t8 mtu 1280 quotes p6 1024>80 #1"},
    {"17 quoted extensions", RAW,
     V6("00c0", "3a") TOO_BIG_6 PADS_15("009c") OPTIONS_8("3c") OPTIONS_8("06") ZERO_8,
     "ipv6@0 40+192 p58 t8 mtu 1280 quotes p60 0>0 #0"},
};

#define ROWS(table)                                                                                \
    { #table, table, sizeof table / sizeof *table }

static const struct {
    const char *name;
    const struct row *rows;
    size_t count;
} tables[] = {
    ROWS(link_rows),   ROWS(wlan_rows), ROWS(other_link_rows), ROWS(encapsulation_rows),
    ROWS(tunnel_rows), ROWS(shim_rows), ROWS(ip_tunnel_rows),  ROWS(udp_tunnel_rows),
    ROWS(ipv4_rows),   ROWS(ipv6_rows), ROWS(transport_rows),  ROWS(option_rows),
    ROWS(icmp_rows),
};
#define TABLES (sizeof tables / sizeof *tables)

static unsigned failures;
static bool reasons_met[REASON_COUNT];

#define TEXT_MOST 512

/* The text goes on. */
__attribute__((format(printf, 2, 3))) static void say(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    CHECK(vsnprintf(text + used, TEXT_MOST - used, format, arguments) < (int)(TEXT_MOST - used));
    va_end(arguments);
}

static void describe_path(char *text, const struct headers *headers) {
    static const char *const kinds[] = {
        [PATH_VLAN] = "vlan",     [PATH_MPLS] = "mpls",     [PATH_PPPOE] = "pppoe",
        [PATH_GRE] = "gre",       [PATH_IPIP] = "ipip",     [PATH_VXLAN] = "vxlan",
        [PATH_GENEVE] = "geneve", [PATH_PBB] = "pbb",       [PATH_ETHER_IP] = "etherip",
        [PATH_PIM] = "pim",       [PATH_GTP_U] = "gtp-u",   [PATH_TEREDO] = "teredo",
        [PATH_AYIYA] = "ayiya",   [PATH_CAPWAP] = "capwap",
    };
    for (unsigned i = 0; i < headers->path_depth; i++)
        say(text, "%s %u, ", kinds[headers->path[i].kind], headers->path[i].id);
}

static void describe_tcp(char *text, const struct tcp_header *tcp) {
    if (tcp->options)
        say(text, " options %x", tcp->options);
    if (tcp->mss)
        say(text, " mss %u", tcp->mss);
    if (tcp->window_scale)
        say(text, " scale %u", tcp->window_scale);
    if (tcp->options & TCP_OPTION_TIMESTAMPS)
        say(text, " times %u/%u", tcp->timestamp_value, tcp->timestamp_echo);
    if (tcp->sack_count)
        say(text, " sack");
    for (unsigned i = 0; i < tcp->sack_count; i++)
        say(text, " %u-%u", tcp->sack[i].start, tcp->sack[i].end);
}

static void describe_icmp(char *text, const struct icmp_header *icmp) {
    if (icmp->identifier)
        say(text, " echo %u", icmp->identifier);
    if (icmp->mtu)
        say(text, " mtu %u", icmp->mtu);
    if (icmp->quotes)
        say(text, " quotes p%u %u>%u #%u", icmp->quoted_protocol, icmp->quoted_source_port,
            icmp->quoted_destination_port, icmp->quoted_sequence);
}

static void describe_transport(char *text, const struct headers *headers) {
    say(text, " t%u", headers->transport_header_length);
    if (headers->protocol == 6)
        describe_tcp(text, &headers->tcp);
    if (headers->protocol == 1 || headers->protocol == 58)
        describe_icmp(text, &headers->icmp);
}

/* Version @ offset, lengths of header + payload, protocol, ports, transport header's length,
 * fragment's place, bytes of payload captured unless all were / sent unless they are the rest. */
static void describe_network(char *text, const struct headers *headers) {
    uint32_t rest =
        headers->ip_length - headers->ip_header_length - headers->transport_header_length;
    say(text, "ipv%u@%u %u+%u p%u", headers->ip_version, headers->outer_length,
        headers->ip_header_length, headers->ip_length - headers->ip_header_length,
        headers->protocol);
    if (headers->ports_known)
        say(text, " %u>%u", headers->source_port, headers->destination_port);
    if (headers->layer == LAYER_TRANSPORT)
        describe_transport(text, headers);
    if (headers->fragment)
        say(text, " fragment %u+%u%s", headers->fragment_offset, headers->fragment_length,
            headers->more_fragments ? " more" : "");
    if (headers->atomic_fragment)
        say(text, " atomic");
    if (headers->payload_length != rest || headers->payload_captured != rest)
        say(text, " payload %u", headers->payload_captured);
    if (headers->payload_length != rest)
        say(text, "/%u", headers->payload_length);
    if (headers->length_over_record)
        say(text, " record cut");
}

/* The reason unless all was decoded, and the headers that were read. */
static void describe(char *text, const struct headers *headers) {
    *text = '\0';
    if (headers->reason != REASON_NONE)
        say(text, "%s%s", decode_reason_name(headers->reason), headers->layer ? " " : "");
    describe_path(text, headers);
    if (headers->layer >= LAYER_NETWORK)
        describe_network(text, headers);
    else if (headers->layer == LAYER_LINK)
        say(text, "link");
}

static uint8_t digit_value(char digit) {
    const char *digits = "0123456789abcdef", *at = strchr(digits, digit);
    CHECK(digit && at);
    return (uint8_t)(at - digits);
}

/* Returns the bytes of the digits, and sets those on the wire. */
static uint32_t bytes_from_digits(const char *digits, uint8_t *bytes, uint32_t *wire) {
    uint32_t count = 0;
    for (; *digits && !strchr("+-", *digits); digits++) {
        if (*digits == ' ')
            continue;
        uint8_t value = digit_value(*digits);
        if (count % 2)
            bytes[count / 2] |= value;
        else
            bytes[count / 2] = (uint8_t)(value << 4);
        count++;
    }
    CHECK(count % 2 == 0);
    *wire = count / 2 + (uint32_t)atoi(digits);
    return count / 2;
}

static void check_addresses(bool six, const uint8_t *source, const uint8_t *destination) {
    static const uint8_t addresses[2][2][16] = {
        {{10, 0, 0, 1}, {10, 0, 0, 2}},
        {{0xfd, [15] = 1}, {0xfe, [15] = 2}},
    };
    CHECK(memcmp(source, addresses[six][0], 16) == 0);
    CHECK(memcmp(destination, addresses[six][1], 16) == 0);
}

/* What the macros above write into every IP header. */
static void check_network(const struct headers *headers) {
    bool six = headers->ip_version == 6;
    check_addresses(six, headers->source, headers->destination);
    CHECK_INT(headers->traffic_class, 0xb8);
    CHECK_INT(headers->ttl, 0x40);
    CHECK_INT(headers->identification, !six                                            ? 1
                                       : headers->fragment || headers->atomic_fragment ? 7
                                                                                       : 0);
}

static uint32_t number_at(const uint8_t *bytes, unsigned size) {
    uint32_t number = 0;
    while (size--)
        number = number << 8 | *bytes++;
    return number;
}

static void check_tcp(const struct tcp_header *tcp, const uint8_t *bytes) {
    CHECK_INT(tcp->sequence, number_at(bytes + 4, 4));
    CHECK_INT(tcp->acknowledgment, number_at(bytes + 8, 4));
    CHECK_INT(tcp->flags, number_at(bytes + 12, 2) % 0x1000);
    CHECK_INT(tcp->window, number_at(bytes + 14, 2));
}

/* Lengths and checksums as in the bytes of the transport header. */
static void check_transport(const struct headers *headers, const uint8_t *bytes) {
    bool tcp = headers->protocol == 6, udp = headers->protocol == 17;
    bool udp_lite = headers->protocol == 136;
    CHECK_INT(headers->udp_length, udp ? number_at(bytes + 4, 2) : 0);
    CHECK_INT(headers->transport_checksum, tcp               ? number_at(bytes + 16, 2)
                                           : udp || udp_lite ? number_at(bytes + 6, 2)
                                                             : 0);
    if (tcp)
        check_tcp(&headers->tcp, bytes);
    if ((headers->protocol == 1 || headers->protocol == 58) && headers->icmp.quotes)
        check_addresses(headers->ip_version == 6, headers->icmp.quoted_source,
                        headers->icmp.quoted_destination);
}

/* What does not hold is 0. */
static void check_absent(const struct headers *headers) {
    if (!headers->ports_known)
        CHECK(headers->source_port == 0 && headers->destination_port == 0);
    if (headers->layer < LAYER_TRANSPORT)
        CHECK(headers->transport_header_length == 0 && headers->transport_checksum == 0 &&
              headers->udp_length == 0);
    if (!headers->fragment)
        CHECK(!headers->more_fragments && headers->fragment_offset == 0 &&
              headers->fragment_length == 0);
}

/* The payload lies within the packet; of a layer that was not reached nothing is left. */
static void check_fields(const struct headers *headers, const uint8_t *bytes, uint32_t size) {
    if (headers->layer >= LAYER_NETWORK) {
        CHECK(headers->payload >= bytes);
        CHECK(headers->payload + headers->payload_captured <= bytes + size);
        check_network(headers);
        check_absent(headers);
        if (headers->layer == LAYER_TRANSPORT)
            check_transport(headers, bytes + headers->outer_length + headers->ip_header_length);
        return;
    }
    const uint8_t *byte = &headers->ip_version, *end = (const uint8_t *)&headers->link_hash;
    while (byte < end)
        CHECK_INT(*byte++, 0);
}

/* Into headers that hold another packet's; the bytes in memory of exactly their size. */
static void decode_digits(const struct row *row, struct headers *headers) {
    uint8_t *space = malloc(strlen(row->bytes) / 2 + 1);
    CHECK(space);
    uint32_t wire, size = bytes_from_digits(row->bytes, space, &wire);
    uint8_t *bytes = malloc(size + !size);
    CHECK(bytes);
    memcpy(bytes, space, size);
    memset(headers, 0xa5, sizeof *headers);
    decode_packet(
        &(struct packet){
            .data = bytes, .captured = size, .length = wire, .link_type = row->link_type},
        headers);
    check_fields(headers, bytes, size);
    free(bytes);
    free(space);
}

static void check_row(const char *table, const struct row *row) {
    struct headers headers;
    char text[TEXT_MOST];
    decode_digits(row, &headers);
    describe(text, &headers);
    reasons_met[headers.reason] = true;
    CHECK_INT(headers.answer, decode_reason_answer(headers.reason));
    if (strcmp(text, row->decoded) == 0)
        return;
    fprintf(stderr, "%s, %s: \"%s\", expected \"%s\"\n", table, row->what, text, row->decoded);
    failures++;
}

/* TCP with 40 bytes of options: the one, and the end. */
static void check_option_length(unsigned kind, unsigned length, unsigned seen) {
    char digits[TEXT_MOST] = V4_TCP TCP("f");
    struct headers headers;
    say(digits, "%02x %02x", kind, length);
    for (unsigned at = 2; at < 40; at++)
        say(digits, " %02x", at >= length ? 0 : at % 2 ? 0x89 : 0xf9);
    decode_digits(&(struct row){.link_type = RAW, .bytes = digits}, &headers);
    CHECK_INT(headers.reason, REASON_NONE);
    CHECK_INT(headers.tcp.options, seen);
    CHECK_INT(headers.tcp.sack_count, seen == TCP_OPTION_SACK ? (length - 2) / 8 : 0);
}

static void check_option_lengths(const struct option_lengths *option) {
    check_option_length(option->kind, option->least, option->seen);
    check_option_length(option->kind, option->most, option->seen);
    if (option->least > 2)
        check_option_length(option->kind, option->least - 1, TCP_OPTION_OTHER);
    if (option->most < 40)
        check_option_length(option->kind, option->most + 1, TCP_OPTION_OTHER);
}

/* Every type with a packet behind its header, which only errors quote. */
static void check_icmp_type(bool six, unsigned type) {
    static const uint8_t echoes[2][2] = {{0, 8}, {128, 129}};
    static const uint8_t errors[2][5] = {{3, 4, 5, 11, 12}, {1, 2, 3, 4, 4}};
    char digits[TEXT_MOST] = "";
    struct headers headers;
    say(digits, "%s %02x 05 0000 0007 0000 %s", six ? V6("0040", "3a") : V4("0038", "01"), type,
        six ? QUOTED_6("001c") : QUOTED);
    decode_digits(&(struct row){.link_type = RAW, .bytes = digits}, &headers);
    CHECK_INT(headers.reason, REASON_NONE);
    CHECK_INT(headers.icmp.type, type);
    CHECK_INT(headers.icmp.code, 5);
    CHECK_INT(headers.icmp.identifier, memchr(echoes[six], (int)type, 2) ? 7 : 0);
    CHECK_INT(headers.icmp.quotes, memchr(errors[six], (int)type, 5) != NULL);
}

int main(void) {
    unsigned count = 0;
    for (size_t i = 0; i < TABLES; i++)
        for (size_t row = 0; row < tables[i].count; row++, count++)
            check_row(tables[i].name, &tables[i].rows[row]);
    for (size_t i = 0; i < sizeof option_lengths / sizeof *option_lengths; i++)
        check_option_lengths(&option_lengths[i]);
    for (unsigned type = 0; type < 2 * 256; type++)
        check_icmp_type(type >= 256, type % 256);
    CHECK_INT(failures, 0);
    for (unsigned reason = 0; reason < REASON_COUNT; reason++)
        if (!reasons_met[reason])
            failures += fprintf(stderr, "no row for %s\n", decode_reason_name(reason)) > 0;
    CHECK_INT(failures, 0);
    printf("    %u packets, %u reasons\n", count, REASON_COUNT);
    return 0;
}
