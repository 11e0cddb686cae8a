/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a truth file as CSV. A figure that is unknown is an empty field.
 *
 * The file may be damaged or of another version: sizes in its header must be those of this program,
 * and the number of a fate is checked before it is used as an index. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "truth/truth_log.h"

static const char columns[] =
    "direction,index,fate,in_ns,out_ns,due_ns,queue_packets,queue_bytes,copies,copied,reordered,"
    "corrupted_bits,marked,ip_bytes,"
    "ip_version,protocol,source,source_port,destination,destination_port,ip_id,fragment_offset,"
    "payload_bytes,"
    "tcp_sequence,tcp_ack,tcp_flags,block_run,block_stream,block_sequence\n";

static void print_known(bool known, uint64_t value) {
    if (known)
        printf(",%" PRIu64, value);
    else
        putchar(',');
}

static void print_address(const struct truth_record *record, const uint8_t *address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (record->ip_version)
        inet_ntop(record->ip_version == 4 ? AF_INET : AF_INET6, address, text, sizeof text);
    printf(",%s", text);
}

static const char *fate_name(unsigned fate) {
    return fate < FATES ? fate_names[fate] : "unknown";
}

static void print_fate(const struct truth_record *record) {
    printf("%u", record->direction);
    print_known(record->index, record->index);
    printf(",%s", fate_name(record->fate));
    print_known(record->in_ns, (uint64_t)record->in_ns);
    print_known(record->out_ns, (uint64_t)record->out_ns);
    print_known(record->due_ns, (uint64_t)record->due_ns);
    printf(",%u,%u,%u,%s,%s,%u", record->queue_packets, record->queue_bytes, record->copies,
           record->bits & TRUTH_COPIED ? "true" : "false",
           record->bits & TRUTH_REORDERED ? "true" : "false", record->corrupted_bits);
    printf(",%s", record->marked ? fate_name(record->marked) : "");
}

/* Bits of the record decide which fields are known. */
static void print_id(const struct truth_record *record) {
    bool ports = record->bits & TRUTH_PORTS, tcp = record->bits & TRUTH_TCP,
         block = record->bits & TRUTH_BLOCK;
    bool fragment = record->bits & TRUTH_FRAGMENT;
    printf(",%u,%u,%u", record->ip_bytes, record->ip_version, record->protocol);
    print_address(record, record->source);
    print_known(ports, record->source_port);
    print_address(record, record->destination);
    print_known(ports, record->destination_port);
    print_known(record->ip_version == 4 || fragment, record->ip_id);
    print_known(fragment, record->fragment_offset * 8u);
    printf(",%u", record->payload_bytes);
    print_known(tcp, record->tcp_sequence);
    print_known(tcp, record->tcp_ack);
    print_known(tcp, record->tcp_flags);
    print_known(block, record->block_run);
    print_known(block, record->block_stream);
    print_known(block, record->block_sequence);
    putchar('\n');
}

/* A file that ends within a record was cut short: the records before it are printed, and the exit
 * code shows it. */
static int print_records(const char *path, FILE *file) {
    struct truth_header header;
    struct truth_record record;
    if (fread(&header, sizeof header, 1, file) != 1 ||
        memcmp(header.magic, TRUTH_MAGIC, sizeof header.magic) ||
        header.header_bytes != sizeof header || header.record_bytes != sizeof record)
        fail(EXIT_IO, "%s: expected a truth file, which begins with %s", path, TRUTH_MAGIC);
    fputs(columns, stdout);
    size_t got;
    while ((got = fread(&record, 1, sizeof record, file)) == sizeof record && !ferror(stdout)) {
        print_fate(&record);
        print_id(&record);
    }
    bool cut_short = got % sizeof record || ferror(file);
    if (cut_short)
        log_warning("%s: cut short within a record: the ones before it are printed", path);
    if (!finish_output(stdout))
        return EXIT_IO;
    return cut_short ? EXIT_TRUNCATED : EXIT_DONE;
}

int truth_print(const char *path) {
    FILE *file = strcmp(path, "-") ? fopen(path, "rbe") : stdin;
    if (!file)
        fail(EXIT_IO, "%s: %s", path, strerror(errno));
    int code = print_records(path, file);
    fclose(file);
    return code;
}
