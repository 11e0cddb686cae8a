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
    const char *bytes; /* those captured, in hexadecimal digits; blanks are skipped */
    int beyond;        /* the length on the wire less that captured */
    enum decode_reason reason;
    const char *decoded; /* as describe() has it */
};

/* A header of the least length; without its last byte, which was on the wire; without it on the
 * wire. */
#define LEAST_KEPT(what, link, bytes, last, ok, decoded, cut, cut_kept, absent, absent_kept)       \
    {what, link, bytes last, 0, REASON_##ok, decoded},                                             \
        {what ", cut", link, bytes, 1, REASON_##cut, cut_kept}, {                                  \
        what ", absent", link, bytes, 0, REASON_##absent, absent_kept                              \
    }

#define LEAST(what, link, bytes, last, ok, decoded, cut, absent, kept)                             \
    LEAST_KEPT(what, link, bytes, last, ok, decoded, cut, kept, absent, kept)

/* The same in an IP packet, whose header tells the length: `below` one byte less than `ip`. */
#define LEAST_IN(what, ip, below, bytes, last, ok, decoded, cut, cut_kept, absent, kept)           \
    {what, RAW, ip bytes last, 0, REASON_##ok, decoded},                                           \
        {what ", cut", RAW, ip bytes, 1, REASON_##cut, cut_kept}, {                                \
        what ", absent", RAW, below bytes, 0, REASON_##absent, kept                                \
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
#define EMPTY_AT(offset) "ipv4@" offset " 20+0 p59 payload 0/0"
#define VLANS_7_THEN     TIMES_7("vlan 5, ")
#define VLANS_8_THEN     TIMES_8("vlan 5, ")
#define GRE_OUTER(n)     "ipv4@0 20+" n " p47 payload " n "/" n
#define UDP_OUTER(port)  "ipv4@0 20+50 p17 1024>" port " t8 payload 42/42"
#define NO_OPTIONS(n)    "ipv4@0 20+" n " p6 1024>80 t" n " payload 0/0"
#define OPTIONS(n, seen) "ipv4@0 20+" n " p6 1024>80 t" n " options " seen " payload 0/0"

/* Linux cooked capture: packet type, ARPHRD, address length, address, protocol 4. */
#define COOKED_802_2 "0000 0001 0006 0200000000010000 0004 "

static const struct row link_rows[] = {
    {"unknown link type", 147, "00", 0, REASON_LINK_TYPE, "nothing"},
    {"nothing captured", ETHER, "", 60, REASON_LINK_CUT, "nothing"},
    {"nothing sent", ETHER, "", 0, REASON_LINK_SHORT, "nothing"},
    LEAST("Ethernet", ETHER, ETHER_CUT, "06", NOT_IP, "link", LINK_CUT, LINK_SHORT, "nothing"),
    {"least EtherType", ETHER, ETHERNET("0600"), 0, REASON_NOT_IP, "link"},
    {"largest 802.3 length", ETHER, ETHERNET("05ff"), 0, REASON_LINK_BAD, "link"},
    {"length claimed below bytes", ETHER, ETHERNET("0800") EMPTY, -20, REASON_NONE, EMPTY_AT("14")},
    {"802.3 length is all", ETHER, ETHERNET("0003") "424203", 0, REASON_NOT_IP, "link"},
    {"802.3 length over the frame", ETHER, ETHERNET("0004") "424203", 0, REASON_LINK_BAD, "link"},
    {"802.3 length over capture", ETHER, ETHERNET("0004") "424203", 1, REASON_NOT_IP, "link"},
    {"802.3 length before padding", ETHER, ETHERNET("0002") "424203", 0, REASON_LINK_SHORT, "link"},
    LEAST("802.2", COOKED, COOKED_802_2 "4242", "03", NOT_IP, "link", LINK_CUT, LINK_SHORT, "link"),
    LEAST("SNAP", COOKED, COOKED_802_2 "aaaa03 000000 08", "06", NOT_IP, "link", LINK_CUT,
          LINK_SHORT, "link"),
    {"SNAP in 802.3", ETHER, ETHERNET("001c") SNAP("0800") EMPTY, 0, REASON_NONE, EMPTY_AT("22")},
    {"SNAP of 802.1H", COOKED, COOKED_802_2 "aaaa03 0000f8 0800" EMPTY, 0, REASON_NONE,
     EMPTY_AT("24")},
    {"SNAP of others", COOKED, COOKED_802_2 "aaaa03 0000f9 0800" EMPTY, 0, REASON_NOT_IP, "link"},
    {"SNAP type under 0600", COOKED, COOKED_802_2 "aaaa03 000000 05ff", 0, REASON_NOT_IP, "link"},
    {"no SNAP: destination", COOKED, COOKED_802_2 "abaa03 000000 0800" EMPTY, 0, REASON_NOT_IP,
     "link"},
    {"no SNAP: source", COOKED, COOKED_802_2 "aaab03 000000 0800" EMPTY, 0, REASON_NOT_IP, "link"},
    {"no SNAP: control", COOKED, COOKED_802_2 "aaaa13 000000 0800" EMPTY, 0, REASON_NOT_IP, "link"},
    {"IP in 802.2", COOKED, COOKED_802_2 "060603" EMPTY, 0, REASON_NONE, EMPTY_AT("19")},
    {"not IP in 802.2: destination", COOKED, COOKED_802_2 "070603" EMPTY, 0, REASON_NOT_IP, "link"},
    {"not IP in 802.2: source", COOKED, COOKED_802_2 "060703" EMPTY, 0, REASON_NOT_IP, "link"},
    {"not IP in 802.2: control", COOKED, COOKED_802_2 "060613" EMPTY, 0, REASON_NOT_IP, "link"},
    /* type, ARPHRD, address length, address, protocol */
    LEAST("Linux cooked", COOKED, "0000 0001 0006 0200000000010000 08", "06", NOT_IP, "link",
          LINK_CUT, LINK_SHORT, "nothing"),
    {"cooked IP", COOKED, "0000 0001 0006 0200000000010000 0800" EMPTY, 0, REASON_NONE,
     EMPTY_AT("16")},
    {"cooked 802.2", COOKED, COOKED_802_2 "060603" EMPTY, 0, REASON_NONE, EMPTY_AT("19")},
    {"cooked below 0600", COOKED, "0000 0001 0006 0200000000010000 05ff", 0, REASON_NOT_IP, "link"},
    /* protocol, reserved, interface, ARPHRD, type, address length, address */
    LEAST("Linux cooked 2", COOKED_2, "0806 0000 00000001 0001 00 06 02000000000100", "00", NOT_IP,
          "link", LINK_CUT, LINK_SHORT, "nothing"),
    {"cooked 2 IP", COOKED_2, "0800 0000 00000001 0001 00 06 0200000000010000" EMPTY, 0,
     REASON_NONE, EMPTY_AT("20")},
    LEAST("loopback", LOOPBACK, "070000", "00", NOT_IP, "link", LINK_CUT, LINK_SHORT, "nothing"),
    {"loopback, big-endian", LOOPBACK, "00000002" EMPTY, 0, REASON_NONE, EMPTY_AT("4")},
    {"loopback of OpenBSD", 108, "00000018" EMPTY_6, 0, REASON_NONE, "ipv6@4 40+0 p59 payload 0/0"},
    {"loopback 10", LOOPBACK, "0a000000" EMPTY_6, 0, REASON_NONE, "ipv6@4 40+0 p59 payload 0/0"},
    {"loopback 23", LOOPBACK, "17000000" EMPTY_6, 0, REASON_NONE, "ipv6@4 40+0 p59 payload 0/0"},
    {"loopback 28", LOOPBACK, "1c000000" EMPTY_6, 0, REASON_NONE, "ipv6@4 40+0 p59 payload 0/0"},
    {"loopback 30", LOOPBACK, "1e000000" EMPTY_6, 0, REASON_NONE, "ipv6@4 40+0 p59 payload 0/0"},
    {"loopback 2 is IPv4", LOOPBACK, "02000000" EMPTY_6, 0, REASON_IP_VERSION, "link"},
    LEAST("Cisco HDLC", HDLC, "0f00 20", "00", NOT_IP, "link", LINK_CUT, LINK_SHORT, "nothing"),
    {"HDLC on a serial line", PPP, "0f00 0800" EMPTY, 0, REASON_NONE, EMPTY_AT("4")},
    {"HDLC broadcast", 50, "8f00 0800" EMPTY, 0, REASON_NONE, EMPTY_AT("4")},
    {"empty serial line", PPP, "", 0, REASON_LINK_SHORT, "nothing"},
    {"cut serial line", PPP, "", 1, REASON_LINK_CUT, "nothing"},
    LEAST("PPP", PPP, "c0", "21", PPP_COMPRESSED, "link", LINK_CUT, LINK_SHORT, "nothing"),
    LEAST("PPP with address", PPP, "ff03 c0", "21", PPP_COMPRESSED, "link", LINK_CUT, LINK_SHORT,
          "nothing"),
    LEAST("PPP compressed", PPP, "ff03", "21", IP_SHORT, "link", LINK_CUT, LINK_SHORT, "nothing"),
    {"PPP, one byte", PPP, "21", 0, REASON_LINK_SHORT, "nothing"},
    {"PPP, one byte captured", PPP, "21", 20, REASON_LINK_CUT, "nothing"},
    {"PPP, short protocol", PPP, "21" EMPTY, 0, REASON_NONE, EMPTY_AT("1")},
    {"PPP, IPv6", PPP, "0057" EMPTY_6, 0, REASON_NONE, "ipv6@2 40+0 p59 payload 0/0"},
    {"PPP, MPLS", PPP, "0281" MPLS EMPTY, 0, REASON_NONE, "mpls 16, " EMPTY_AT("6")},
    {"PPP, MPLS multicast", PPP, "0283" MPLS EMPTY, 0, REASON_NONE, "mpls 16, " EMPTY_AT("6")},
    {"PPP ff04", PPP, "ff04 0021" EMPTY, 0, REASON_PPP_COMPRESSED, "link"},
    {"PPP fe03", PPP, "fe03 0021" EMPTY, 0, REASON_PPP_COMPRESSED, "link"},
    {"raw IP of 12", 12, EMPTY, 0, REASON_NONE, EMPTY_AT("0")},
    {"raw IP of 14", 14, EMPTY_6, 0, REASON_NONE, "ipv6@0 40+0 p59 payload 0/0"},
    LEAST("raw IP", RAW, "", "50", IP_VERSION, "link", IP_CUT, IP_SHORT, "link"),
    {"raw IPv4", 228, EMPTY, 0, REASON_NONE, EMPTY_AT("0")},
    {"raw IPv4 that is IPv6", 228, EMPTY_6, 0, REASON_IP_VERSION, "link"},
    {"raw IPv6", 229, EMPTY_6, 0, REASON_NONE, "ipv6@0 40+0 p59 payload 0/0"},
    {"raw IPv6 that is IPv4", 229, EMPTY EMPTY, 0, REASON_IP_VERSION, "link"},
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
    LEAST("frame control", WLAN, "80", "00", WLAN_NOT_DATA, "nothing", LINK_CUT, LINK_SHORT,
          "nothing"),
    {"version 1", WLAN, WLAN_DATA("0900"), 0, REASON_LINK_BAD, "nothing"},
    {"version 2", WLAN, WLAN_DATA("0a00"), 0, REASON_LINK_BAD, "nothing"},
    {"control frame", WLAN, WLAN_DATA("d400"), 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"extension frame", WLAN, WLAN_DATA("0c00"), 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"null data", WLAN, WLAN_DATA("4800"), 0, REASON_WLAN_NO_DATA, "nothing"},
    {"protected null data", WLAN, WLAN_DATA("4840"), 0, REASON_WLAN_NO_DATA, "nothing"},
    {"protected", WLAN, WLAN_DATA("0840") SNAP("0800") EMPTY, 0, REASON_WLAN_PROTECTED, "nothing"},
    LEAST("data", WLAN, WLAN_SHORT("0800"), "00", WLAN_NO_DATA, "link", LINK_CUT, LINK_SHORT,
          "nothing"),
    LEAST("to the network", WLAN, WLAN_SHORT("0801"), "00", WLAN_NO_DATA, "link", LINK_CUT,
          LINK_SHORT, "nothing"),
    LEAST("from the network", WLAN, WLAN_SHORT("0802"), "00", WLAN_NO_DATA, "link", LINK_CUT,
          LINK_SHORT, "nothing"),
    LEAST("four addresses", WLAN, WLAN_DATA("0803") "0200000000", "04", WLAN_NO_DATA, "link",
          LINK_CUT, LINK_SHORT, "nothing"),
    LEAST("order, no QoS", WLAN, WLAN_SHORT("0880"), "00", WLAN_NO_DATA, "link", LINK_CUT,
          LINK_SHORT, "nothing"),
    LEAST("QoS", WLAN, WLAN_DATA("8800") "7f", "00", WLAN_NO_DATA, "link", LINK_CUT, LINK_SHORT,
          "nothing"),
    LEAST("QoS with HT control", WLAN, WLAN_DATA("8880") "0000 000000", "00", WLAN_NO_DATA, "link",
          LINK_CUT, LINK_SHORT, "nothing"),
    LEAST("four addresses, QoS", WLAN, WLAN_DATA("8803") "8000 00000004 00", "00", WLAN_NO_DATA,
          "link", LINK_CUT, LINK_SHORT, "nothing"),
    LEAST("four addresses, QoS, HT", WLAN, WLAN_DATA("8883") "020000000004 0000 000000", "00",
          WLAN_NO_DATA, "link", LINK_CUT, LINK_SHORT, "nothing"),
    LEAST("802.2 in data", WLAN, WLAN_DATA("0800") "4242", "03", NOT_IP, "link", LINK_CUT,
          LINK_SHORT, "link"),
    {"IP in data", WLAN, WLAN_DATA("0800") SNAP("0800") EMPTY, 0, REASON_NONE, EMPTY_AT("32")},
    LEAST("aggregate", WLAN, WLAN_DATA("8800") "8000 020000000001 020000000002 00", "03", LINK_BAD,
          "link", LINK_CUT, LINK_SHORT, "link"),
    {"aggregate's only part", WLAN, AGGREGATE("0003"), 0, REASON_NOT_IP, "link"},
    {"part over the frame", WLAN, AGGREGATE("0004"), 0, REASON_LINK_BAD, "link"},
    {"part over capture", WLAN, AGGREGATE("0004"), 1, REASON_NOT_IP, "link"},
    {"first of two parts", WLAN, AGGREGATE("0002"), 0, REASON_LINK_SHORT, "link"},
    {"aggregate of four addresses", WLAN,
     WLAN_DATA("8803") "020000000004 8000" ETHERNET("0004") "424203", 0, REASON_LINK_BAD, "link"},
    /* version, padding, length, presence, fields; the frames are beacons where nothing is dropped
     * of the 4 bytes that they are */
    LEAST("radiotap, version 1", RADIOTAP, "01 00 0800 000000", "00", LINK_BAD, "nothing", LINK_CUT,
          LINK_SHORT, "nothing"),
    {"radiotap", RADIOTAP, "00 00 0800 00000000 8000", 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"radiotap under 8", RADIOTAP, "00 00 0700 00000000 8000", 0, REASON_LINK_BAD, "nothing"},
    {"radiotap over the frame", RADIOTAP, "00 00 0900 02000000", 0, REASON_LINK_SHORT, "nothing"},
    {"radiotap over capture", RADIOTAP, "00 00 0900 02000000", 1, REASON_LINK_CUT, "nothing"},
    {"radiotap, checksum", RADIOTAP, "00 00 0900 02000000 10" WLAN_DATA("0800") ZERO_4, 0,
     REASON_WLAN_NO_DATA, "link"},
    {"radiotap, checksum cut", RADIOTAP, "00 00 0900 02000000 10" WLAN_DATA("0800"), 4,
     REASON_WLAN_NO_DATA, "link"},
    {"radiotap, cut before checksum", RADIOTAP, "00 00 0900 02000000 10" WLAN_SHORT("0800"), 5,
     REASON_LINK_CUT, "nothing"},
    {"radiotap, short before checksum", RADIOTAP,
     "00 00 0900 02000000 10" WLAN_SHORT("0800") ZERO_4, 0, REASON_LINK_SHORT, "nothing"},
    {"radiotap, checksum only", RADIOTAP, "00 00 0900 02000000 10 80000000", 0, REASON_LINK_SHORT,
     "nothing"},
    {"radiotap, under a checksum", RADIOTAP, "00 00 0900 02000000 10 800000", 0,
     REASON_WLAN_NOT_DATA, "nothing"},
    LEAST("radiotap, padded", RADIOTAP, "00 00 0900 02000000 20" WLAN_DATA("8800") "0000 00", "00",
          WLAN_NO_DATA, "link", LINK_CUT, LINK_SHORT, "nothing"),
    LEAST("radiotap, nothing to pad", RADIOTAP, "00 00 0900 02000000 20" WLAN_SHORT("0800"), "00",
          WLAN_NO_DATA, "link", LINK_CUT, LINK_SHORT, "nothing"),
    {"radiotap, time", RADIOTAP, "00 00 1100 03000000" ZERO_8 "10 80000000", 0, REASON_LINK_SHORT,
     "nothing"},
    {"radiotap, only time", RADIOTAP, "00 00 1100 01000000" ZERO_8 "10 80000000", 0,
     REASON_WLAN_NOT_DATA, "nothing"},
    {"radiotap, two words", RADIOTAP, "00 00 0d00 02000080 00000000 10 80000000", 0,
     REASON_LINK_SHORT, "nothing"},
    {"radiotap, three words", RADIOTAP, "00 00 1100 02000080 00000080 00000000 10 80000000", 0,
     REASON_LINK_SHORT, "nothing"},
    {"radiotap, two words, time", RADIOTAP,
     "00 00 1900 03000080 00000000 00000000" ZERO_8 "10 80000000", 0, REASON_LINK_SHORT, "nothing"},
    {"radiotap ends in words", RADIOTAP, "00 00 0b00 02000080 000000 80001000", 0,
     REASON_WLAN_NOT_DATA, "nothing"},
    {"radiotap ends in words, no frame", RADIOTAP, "00 00 0b00 02000080 000000", 0,
     REASON_LINK_SHORT, "nothing"},
    {"radiotap, other flags", RADIOTAP, "00 00 0900 02000000 cf" WLAN_DATA("8800") "0000", 0,
     REASON_WLAN_NO_DATA, "link"},
    {"radiotap ends before words", RADIOTAP, "00 00 0800 02000080" WLAN_DATA("1800"), 0,
     REASON_WLAN_NO_DATA, "link"},
    {"radiotap ends before flags", RADIOTAP, "00 00 0800 02000000" WLAN_DATA("1800"), 0,
     REASON_WLAN_NO_DATA, "link"},
    /* version, flags, length, link type; fields of type and size */
    LEAST("PPI, version 1", PPI, "01 00 0800 690000", "00", LINK_BAD, "nothing", LINK_CUT,
          LINK_SHORT, "nothing"),
    {"PPI", PPI, "00 00 0800 69000000 8000", 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"PPI under 8", PPI, "00 00 0700 69000000 8000", 0, REASON_LINK_BAD, "nothing"},
    {"PPI over the frame", PPI, "00 00 0900 69000000", 0, REASON_LINK_SHORT, "nothing"},
    {"PPI over capture", PPI, "00 00 0900 69000000", 1, REASON_LINK_CUT, "nothing"},
    {"PPI of Ethernet", PPI, "00 00 0800 01000000" INNER, 0, REASON_LINK_TYPE, "nothing"},
    {"PPI, checksum", PPI, PPI_CHECKSUM("80000000"), 0, REASON_LINK_SHORT, "nothing"},
    {"PPI, no checksum", PPI, "00 00 1600 69000000 0200 0a00" ZERO_8 "fe00 80000000", 0,
     REASON_WLAN_NOT_DATA, "nothing"},
    {"PPI, field under 10", PPI, "00 00 1600 69000000 0200 0900" ZERO_8 "0100 80000000", 0,
     REASON_WLAN_NOT_DATA, "nothing"},
    {"PPI, field over the header", PPI, "00 00 1500 69000000 0200 0a00" ZERO_8 "01 80000000", 0,
     REASON_WLAN_NOT_DATA, "nothing"},
    {"PPI, under a checksum", PPI, PPI_CHECKSUM("8000 00"), 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"PPI ends in a field", PPI, "00 00 0b00 69000000 0200 0a", 0, REASON_LINK_SHORT, "nothing"},
    {"PPI, second field", PPI, PPI_SECOND("00", "1d", "0300 ffffff"), 0, REASON_LINK_SHORT,
     "nothing"},
    {"PPI, aligned after 1", PPI, PPI_SECOND("01", "1e", "0100 ffffffff"), 0, REASON_LINK_SHORT,
     "nothing"},
    {"PPI, aligned after 2", PPI, PPI_SECOND("01", "1e", "0200 ffffffff"), 0, REASON_LINK_SHORT,
     "nothing"},
    {"PPI, aligned after 3", PPI, PPI_SECOND("01", "1e", "0300 ffffffff"), 0, REASON_LINK_SHORT,
     "nothing"},
    {"PPI, aligned after 4", PPI, PPI_SECOND("01", "1e", "0400 ffffffff"), 0, REASON_LINK_SHORT,
     "nothing"},
    {"PPI, QoS", PPI, "00 00 0800 69000000" WLAN_DATA("8800") "0000", 0, REASON_WLAN_NO_DATA,
     "link"},
    /* message code, length; AVS: version, length */
    LEAST("Prism under 8", PRISM, "44000000 070000", "00", LINK_BAD, "nothing", LINK_CUT,
          LINK_SHORT, "nothing"),
    {"Prism", PRISM, "44000000 08000000 8000", 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"Prism, QoS", PRISM, "44000000 08000000" WLAN_DATA("8800") "0000", 0, REASON_WLAN_NO_DATA,
     "link"},
    {"Prism over the frame", PRISM, "44000000 09000000", 0, REASON_LINK_SHORT, "nothing"},
    {"Prism over capture", PRISM, "44000000 09000000", 1, REASON_LINK_CUT, "nothing"},
    {"Prism of 4 GiB", PRISM, "44000000 ffffffff 8000", 0, REASON_LINK_SHORT, "nothing"},
    {"AVS", 163, "80211001 00000008 8000", 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"AVS as Prism", PRISM, "80211002 00000008 8000", 0, REASON_WLAN_NOT_DATA, "nothing"},
    {"AVS under 8", 163, "80211001 00000007 8000", 0, REASON_LINK_BAD, "nothing"},
    {"not AVS", 163, "80212001 00000008 8000", 0, REASON_LINK_SHORT, "nothing"},
};

#define PSEUDO_WIRE ETHERNET("8847") MPLS

/* Encapsulations below IP. */
static const struct row encapsulation_rows[] = {
    LEAST("VLAN", ETHER, ETHERNET("8100") "0005 08", "06", NOT_IP, "vlan 5, link", TUNNEL_CUT,
          TUNNEL_SHORT, "link"),
    {"VLAN id", ETHER, ETHERNET("8100") VLAN("ffff", "0800") EMPTY, 0, REASON_NONE,
     "vlan 4095, " EMPTY_AT("18")},
    {"QinQ", ETHER, ETHERNET("88a8") VLAN("0001", "8100") VLAN("0002", "86dd") EMPTY_6, 0,
     REASON_NONE, "vlan 1, vlan 2, ipv6@22 40+0 p59 payload 0/0"},
    {"QinQ, older types", ETHER, ETHERNET("9100") VLAN("0001", "9200") VLAN("0002", "0800") EMPTY,
     0, REASON_NONE, "vlan 1, vlan 2, " EMPTY_AT("22")},
    {"length in VLAN", ETHER, ETHERNET("8100") VLAN("0005", "0001"), 0, REASON_LINK_BAD,
     "vlan 5, link"},
    {"8 VLANs", ETHER, VLANS_8("0806"), 0, REASON_NOT_IP, VLANS_8_THEN "link"},
    {"9 VLANs", ETHER, VLANS_8("8100") VLAN("0005", "0806"), 0, REASON_DEPTH, VLANS_8_THEN "link"},
    LEAST("MPLS", ETHER, ETHERNET("8847") "000101", "ff", TUNNEL_SHORT, "mpls 16, link", TUNNEL_CUT,
          TUNNEL_SHORT, "link"),
    LEAST("second label", ETHER, ETHERNET("8848") "000100ff 000201", "ff", TUNNEL_SHORT,
          "mpls 16, mpls 32, link", TUNNEL_CUT, TUNNEL_SHORT, "mpls 16, link"),
    LEAST("MPLS payload", ETHER, PSEUDO_WIRE, "50", NOT_IP, "mpls 16, link", TUNNEL_CUT,
          TUNNEL_SHORT, "mpls 16, link"),
    {"IPv4 in MPLS", ETHER, PSEUDO_WIRE EMPTY, 0, REASON_NONE, "mpls 16, " EMPTY_AT("18")},
    {"IPv6 in MPLS", ETHER, PSEUDO_WIRE EMPTY_6, 0, REASON_NONE,
     "mpls 16, ipv6@18 40+0 p59 payload 0/0"},
    {"control word", ETHER, PSEUDO_WIRE "00000000" INNER, 0, REASON_NONE,
     "mpls 16, " EMPTY_AT("36")},
    {"no control word", ETHER, PSEUDO_WIRE INNER, 0, REASON_NONE, "mpls 16, " EMPTY_AT("32")},
    {"no control word, group address", ETHER, PSEUDO_WIRE "330000000001 020000000002 0800" EMPTY, 0,
     REASON_NONE, "mpls 16, " EMPTY_AT("32")},
    {"no control word, only Ethernet", ETHER, PSEUDO_WIRE ETHERNET("86dd"), 0, REASON_IP_SHORT,
     "mpls 16, link"},
    {"no control word, cut type", ETHER, PSEUDO_WIRE ETHER_CUT, 60, REASON_LINK_CUT,
     "mpls 16, link"},
    {"neither IP nor Ethernet", ETHER, PSEUDO_WIRE "100000000001 020000000002 0806" EMPTY, 0,
     REASON_NOT_IP, "mpls 16, link"},
    {"8th label", ETHER, VLANS_7("8847") MPLS EMPTY, 0, REASON_NONE,
     VLANS_7_THEN "mpls 16, " EMPTY_AT("46")},
    {"9th label", ETHER, VLANS_7("8847") "000100ff 000201ff" EMPTY, 0, REASON_DEPTH,
     VLANS_7_THEN "mpls 16, link"},
    LEAST("PPPoE", ETHER, ETHERNET("8864") "1100 0001 00", "01", TUNNEL_BAD, "link", TUNNEL_CUT,
          TUNNEL_SHORT, "link"),
    {"PPPoE version", ETHER, ETHERNET("8864") "2100 0001 0002 c021", 0, REASON_TUNNEL_BAD, "link"},
    {"PPPoE type", ETHER, ETHERNET("8864") "1200 0001 0002 c021", 0, REASON_TUNNEL_BAD, "link"},
    {"PPPoE code", ETHER, ETHERNET("8864") "1101 0001 0002 c021", 0, REASON_TUNNEL_BAD, "link"},
    {"PPPoE length is all", ETHER, ETHERNET("8864") "1100 0001 0002 c021", 0, REASON_PPP_COMPRESSED,
     "pppoe 1, link"},
    {"PPPoE length over the frame", ETHER, ETHERNET("8864") "1100 0001 0003 c021", 0,
     REASON_TUNNEL_BAD, "link"},
    {"PPPoE length over capture", ETHER, ETHERNET("8864") "1100 0001 0003 c021", 1,
     REASON_PPP_COMPRESSED, "pppoe 1, link"},
    {"PPPoE length before padding", ETHER, ETHERNET("8864") "1100 0001 0001 c021", 0,
     REASON_LINK_SHORT, "pppoe 1, link"},
    {"PPPoE, 8th", ETHER, VLANS_7("8864") "1100 0001 0016 0021" EMPTY, 0, REASON_NONE,
     VLANS_7_THEN "pppoe 1, " EMPTY_AT("50")},
    {"PPPoE, 9th", ETHER, VLANS_8("8864") "1100 0001 0016 0021" EMPTY, 0, REASON_DEPTH,
     VLANS_8_THEN "link"},
};

#define IN_IP(len) V4(len, "04")
#define IN_IP_8    IN_IP("00b4") IN_IP("00a0") IN_IP("008c") IN_IP("0078") IN_IP_4
#define IN_IP_4    IN_IP("0064") IN_IP("0050") IN_IP("003c") IN_IP("0028")
#define GRE(len)   V4(len, "2f")
#define PPTP(len)  "3001 880b " len " 0009 00000000 " /* payload length, call */
#define VXLAN_7    "08000000 00000700"
#define GENEVE_7   "0000 6558 00000700"

/* Tunnels over IP: what of them is IP again counts, else the outer packet does. */
static const struct row tunnel_rows[] = {
    {"8 times IP in IP", RAW, IN_IP_8 EMPTY, 0, REASON_NONE, TIMES_8("ipip 0, ") EMPTY_AT("160")},
    {"9 times IP in IP", RAW, IN_IP("00c8") IN_IP_8 EMPTY, 0, REASON_DEPTH,
     TIMES_8("ipip 0, ") "ipv4@160 20+20 p4 payload 20/20"},
    {"IPv6 in IP", RAW, V4("003c", "29") EMPTY_6, 0, REASON_NONE,
     "ipip 0, ipv6@20 40+0 p59 payload 0/0"},
    {"IP in IPv6", RAW, V6("0014", "04") EMPTY, 0, REASON_NONE, "ipip 0, " EMPTY_AT("40")},
    {"bad IP in IP", RAW, IN_IP("0028") V4("0015", "3b"), 0, REASON_IP_LENGTH,
     "ipv4@0 20+20 p4 payload 20/20"},
    {"IP in IP, cut", RAW, IN_IP("0028") "45", 19, REASON_IP_CUT, "ipv4@0 20+20 p4 payload 1/20"},
    {"fragment of IP in IP", RAW, V4_FRAGMENT("0034", "2000", "04") V4("0020", "3b") ZERO_8 ZERO_4,
     0, REASON_NONE, "ipv4@0 20+32 p4 fragment 0+32 more payload 32/32"},
    LEAST_IN("GRE", GRE("0018"), GRE("0017"), "0000 08", "06", NONE, GRE_OUTER("4"), TUNNEL_CUT,
             "ipv4@0 20+4 p47 payload 3/4", TUNNEL_SHORT, GRE_OUTER("3")),
    LEAST_IN("GRE checksum", GRE("001c"), GRE("001b"), "8000 0806 000000", "00", NONE,
             GRE_OUTER("8"), TUNNEL_CUT, "ipv4@0 20+8 p47 payload 7/8", TUNNEL_SHORT,
             GRE_OUTER("7")),
    LEAST_IN("GRE key", GRE("001c"), GRE("001b"), "2000 0806 000000", "00", NONE, GRE_OUTER("8"),
             TUNNEL_CUT, "ipv4@0 20+8 p47 payload 7/8", TUNNEL_SHORT, GRE_OUTER("7")),
    LEAST_IN("GRE sequence", GRE("001c"), GRE("001b"), "1000 0806 000000", "00", NONE,
             GRE_OUTER("8"), TUNNEL_CUT, "ipv4@0 20+8 p47 payload 7/8", TUNNEL_SHORT,
             GRE_OUTER("7")),
    LEAST_IN("GRE with all", GRE("0024"), GRE("0023"), "b000 0806" ZERO_8 "000000", "00", NONE,
             GRE_OUTER("16"), TUNNEL_CUT, "ipv4@0 20+16 p47 payload 15/16", TUNNEL_SHORT,
             GRE_OUTER("15")),
    {"GRE plain", RAW, GRE("002c") "0000 0800" EMPTY, 0, REASON_NONE, "gre 0, " EMPTY_AT("24")},
    {"GRE key after checksum", RAW, GRE("0034") "a000 0800 11111111 00000007" EMPTY, 0, REASON_NONE,
     "gre 7, " EMPTY_AT("32")},
    {"GRE key before sequence", RAW, GRE("0034") "3000 0800 00000007 22222222" EMPTY, 0,
     REASON_NONE, "gre 7, " EMPTY_AT("32")},
    {"GRE routing", RAW, GRE("002c") "4000 0800" EMPTY, 0, REASON_NONE, GRE_OUTER("24")},
    {"GRE version 2", RAW, GRE("002c") "0002 0800" EMPTY, 0, REASON_NONE, GRE_OUTER("24")},
    {"GRE version 4", RAW, GRE("002c") "0004 0800" EMPTY, 0, REASON_NONE, GRE_OUTER("24")},
    {"GRE, 8th", ETHER, VLANS_7("0800") GRE("002c") "0000 0800" EMPTY, 0, REASON_NONE,
     VLANS_7_THEN "gre 0, " EMPTY_AT("66")},
    {"GRE, 9th", ETHER, VLANS_8("0800") GRE("002c") "0000 0800" EMPTY, 0, REASON_DEPTH,
     VLANS_8_THEN "ipv4@46 20+24 p47 payload 24/24"},
    LEAST_IN("PPTP", GRE("0020"), GRE("001f"), "3001 880b 0001 0009 000000", "00", TUNNEL_BAD,
             GRE_OUTER("12"), TUNNEL_CUT, "ipv4@0 20+12 p47 payload 11/12", TUNNEL_SHORT,
             GRE_OUTER("11")),
    LEAST_IN("PPTP acknowledgment", GRE("0024"), GRE("0023"), "3081 880b 0001 0009" ZERO_7, "00",
             TUNNEL_BAD, GRE_OUTER("16"), TUNNEL_CUT, "ipv4@0 20+16 p47 payload 15/16",
             TUNNEL_SHORT, GRE_OUTER("15")),
    {"PPTP length is all", RAW, GRE("0022") PPTP("0002") "c021", 0, REASON_NONE, GRE_OUTER("14")},
    {"PPTP length over the packet", RAW, GRE("0022") PPTP("0003") "c021", 0, REASON_TUNNEL_BAD,
     GRE_OUTER("14")},
    {"PPTP length within", RAW, GRE("0022") PPTP("0001") "c021", 0, REASON_LINK_SHORT,
     GRE_OUTER("14")},
    {"PPTP of another protocol", RAW, GRE("0022") "3001 0800 0003 0009 00000000 c021", 0,
     REASON_NONE, GRE_OUTER("14")},
    {"PPTP without key", RAW, GRE("0022") "1001 880b 0003 0009 00000000 c021", 0, REASON_NONE,
     GRE_OUTER("14")},
    {"PPTP without sequence", RAW, GRE("0022") "2001 880b 0003 0009 00000000 c021", 0, REASON_NONE,
     GRE_OUTER("14")},
    {"PPTP, 8th", ETHER, VLANS_7("0800") GRE("0036") PPTP("0016") "0021" EMPTY, 0, REASON_NONE,
     VLANS_7_THEN "gre 9, " EMPTY_AT("76")},
    {"PPTP, 9th", ETHER, VLANS_8("0800") GRE("0036") PPTP("0016") "0021" EMPTY, 0, REASON_DEPTH,
     VLANS_8_THEN "ipv4@46 20+34 p47 payload 34/34"},
    LEAST_IN("Ethernet in GRE", GRE("0026"), GRE("0025"), "0000 6558" ETHER_CUT, "06", NONE,
             GRE_OUTER("18"), LINK_CUT, "ipv4@0 20+18 p47 payload 17/18", LINK_SHORT,
             GRE_OUTER("17")),
    {"ERSPAN I", RAW, GRE("003a") "0000 88be" INNER, 0, REASON_NONE, "gre 0, " EMPTY_AT("38")},
    LEAST_IN("ERSPAN II", GRE("0024"), GRE("0023"), "1000 88be 00000000" ZERO_7, "00", LINK_SHORT,
             GRE_OUTER("16"), TUNNEL_CUT, "ipv4@0 20+16 p47 payload 15/16", TUNNEL_SHORT,
             GRE_OUTER("15")),
    {"ERSPAN II", RAW, GRE("0046") "1000 88be 00000000" ZERO_8 INNER, 0, REASON_NONE,
     "gre 0, " EMPTY_AT("50")},
    LEAST_IN("ERSPAN III", GRE("0028"), GRE("0027"), "1000 22eb 00000000" ZERO_8 "000000", "00",
             LINK_SHORT, GRE_OUTER("20"), TUNNEL_CUT, "ipv4@0 20+20 p47 payload 19/20",
             TUNNEL_SHORT, GRE_OUTER("19")),
    {"ERSPAN III", RAW, GRE("004a") "1000 22eb 00000000" ZERO_8 "00008000" INNER, 0, REASON_NONE,
     "gre 0, " EMPTY_AT("54")},
    {"ERSPAN III, frame type 1", RAW, GRE("004a") "1000 22eb 00000000" ZERO_8 "00000400" INNER, 0,
     REASON_NONE, GRE_OUTER("54")},
    {"ERSPAN III, frame type 16", RAW, GRE("004a") "1000 22eb 00000000" ZERO_8 "00004000" INNER, 0,
     REASON_NONE, GRE_OUTER("54")},
    LEAST_IN("ERSPAN III with more", GRE("0030"), GRE("002f"),
             "1000 22eb 00000000" ZERO_8 "00000001" ZERO_7, "00", LINK_SHORT, GRE_OUTER("28"),
             TUNNEL_CUT, "ipv4@0 20+28 p47 payload 27/28", TUNNEL_SHORT, GRE_OUTER("27")),
    {"ERSPAN III with more", RAW, GRE("0052") "1000 22eb 00000000" ZERO_8 "00000001" ZERO_8 INNER,
     0, REASON_NONE, "gre 0, " EMPTY_AT("62")},
    {"MPLS in IP, 8th", ETHER, VLANS_7("0800") V4("002c", "89") MPLS EMPTY, 0, REASON_NONE,
     VLANS_7_THEN "mpls 16, " EMPTY_AT("66")},
    {"MPLS in IP, 9th", ETHER, VLANS_8("0800") V4("002c", "89") MPLS EMPTY, 0, REASON_DEPTH,
     VLANS_8_THEN "ipv4@46 20+24 p137 payload 24/24"},
    {"VXLAN", RAW, VXLAN("12b5", VXLAN_7), 0, REASON_NONE, "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN on Linux's port", RAW, VXLAN("2118", VXLAN_7), 0, REASON_NONE,
     "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN policy", RAW, VXLAN("12b5", "88480001 00000700"), 0, REASON_NONE,
     "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN generic", RAW, VXLAN("12b5", "0c000003 00000700"), 0, REASON_NONE,
     "vxlan 7, " EMPTY_AT("50")},
    {"VXLAN on no port of its", RAW, VXLAN("12b6", VXLAN_7), 0, REASON_NONE, UDP_OUTER("4790")},
    {"VXLAN without flags", RAW, VXLAN("12b5", "00000000 00000700"), 0, REASON_NONE,
     UDP_OUTER("4789")},
    {"VXLAN policy, reserved", RAW, VXLAN("12b5", "88800001 00000700"), 0, REASON_NONE,
     UDP_OUTER("4789")},
    {"VXLAN generic, IPv4", RAW, VXLAN("12b5", "0c000001 00000700"), 0, REASON_NONE,
     UDP_OUTER("4789")},
    {"VXLAN, reserved", RAW, VXLAN("12b5", "08000000 00000701"), 0, REASON_NONE, UDP_OUTER("4789")},
    {"VXLAN absent", RAW, V4("0023", "11") UDP("12b5", "000f") "08000000 000007", 0, REASON_NONE,
     "ipv4@0 20+15 p17 1024>4789 t8 payload 7/7"},
    {"VXLAN with bad IP", RAW,
     V4("0046", "11") UDP("12b5", "0032") VXLAN_7 ETHERNET("0800") V4("0015", "3b"), 0, REASON_NONE,
     UDP_OUTER("4789")},
    {"VXLAN in a fragment", RAW,
     V4_FRAGMENT("004c", "2000", "11") UDP("12b5", "0100") VXLAN_7 INNER "000000000000", 0,
     REASON_NONE, "ipv4@0 20+56 p17 1024>4789 t8 fragment 0+56 more payload 48/48"},
    {"VXLAN, 8th", ETHER, VLANS_7("0800") VXLAN("12b5", VXLAN_7), 0, REASON_NONE,
     VLANS_7_THEN "vxlan 7, " EMPTY_AT("92")},
    {"VXLAN, 9th", ETHER, VLANS_8("0800") VXLAN("12b5", VXLAN_7), 0, REASON_DEPTH,
     VLANS_8_THEN "ipv4@46 20+50 p17 1024>4789 t8 payload 42/42"},
    {"Geneve", RAW, VXLAN("17c1", GENEVE_7), 0, REASON_NONE, "geneve 7, " EMPTY_AT("50")},
    {"Geneve absent", RAW, V4("0023", "11") UDP("17c1", "000f") "0000 6558 000007", 0, REASON_NONE,
     "ipv4@0 20+15 p17 1024>6081 t8 payload 7/7"},
    {"Geneve version", RAW, VXLAN("17c1", "4000 6558 00000700"), 0, REASON_NONE, UDP_OUTER("6081")},
    {"Geneve, reserved", RAW, VXLAN("17c1", "0000 6558 00000701"), 0, REASON_NONE,
     UDP_OUTER("6081")},
    {"Geneve of ARP", RAW, VXLAN("17c1", "0000 0806 00000700"), 0, REASON_NONE, UDP_OUTER("6081")},
    {"Geneve of IP", RAW, V4("0038", "11") UDP("17c1", "0024") "0000 0800 00000700" EMPTY, 0,
     REASON_NONE, "geneve 7, " EMPTY_AT("36")},
    {"Geneve option", RAW, V4("004a", "11") UDP("17c1", "0036") "0100 6558 00000700" ZERO_4 INNER,
     0, REASON_NONE, "geneve 7, " EMPTY_AT("54")},
    {"Geneve, most options", RAW,
     V4("0142", "11") UDP("17c1", "012e") "3f00 6558 00000700" TIMES_8(TIMES_7(ZERO_4))
         TIMES_7(ZERO_4) INNER,
     0, REASON_NONE, "geneve 7, " EMPTY_AT("302")},
    {"Geneve options absent", RAW, V4("0027", "11") UDP("17c1", "0013") "0100 6558 00000700 000000",
     0, REASON_NONE, "ipv4@0 20+19 p17 1024>6081 t8 payload 11/11"},
    {"Geneve, 8th", ETHER, VLANS_7("0800") VXLAN("17c1", GENEVE_7), 0, REASON_NONE,
     VLANS_7_THEN "geneve 7, " EMPTY_AT("92")},
    {"Geneve, 9th", ETHER, VLANS_8("0800") VXLAN("17c1", GENEVE_7), 0, REASON_DEPTH,
     VLANS_8_THEN "ipv4@46 20+50 p17 1024>6081 t8 payload 42/42"},
};

static const struct row ipv4_rows[] = {
    LEAST("IPv4", ETHER, ETHERNET("0800") V4_START("45", "0014") "0000 40 3b 0000 0a000001 0a0000",
          "02", NONE, EMPTY_AT("14"), IP_CUT, IP_SHORT, "link"),
    {"IPv6 as IPv4", ETHER, ETHERNET("0800") EMPTY_6, 0, REASON_IP_VERSION, "link"},
    {"version 5", RAW, V4_IHL("55", "0014"), 0, REASON_IP_VERSION, "link"},
    {"header length 0", RAW, V4_IHL("40", "0014"), 0, REASON_IP_HEADER_LENGTH, "link"},
    {"header length 4", RAW, V4_IHL("44", "0014"), 0, REASON_IP_HEADER_LENGTH, "link"},
    {"header length 6", RAW, V4_IHL("46", "0018") ZERO_4, 0, REASON_NONE,
     "ipv4@0 24+0 p59 payload 0/0"},
    {"header length 6, cut", RAW, V4_IHL("46", "0018") "000000", 1, REASON_IP_CUT,
     "ipv4@0 24+0 p59 payload 0/0"},
    {"header length over the frame", RAW, V4_IHL("46", "0018") "000000", 0, REASON_IP_HEADER_LENGTH,
     "link"},
    {"length over the frame, later", ETHER, ETHERNET("0800") V4("0015", "3b"), 0, REASON_IP_LENGTH,
     "link"},
    {"length 0, later", ETHER, ETHERNET("0800") V4_TCP TCP("5"), 0, REASON_NONE,
     "ipv4@14 20+20 p6 1024>80 t20 payload 0/0"},
    {"header length 15", RAW, V4_IHL("4f", "003c") TIMES_4(ZERO_8) ZERO_8, 0, REASON_NONE,
     "ipv4@0 60+0 p59 payload 0/0"},
    {"length under header", RAW, V4("0013", "3b"), 0, REASON_IP_LENGTH, "link"},
    {"length under options", RAW, V4_IHL("46", "0017") ZERO_4, 0, REASON_IP_LENGTH, "link"},
    {"length over the frame", RAW, V4("0015", "3b"), 0, REASON_IP_LENGTH, "link"},
    {"length over capture", RAW, V4("0015", "3b"), 1, REASON_NONE, "ipv4@0 20+1 p59 payload 0/1"},
    {"length before padding", RAW, EMPTY "000000", 0, REASON_NONE, EMPTY_AT("0")},
    {"length 0 of TCP", RAW, V4_TCP TCP("5"), 0, REASON_NONE, NO_OPTIONS("20")},
    {"length 0 of UDP", RAW, V4("0000", "11") UDP("0050", "0008"), 0, REASON_NONE,
     "ipv4@0 20+8 p17 1024>80 t8 payload 0/0"},
    {"length 0 of ICMP", RAW, V4("0000", "01") ZERO_8, 0, REASON_IP_LENGTH, "link"},
    {"fragment of 8", RAW, V4_FRAGMENT("001c", "2001", "3b") ZERO_8, 0, REASON_NONE,
     "ipv4@0 20+8 p59 fragment 8+8 more payload 8/8"},
    {"fragment of 7", RAW, V4_FRAGMENT("001b", "2001", "3b") ZERO_7, 0, REASON_IP_FRAGMENT,
     "ipv4@0 20+7 p59 fragment 8+7 more payload 7/7"},
    {"fragment of 12", RAW, V4_FRAGMENT("0020", "2001", "3b") ZERO_8 ZERO_4, 0, REASON_IP_FRAGMENT,
     "ipv4@0 20+12 p59 fragment 8+12 more payload 12/12"},
    {"last fragment of 7", RAW, V4_FRAGMENT("001b", "0001", "06") ZERO_7, 0, REASON_NONE,
     "ipv4@0 20+7 p6 fragment 8+7 payload 7/7"},
    {"don't fragment", RAW, V4_FRAGMENT("0014", "c000", "3b"), 0, REASON_NONE,
     "ipv4@0 20+0 p59 payload 0/0"},
    {"fragment up to 65,535", RAW, V4_FRAGMENT("0017", "1ffd", "3b") "000000", 0, REASON_NONE,
     "ipv4@0 20+3 p59 fragment 65512+3 payload 3/3"},
    {"fragment past 65,535", RAW, V4_FRAGMENT("0018", "1ffd", "3b") ZERO_4, 0, REASON_IP_FRAGMENT,
     "ipv4@0 20+4 p59 fragment 65512+4 payload 4/4"},
    /* next header, length in words less 2, reserved, index, sequence, check value */
    LEAST_IN("authentication header", V4("0020", "33"), V4("001f", "33"), "3b01 0000" ZERO_7, "00",
             NONE, "ipv4@0 32+0 p59 payload 0/0", IP_CUT, "ipv4@0 20+12 p51 payload 11/12",
             IP_EXTENSION, "ipv4@0 20+11 p51 payload 11/11"),
    LEAST_IN("its first 8 bytes", V4("001c", "33"), V4("001b", "33"), "3b00 0000 000000", "00",
             NONE, "ipv4@0 28+0 p59 payload 0/0", IP_CUT, "ipv4@0 20+8 p51 payload 7/8",
             IP_EXTENSION, "ipv4@0 20+7 p51 payload 7/7"),
    {"later fragment of it", RAW, V4_FRAGMENT("001c", "0001", "33") "3bff 0000 00000000", 0,
     REASON_NONE, "ipv4@0 20+8 p51 fragment 8+8 payload 8/8"},
};

/* An extension header of 16 bytes whose length is as given. */
#define EXTENSION(what, next, p, length)                                                           \
    LEAST_IN(what, V6("0010", next), V6("000f", next), "3b" length " 0000" ZERO_4 ZERO_7, "00",    \
             NONE, "ipv6@0 56+0 p59 payload 0/0", IP_CUT, "ipv6@0 40+16 " p " payload 15/16",      \
             IP_EXTENSION, "ipv6@0 40+15 " p " payload 15/15")
#define JUMBO(options) RAW, V6("0000", "00") "3b00 " options

static const struct row ipv6_rows[] = {
    LEAST("IPv6", ETHER,
          ETHERNET("86dd") "6b800000 0000 3b40 fd000000000000000000000000000001 fe" ZERO_7 ZERO_7,
          "02", NONE, "ipv6@14 40+0 p59 payload 0/0", IP_CUT, IP_SHORT, "link"),
    {"IPv4 as IPv6", ETHER, ETHERNET("86dd") EMPTY EMPTY, 0, REASON_IP_VERSION, "link"},
    {"length over the frame", RAW, V6("0001", "3b"), 0, REASON_IP_LENGTH, "link"},
    {"length over the frame, later", ETHER, ETHERNET("86dd") V6("0001", "3b"), 0, REASON_IP_LENGTH,
     "link"},
    {"length 0, later", ETHER, ETHERNET("86dd") V6("0000", "06") TCP("5"), 0, REASON_NONE,
     "ipv6@14 40+20 p6 1024>80 t20 payload 0/0"},
    {"length over capture", RAW, V6("0001", "3b"), 1, REASON_NONE, "ipv6@0 40+1 p59 payload 0/1"},
    {"length before padding", RAW, EMPTY_6 "00", 0, REASON_NONE, "ipv6@0 40+0 p59 payload 0/0"},
    {"length 0 of TCP", RAW, V6("0000", "06") TCP("5"), 0, REASON_NONE,
     "ipv6@0 40+20 p6 1024>80 t20 payload 0/0"},
    {"length 0 of UDP", RAW, V6("0000", "11") UDP("0050", "0000"), 0, REASON_NONE,
     "ipv6@0 40+8 p17 1024>80 t8 payload 0/0"},
    {"length 0 of ICMPv6", RAW, V6("0000", "3a") ZERO_8, 0, REASON_TRANSPORT_SHORT,
     "ipv6@0 40+0 p58 payload 0/0"},
    LEAST_IN("extension header", V6("0008", "3c"), V6("0007", "3c"), "3b00 0104 000000", "00", NONE,
             "ipv6@0 48+0 p59 payload 0/0", IP_CUT, "ipv6@0 40+8 p60 payload 7/8", IP_EXTENSION,
             "ipv6@0 40+7 p60 payload 7/7"),
    EXTENSION("hop-by-hop options", "00", "p0", "01"),
    EXTENSION("routing", "2b", "p43", "01"),
    EXTENSION("destination options", "3c", "p60", "01"),
    EXTENSION("mobility", "87", "p135", "01"),
    EXTENSION("host identity", "8b", "p139", "01"),
    EXTENSION("shim6", "8c", "p140", "01"),
    EXTENSION("authentication", "33", "p51", "02"),
    {"protocol 255", RAW, V6("0000", "ff"), 0, REASON_NONE, "ipv6@0 40+0 p255 payload 0/0"},
    {"longest extension", RAW, V6("0800", "3c") "3bff 0000 00000000", 2040, REASON_IP_CUT,
     "ipv6@0 40+2048 p60 payload 8/2048"},
    {"longest extension absent", RAW, V6("07ff", "3c") "3bff 0000 00000000", 2039,
     REASON_IP_EXTENSION, "ipv6@0 40+2047 p60 payload 8/2047"},
    {"16 extensions", RAW,
     V6("0080", "3c") TIMES_8(OPTIONS_8("3c")) TIMES_7(OPTIONS_8("3c")) OPTIONS_8("3b"), 0,
     REASON_NONE, "ipv6@0 168+0 p59 payload 0/0"},
    {"17 extensions", RAW, V6("0088", "3c") TWICE(TIMES_8(OPTIONS_8("3c"))) OPTIONS_8("3b"), 0,
     REASON_IP_EXTENSION, "ipv6@0 168+8 p60 payload 8/8"},
    /* next header, reserved, offset with more fragments, identification */
    LEAST_IN("atomic fragment", V6("0008", "2c"), V6("0007", "2c"), "3bff 0000 000000", "07", NONE,
             "ipv6@0 48+0 p59 atomic payload 0/0", IP_CUT, "ipv6@0 40+8 p44 payload 7/8",
             IP_EXTENSION, "ipv6@0 40+7 p44 payload 7/7"),
    {"fragment of 8", RAW, V6("0010", "2c") "3b00 0001 00000007" ZERO_8, 0, REASON_NONE,
     "ipv6@0 48+8 p59 fragment 0+8 more payload 8/8"},
    {"fragment of 7", RAW, V6("000f", "2c") "3b00 0001 00000007" ZERO_7, 0, REASON_IP_FRAGMENT,
     "ipv6@0 48+7 p59 fragment 0+7 more payload 7/7"},
    {"last fragment of 7", RAW, V6("000f", "2c") "3c00 0008 00000007" ZERO_7, 0, REASON_NONE,
     "ipv6@0 48+7 p60 fragment 8+7 payload 7/7"},
    {"options in first fragment", RAW, V6("0010", "2c") "3c00 0001 00000007" OPTIONS_8("3b"), 0,
     REASON_NONE, "ipv6@0 56+0 p59 fragment 0+8 more payload 0/0"},
    {"fragment up to 65,535", RAW, V6("000f", "2c") "3b00 fff8 00000007" ZERO_7, 0, REASON_NONE,
     "ipv6@0 48+7 p59 fragment 65528+7 payload 7/7"},
    {"fragment past 65,535", RAW, V6("0010", "2c") "3b00 fff8 00000007" ZERO_8, 0,
     REASON_IP_FRAGMENT, "ipv6@0 48+8 p59 fragment 65528+8 payload 8/8"},
    {"fragment twice", RAW, V6("0018", "2c") "2c00 0001 00000007 3b00 0001 00000007" ZERO_8, 0,
     REASON_IP_EXTENSION, "ipv6@0 48+16 p44 fragment 0+16 more payload 16/16"},
    {"atomic fragment twice", RAW, V6("0010", "2c") "2c00 0000 00000007 3b00 0000 00000007", 0,
     REASON_IP_EXTENSION, "ipv6@0 48+8 p44 atomic payload 8/8"},
    {"jumbo of its header", JUMBO("c204 00000008"), 0, REASON_NONE, "ipv6@0 48+0 p59 payload 0/0"},
    {"jumbo under its header", JUMBO("c204 00000007"), 0, REASON_IP_LENGTH, "link"},
    {"jumbo over the frame", JUMBO("c204 00000009"), 0, REASON_IP_LENGTH, "link"},
    {"jumbo over the frame, later", ETHER, ETHERNET("86dd") V6("0000", "00") "3b00 c204 00000009",
     0, REASON_IP_LENGTH, "link"},
    {"jumbo over capture", JUMBO("c204 00000009"), 1, REASON_NONE, "ipv6@0 48+1 p59 payload 0/1"},
    {"jumbo before padding", JUMBO("c204 00000008 00"), 0, REASON_NONE,
     "ipv6@0 48+0 p59 payload 0/0"},
    {"jumbo of 65,536", JUMBO("c204 00010000"), 65528, REASON_NONE,
     "ipv6@0 48+65528 p59 payload 0/65528"},
    {"jumbo of 4 GiB", JUMBO("c204 ffffffff"), 0, REASON_IP_LENGTH, "link"},
    {"no jumbo option", JUMBO("0104 00000000"), 0, REASON_IP_LENGTH, "link"},
    {"jumbo of 3 bytes", JUMBO("c203 00000800"), 0, REASON_IP_LENGTH, "link"},
    {"jumbo over its header", JUMBO("00 c204 000000 18" ZERO_7 ZERO_8), 0, REASON_IP_LENGTH,
     "link"},
    {"option over its header", JUMBO("0103 000000 01"), 0, REASON_IP_LENGTH, "link"},
    {"jumbo after Pad1", RAW, V6("0000", "00") "3b01 00 00 c204 00000010 0104" ZERO_4, 0,
     REASON_NONE, "ipv6@0 56+0 p59 payload 0/0"},
    {"jumbo after PadN", RAW, V6("0000", "00") "3b01 0102 0000 c204 00000010 0102 0000", 0,
     REASON_NONE, "ipv6@0 56+0 p59 payload 0/0"},
    {"jumbo last", RAW, V6("0000", "00") "3b01 0106 ffffffffffff c204 00000010", 0, REASON_NONE,
     "ipv6@0 56+0 p59 payload 0/0"},
};

#define UDP_TO_80(n)    "ipv4@0 20+" n " p17 1024>80 t8 "
#define DCCP(offset, x) "0400 0050 " offset " 00 0000 " x " 000000 "

static const struct row transport_rows[] = {
    LEAST_KEPT("ports", RAW, V4_TCP "0400 00", "50", TRANSPORT_SHORT,
               "ipv4@0 20+4 p6 1024>80 payload 4/4", TRANSPORT_SHORT, "ipv4@0 20+4 p6 payload 3/4",
               TRANSPORT_SHORT, "ipv4@0 20+3 p6 payload 3/3"),
    {"TCP cut after ports", RAW, V4_TCP "0400 0050", 16, REASON_TRANSPORT_CUT,
     "ipv4@0 20+20 p6 1024>80 payload 4/20"},
    {"TCP cut before", RAW, V4_TCP, 20, REASON_TRANSPORT_CUT, "ipv4@0 20+20 p6 payload 0/20"},
    LEAST_KEPT("TCP", RAW, V4_TCP "0400 0050 00000001 00000002 5111 1234 abcd 00", "00", NONE,
               NO_OPTIONS("20"), TRANSPORT_CUT, "ipv4@0 20+20 p6 1024>80 payload 19/20",
               TRANSPORT_SHORT, "ipv4@0 20+19 p6 1024>80 payload 19/19"),
    {"TCP by the IP length", RAW, V4("0027", "06") TCP("5"), 0, REASON_TRANSPORT_SHORT,
     "ipv4@0 20+19 p6 1024>80 payload 19/19"},
    {"data offset 0", RAW, V4_TCP TCP("0"), 0, REASON_TCP_OFFSET,
     "ipv4@0 20+20 p6 1024>80 payload 20/20"},
    {"data offset 4", RAW, V4_TCP TCP("4"), 0, REASON_TCP_OFFSET,
     "ipv4@0 20+20 p6 1024>80 payload 20/20"},
    {"data offset over the packet", RAW, V4_TCP TCP("6") "010101", 0, REASON_TCP_OFFSET,
     "ipv4@0 20+23 p6 1024>80 payload 23/23"},
    {"data offset 15", RAW, V4_TCP TCP("f") TIMES_8("01010101") TWICE("01010101"), 0, REASON_NONE,
     NO_OPTIONS("60")},
    LEAST_IN("UDP", V4("001c", "11"), V4("001b", "11"), "0400 0050 0008 00", "00", NONE,
             UDP_TO_80("8") "payload 0/0", TRANSPORT_CUT, "ipv4@0 20+8 p17 1024>80 payload 7/8",
             TRANSPORT_SHORT, "ipv4@0 20+7 p17 1024>80 payload 7/7"),
    {"UDP length 7", RAW, V4("001c", "11") UDP("0050", "0007"), 0, REASON_UDP_LENGTH,
     UDP_TO_80("8") "payload 0/0"},
    {"UDP length 0", RAW, V4("001c", "11") UDP("0050", "0000"), 0, REASON_UDP_LENGTH,
     UDP_TO_80("8") "payload 0/0"},
    {"UDP length over the packet", RAW, V4("001c", "11") UDP("0050", "0009"), 0, REASON_UDP_LENGTH,
     UDP_TO_80("8") "payload 0/0"},
    {"UDP length over capture", RAW, V4("001d", "11") UDP("0050", "0009"), 1, REASON_NONE,
     UDP_TO_80("9") "payload 0/1"},
    {"UDP length within", RAW, V4("001e", "11") UDP("0050", "0009") "0000", 0, REASON_NONE,
     UDP_TO_80("10") "payload 1/1"},
    {"UDP length of a header, more", RAW, V4("001e", "11") UDP("0050", "0008") "0000", 0,
     REASON_NONE, UDP_TO_80("10") "payload 0/0"},
    {"UDP lengths left out", RAW, V4("0000", "11") UDP("0050", "0000") "0000", 0, REASON_NONE,
     UDP_TO_80("10") "payload 2/2"},
    {"UDP length 7, no IP length", RAW, V4("0000", "11") UDP("0050", "0007"), 0, REASON_UDP_LENGTH,
     UDP_TO_80("8") "payload 0/0"},
    {"UDP in first fragment", RAW, V4_FRAGMENT("0024", "2000", "11") UDP("0050", "0011") ZERO_8, 0,
     REASON_NONE, UDP_TO_80("16") "fragment 0+16 more payload 8/8"},
    {"UDP length 7 in fragment", RAW, V4_FRAGMENT("0024", "2000", "11") UDP("0050", "0007") ZERO_8,
     0, REASON_UDP_LENGTH, UDP_TO_80("16") "fragment 0+16 more payload 8/8"},
    {"UDP in later fragment", RAW, V4_FRAGMENT("001c", "0001", "11") UDP("0050", "0007"), 0,
     REASON_NONE, "ipv4@0 20+8 p17 fragment 8+8 payload 8/8"},
    LEAST_IN("UDP-Lite", V4("001c", "88"), V4("001b", "88"), "0400 0050 0000 00", "00", NONE,
             "ipv4@0 20+8 p136 1024>80 t8 payload 0/0", TRANSPORT_CUT,
             "ipv4@0 20+8 p136 1024>80 payload 7/8", TRANSPORT_SHORT,
             "ipv4@0 20+7 p136 1024>80 payload 7/7"),
    {"coverage 1", RAW, V4("001c", "88") UDP("0050", "0001"), 0, REASON_TRANSPORT_BAD,
     "ipv4@0 20+8 p136 1024>80 t8 payload 0/0"},
    {"coverage 7", RAW, V4("001c", "88") UDP("0050", "0007"), 0, REASON_TRANSPORT_BAD,
     "ipv4@0 20+8 p136 1024>80 t8 payload 0/0"},
    {"coverage 8", RAW, V4("001c", "88") UDP("0050", "0008"), 0, REASON_NONE,
     "ipv4@0 20+8 p136 1024>80 t8 payload 0/0"},
    {"coverage 9", RAW, V4("001c", "88") UDP("0050", "0009"), 0, REASON_TRANSPORT_BAD,
     "ipv4@0 20+8 p136 1024>80 t8 payload 0/0"},
    {"coverage over capture", RAW, V4("001d", "88") UDP("0050", "0009"), 1, REASON_NONE,
     "ipv4@0 20+9 p136 1024>80 t8 payload 0/1"},
    {"coverage over a fragment", RAW, V4_FRAGMENT("001c", "2000", "88") UDP("0050", "0009"), 0,
     REASON_NONE, "ipv4@0 20+8 p136 1024>80 t8 fragment 0+8 more payload 0/0"},
    LEAST_IN("SCTP", V4("0020", "84"), V4("001f", "84"), "0400 0050" ZERO_7, "00", NONE,
             "ipv4@0 20+12 p132 1024>80 t12 payload 0/0", TRANSPORT_CUT,
             "ipv4@0 20+12 p132 1024>80 payload 11/12", TRANSPORT_SHORT,
             "ipv4@0 20+11 p132 1024>80 payload 11/11"),
    LEAST_IN("DCCP", V4("0020", "21"), V4("001f", "21"), "0400 0050 03 00 0000 04 0000", "00", NONE,
             "ipv4@0 20+12 p33 1024>80 t12 payload 0/0", TRANSPORT_CUT,
             "ipv4@0 20+12 p33 1024>80 payload 11/12", TRANSPORT_SHORT,
             "ipv4@0 20+11 p33 1024>80 payload 11/11"),
    LEAST_IN("DCCP extended", V4("0024", "21"), V4("0023", "21"), DCCP("04", "05") "000000", "00",
             NONE, "ipv4@0 20+16 p33 1024>80 t16 payload 0/0", TRANSPORT_CUT,
             "ipv4@0 20+16 p33 1024>80 payload 15/16", TRANSPORT_SHORT,
             "ipv4@0 20+15 p33 1024>80 payload 15/15"),
    {"DCCP offset 2, absent", RAW, V4("001f", "21") "0400 0050 02 00 0000 04 0000", 0,
     REASON_TRANSPORT_SHORT, "ipv4@0 20+11 p33 1024>80 payload 11/11"},
    {"DCCP offset 2", RAW, V4("0020", "21") DCCP("02", "04"), 0, REASON_TRANSPORT_BAD,
     "ipv4@0 20+12 p33 1024>80 payload 12/12"},
    {"DCCP extended, offset 3", RAW, V4("0024", "21") DCCP("03", "05") ZERO_4, 0,
     REASON_TRANSPORT_BAD, "ipv4@0 20+16 p33 1024>80 payload 16/16"},
    LEAST_IN("ICMP", V4("001c", "01"), V4("001b", "01"), "0800 0000 0007 00", "09", NONE,
             "ipv4@0 20+8 p1 t8 echo 7 payload 0/0", TRANSPORT_CUT, "ipv4@0 20+8 p1 payload 7/8",
             TRANSPORT_SHORT, "ipv4@0 20+7 p1 payload 7/7"),
    LEAST_IN("ICMPv6", V6("0008", "3a"), V6("0007", "3a"), "8000 0000 0007 00", "09", NONE,
             "ipv6@0 40+8 p58 t8 echo 7 payload 0/0", TRANSPORT_CUT, "ipv6@0 40+8 p58 payload 7/8",
             TRANSPORT_SHORT, "ipv6@0 40+7 p58 payload 7/7"),
    {"ESP", RAW, V4("001c", "32") ZERO_8, 0, REASON_ENCRYPTED, "ipv4@0 20+8 p50 payload 8/8"},
    {"ESP after options", RAW, V6("0010", "3c") OPTIONS_8("32") ZERO_8, 0, REASON_ENCRYPTED,
     "ipv6@0 48+8 p50 payload 8/8"},
    {"ESP in first fragment", RAW, V4_FRAGMENT("001c", "2000", "32") ZERO_8, 0, REASON_ENCRYPTED,
     "ipv4@0 20+8 p50 fragment 0+8 more payload 8/8"},
    {"ESP in later fragment", RAW, V4_FRAGMENT("001c", "0001", "32") ZERO_8, 0, REASON_NONE,
     "ipv4@0 20+8 p50 fragment 8+8 payload 8/8"},
    {"ESP in IP in IP", RAW, V4("0030", "04") V4("001c", "32") ZERO_8, 0, REASON_ENCRYPTED,
     "ipip 0, ipv4@20 20+8 p50 payload 8/8"},
};

/* Options as their bits in enum tcp_option_seen. */
static const struct row option_rows[] = {
    {"no operations", RAW, V4_TCP TCP("6") "01010101", 0, REASON_NONE, NO_OPTIONS("24")},
    {"kind at the end", RAW, V4_TCP TCP("6") "01010102", 0, REASON_TCP_OPTIONS, NO_OPTIONS("24")},
    {"end of options", RAW, V4_TCP TCP("6") "00010102", 0, REASON_NONE, NO_OPTIONS("24")},
    {"length 0", RAW, V4_TCP TCP("6") "03000101", 0, REASON_TCP_OPTIONS, NO_OPTIONS("24")},
    {"length 1", RAW, V4_TCP TCP("6") "03010101", 0, REASON_TCP_OPTIONS, NO_OPTIONS("24")},
    {"length 2", RAW, V4_TCP TCP("6") "04020101", 0, REASON_NONE, OPTIONS("24", "4")},
    {"length 2 at the end", RAW, V4_TCP TCP("6") "01010402", 0, REASON_NONE, OPTIONS("24", "4")},
    {"length of all", RAW, V4_TCP TCP("6") "020405b4", 0, REASON_NONE, OPTIONS("24", "1 mss 1460")},
    {"length over the header", RAW, V4_TCP TCP("6") "02050102" ZERO_8, 0, REASON_TCP_OPTIONS,
     "ipv4@0 20+32 p6 1024>80 t24 payload 8/8"},
    {"good after good", RAW, V4_TCP TCP("7") "020405b4 03030701", 0, REASON_NONE,
     "ipv4@0 20+28 p6 1024>80 t28 options 3 mss 1460 scale 7 payload 0/0"},
    {"good before bad", RAW, V4_TCP TCP("7") "020405b4 03060701", 0, REASON_TCP_OPTIONS,
     OPTIONS("28", "1 mss 1460")},
    {"all cut", RAW, V4_TCP TCP("6"), 4, REASON_OPTIONS_CUT, OPTIONS("24", "200")},
    {"cut after no operations", RAW, V4_TCP TCP("6") "010101", 1, REASON_OPTIONS_CUT,
     OPTIONS("24", "200")},
    {"cut after the end", RAW, V4_TCP TCP("6") "000000", 1, REASON_NONE, NO_OPTIONS("24")},
    {"cut after a kind", RAW, V4_TCP TCP("6") "010104", 1, REASON_OPTIONS_CUT,
     OPTIONS("24", "200")},
    {"cut after a length", RAW, V4_TCP TCP("6") "0204", 2, REASON_OPTIONS_CUT,
     OPTIONS("24", "200")},
    {"cut in a value", RAW, V4_TCP TCP("6") "020405", 1, REASON_OPTIONS_CUT, OPTIONS("24", "200")},
    {"cut after an option", RAW, V4_TCP TCP("7") "020405b4", 4, REASON_OPTIONS_CUT,
     OPTIONS("28", "201 mss 1460")},
    {"cut after a bad length", RAW, V4_TCP TCP("6") "0205", 2, REASON_TCP_OPTIONS,
     NO_OPTIONS("24")},
    {"timestamps as usual", RAW, V4_TCP TCP("8") "0101080a 00000003 00000004", 0, REASON_NONE,
     OPTIONS("32", "8 times 3/4")},
    {"timestamps otherwise", RAW, V4_TCP TCP("8") "080a 00000003 00000004 0101", 0, REASON_NONE,
     OPTIONS("32", "8 times 3/4")},
    {"cut after timestamps", RAW, V4_TCP TCP("9") "0101080a 00000003 00000004", 4,
     REASON_OPTIONS_CUT, OPTIONS("36", "208 times 3/4")},
    {"no fast open", RAW, V4_TCP TCP("7") "fe03f9 8902 000000", 0, REASON_NONE,
     OPTIONS("28", "100")},
    {"timestamps cut", RAW, V4_TCP TCP("8") "0101080a 00000003 000000", 1, REASON_OPTIONS_CUT,
     OPTIONS("32", "200")},
    {"two blocks", RAW, V4_TCP TCP("a") "0512 00000001 00000002 00000003 00000004 0101", 0,
     REASON_NONE, OPTIONS("40", "10 sack 1-2 3-4")},
};

/* One option alone: its shortest and longest, and one byte beside. */
static const struct option_length {
    uint8_t kind, length;
    uint16_t seen;
} option_lengths[] = {
    {2, 3, TCP_OPTION_OTHER},
    {2, 4, TCP_OPTION_MSS},
    {2, 5, TCP_OPTION_OTHER},
    {3, 2, TCP_OPTION_OTHER},
    {3, 3, TCP_OPTION_WINDOW_SCALE},
    {3, 4, TCP_OPTION_OTHER},
    {4, 2, TCP_OPTION_SACK_PERMITTED},
    {4, 3, TCP_OPTION_OTHER},
    {5, 2, TCP_OPTION_OTHER},
    {5, 9, TCP_OPTION_OTHER},
    {5, 10, TCP_OPTION_SACK},
    {5, 11, TCP_OPTION_OTHER},
    {5, 18, TCP_OPTION_SACK},
    {5, 34, TCP_OPTION_SACK},
    {5, 35, TCP_OPTION_OTHER},
    {6, 6, TCP_OPTION_OTHER},
    {8, 9, TCP_OPTION_OTHER},
    {8, 10, TCP_OPTION_TIMESTAMPS},
    {8, 11, TCP_OPTION_OTHER},
    {19, 17, TCP_OPTION_OTHER},
    {19, 18, TCP_OPTION_SIGNATURE},
    {19, 19, TCP_OPTION_OTHER},
    {29, 3, TCP_OPTION_OTHER},
    {29, 4, TCP_OPTION_SIGNATURE},
    {29, 40, TCP_OPTION_SIGNATURE},
    {30, 2, TCP_OPTION_OTHER},
    {30, 3, TCP_OPTION_MPTCP},
    {30, 40, TCP_OPTION_MPTCP},
    {34, 2, TCP_OPTION_FAST_OPEN},
    {34, 18, TCP_OPTION_FAST_OPEN},
    {34, 19, TCP_OPTION_OTHER},
    {254, 3, TCP_OPTION_OTHER}, /* values are f9 89 ...: fast open before it had a kind */
    {254, 4, TCP_OPTION_FAST_OPEN},
    {254, 40, TCP_OPTION_FAST_OPEN},
    {253, 4, TCP_OPTION_OTHER},
};

/* Errors quote what they are about: TCP from 1024 to 80, as far as it goes. */
#define TOO_BIG     "03 04 0000 0000 05dc "
#define TOO_BIG_6   "02 00 0000 00000500 "
#define QUOTED      V4("0028", "06") "0400 0050 00000001"
#define QUOTED_6(n) V6(n, "3c") OPTIONS_8("06") "0400 0050 00000001"
#define PADS_15(n)  V6(n, "3c") TIMES_8(OPTIONS_8("3c")) TIMES_7(OPTIONS_8("3c"))

static const struct row icmp_rows[] = {
    {"quotation", RAW, V4("0038", "01") TOO_BIG QUOTED, 0, REASON_NONE,
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p6 1024>80 #1 payload 28/28"},
    {"quotation without sequence", RAW,
     V4("0037", "01") TOO_BIG V4("0028", "06") "0400 0050 000000", 0, REASON_NONE,
     "ipv4@0 20+35 p1 t8 mtu 1500 quotes p6 1024>80 #0 payload 27/27"},
    {"quotation with ports", RAW, V4("0034", "01") TOO_BIG V4("0028", "06") "0400 0050", 0,
     REASON_NONE, "ipv4@0 20+32 p1 t8 mtu 1500 quotes p6 1024>80 #0 payload 24/24"},
    {"quotation with a port", RAW, V4("0033", "01") TOO_BIG V4("0028", "06") "0400 00", 0,
     REASON_NONE, "ipv4@0 20+31 p1 t8 mtu 1500 quotes p6 0>0 #0 payload 23/23"},
    {"quotation of a header", RAW, V4("0030", "01") TOO_BIG V4("0028", "06"), 0, REASON_NONE,
     "ipv4@0 20+28 p1 t8 mtu 1500 quotes p6 0>0 #0 payload 20/20"},
    {"quotation under a header", RAW, V4("002f", "01") TOO_BIG V4("0028", "06"), 0, REASON_NONE,
     "ipv4@0 20+27 p1 t8 mtu 1500 payload 19/19"},
    {"no quotation", RAW, V4("001c", "01") "0b00 0000 00000000", 0, REASON_NONE,
     "ipv4@0 20+8 p1 t8 payload 0/0"},
    {"quoted header length 4", RAW, V4("0030", "01") TOO_BIG V4_IHL("44", "0028"), 0, REASON_NONE,
     "ipv4@0 20+28 p1 t8 mtu 1500 payload 20/20"},
    {"quoted version 6", RAW, V4("0030", "01") TOO_BIG V4_IHL("65", "0028"), 0, REASON_NONE,
     "ipv4@0 20+28 p1 t8 mtu 1500 payload 20/20"},
    {"quoted later fragment", RAW,
     V4("0038", "01") TOO_BIG V4_FRAGMENT("0028", "0001", "06") "0400 0050 00000001", 0,
     REASON_NONE, "ipv4@0 20+36 p1 t8 mtu 1500 quotes p6 0>0 #0 payload 28/28"},
    {"quoted protocol without ports", RAW,
     V4("0038", "01") TOO_BIG V4("0028", "02") "0400 0050 00000001", 0, REASON_NONE,
     "ipv4@0 20+36 p1 t8 mtu 1500 quotes p2 0>0 #0 payload 28/28"},
    {"quoted UDP", RAW, V4("0038", "01") "0303 0000 000005dc" V4("0028", "11") UDP("0050", "0008"),
     0, REASON_NONE, "ipv4@0 20+36 p1 t8 quotes p17 1024>80 #0 payload 28/28"},
    {"quoted UDP-Lite", RAW, V4("0038", "01") TOO_BIG V4("0028", "88") UDP("0050", "0008"), 0,
     REASON_NONE, "ipv4@0 20+36 p1 t8 mtu 1500 quotes p136 1024>80 #0 payload 28/28"},
    {"quoted SCTP", RAW, V4("0038", "01") TOO_BIG V4("0028", "84") UDP("0050", "0008"), 0,
     REASON_NONE, "ipv4@0 20+36 p1 t8 mtu 1500 quotes p132 1024>80 #0 payload 28/28"},
    {"quoted DCCP", RAW, V4("0038", "01") TOO_BIG V4("0028", "21") UDP("0050", "0008"), 0,
     REASON_NONE, "ipv4@0 20+36 p1 t8 mtu 1500 quotes p33 1024>80 #0 payload 28/28"},
    {"quotation of IPv6", RAW, V6("0040", "3a") TOO_BIG_6 QUOTED_6("001c"), 0, REASON_NONE,
     "ipv6@0 40+64 p58 t8 mtu 1280 quotes p6 1024>80 #1 payload 56/56"},
    {"quotation of its header", RAW, V6("0030", "3a") TOO_BIG_6 V6("001c", "3c"), 0, REASON_NONE,
     "ipv6@0 40+48 p58 t8 mtu 1280 quotes p60 0>0 #0 payload 40/40"},
    {"quotation under its header", RAW, V6("002f", "3a") TOO_BIG_6 V6("001c", "3c"), 0, REASON_NONE,
     "ipv6@0 40+47 p58 t8 mtu 1280 payload 39/39"},
    {"quotation of options", RAW, V6("0038", "3a") TOO_BIG_6 V6("001c", "3c") OPTIONS_8("06"), 0,
     REASON_NONE, "ipv6@0 40+56 p58 t8 mtu 1280 quotes p6 0>0 #0 payload 48/48"},
    {"quotation under options", RAW, V6("0037", "3a") TOO_BIG_6 V6("001c", "3c") OPTIONS_8("06"), 0,
     REASON_NONE, "ipv6@0 40+55 p58 t8 mtu 1280 quotes p60 0>0 #0 payload 47/47"},
    {"quoted fragment", RAW,
     V6("0040", "3a") TOO_BIG_6 V6("001c", "2c") "0600 0001 00000007 0400 0050 00000001", 0,
     REASON_NONE, "ipv6@0 40+64 p58 t8 mtu 1280 quotes p6 1024>80 #1 payload 56/56"},
    {"quoted later fragment", RAW,
     V6("0040", "3a") TOO_BIG_6 V6("001c", "2c") "0600 0008 00000007 0400 0050 00000001", 0,
     REASON_NONE, "ipv6@0 40+64 p58 t8 mtu 1280 quotes p6 0>0 #0 payload 56/56"},
    {"16 quoted extensions", RAW,
     V6("00b8", "3a") TOO_BIG_6 PADS_15("0094") OPTIONS_8("06") "0400 0050 00000001", 0,
     REASON_NONE, "ipv6@0 40+184 p58 t8 mtu 1280 quotes p6 1024>80 #1 payload 176/176"},
    {"17 quoted extensions", RAW,
     V6("00c0", "3a") TOO_BIG_6 PADS_15("009c") OPTIONS_8("3c") OPTIONS_8("06") ZERO_8, 0,
     REASON_NONE, "ipv6@0 40+192 p58 t8 mtu 1280 quotes p60 0>0 #0 payload 184/184"},
};

#define ROWS(table)                                                                                \
    { #table, table, sizeof table / sizeof *table }

static const struct {
    const char *name;
    const struct row *rows;
    size_t count;
} tables[] = {
    ROWS(link_rows),      ROWS(wlan_rows),   ROWS(encapsulation_rows),
    ROWS(tunnel_rows),    ROWS(ipv4_rows),   ROWS(ipv6_rows),
    ROWS(transport_rows), ROWS(option_rows), ROWS(icmp_rows),
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
        [PATH_VLAN] = "vlan", [PATH_MPLS] = "mpls",   [PATH_PPPOE] = "pppoe",   [PATH_GRE] = "gre",
        [PATH_IPIP] = "ipip", [PATH_VXLAN] = "vxlan", [PATH_GENEVE] = "geneve",
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
 * fragment's place, bytes of payload captured / sent. */
static void describe_network(char *text, const struct headers *headers) {
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
    say(text, " payload %u/%u", headers->payload_captured, headers->payload_length);
}

static void describe(char *text, const struct headers *headers) {
    *text = '\0';
    describe_path(text, headers);
    if (headers->layer >= LAYER_NETWORK)
        describe_network(text, headers);
    else
        say(text, headers->layer == LAYER_LINK ? "link" : "nothing");
}

static uint8_t digit_value(char digit) {
    const char *digits = "0123456789abcdef", *at = strchr(digits, digit);
    CHECK(digit && at);
    return (uint8_t)(at - digits);
}

static uint32_t bytes_from_digits(const char *digits, uint8_t *bytes) {
    uint32_t count = 0;
    for (; *digits; digits++) {
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
    uint32_t size = bytes_from_digits(row->bytes, space);
    uint8_t *bytes = malloc(size + !size);
    CHECK(bytes);
    memcpy(bytes, space, size);
    memset(headers, 0xa5, sizeof *headers);
    decode_packet(&(struct packet){.data = bytes,
                                   .captured = size,
                                   .length = size + (uint32_t)row->beyond,
                                   .link_type = row->link_type},
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
    reasons_met[row->reason] = true;
    CHECK_INT(headers.answer, decode_reason_answer(headers.reason));
    if (headers.reason == row->reason && strcmp(text, row->decoded) == 0)
        return;
    fprintf(stderr, "%s, %s: %s, \"%s\"; expected %s, \"%s\"\n", table, row->what,
            decode_reason_name(headers.reason), text, decode_reason_name(row->reason),
            row->decoded);
    failures++;
}

/* TCP with 40 bytes of options: the one, and the end. */
static void check_option_length(const struct option_length *option) {
    char digits[TEXT_MOST] = V4_TCP TCP("f");
    struct headers headers;
    say(digits, "%02x %02x", option->kind, option->length);
    for (unsigned at = 2; at < 40; at++)
        say(digits, " %02x", at >= option->length ? 0 : at % 2 ? 0x89 : 0xf9);
    decode_digits(&(struct row){.link_type = RAW, .bytes = digits}, &headers);
    CHECK_INT(headers.reason, REASON_NONE);
    CHECK_INT(headers.tcp.options, option->seen);
    CHECK_INT(headers.tcp.sack_count,
              option->seen == TCP_OPTION_SACK ? (option->length - 2) / 8 : 0);
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
        check_option_length(&option_lengths[i]);
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
