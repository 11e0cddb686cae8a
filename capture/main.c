/* SPDX-License-Identifier: Apache-2.0 */
/* wiretale-capture records packets into files, unattended.
 *
 * A reading thread for each interface puts packets as finished records into chunks of memory
 * (device/, buffer/). One writing thread merges the chunks by time into files (output/), and a
 * third thread syncs, compresses and publishes files whose last packet is written (finish/). The
 * main thread handles signals and the status (control.c).
 *
 * The order of main() is part of the security: interfaces, the output and the sockets are opened
 * with the privileges of the caller; then the user changes, all capabilities but CAP_NET_RAW are
 * dropped, and Landlock and seccomp confine the process before the first packet is read (confine/).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "confine/confine.h"
#include "control.h"
#include "find/find.h"
#include "finish/recover.h"
#include "monitor/monitor.h"

#define READER_NICE    (-10)
#define COMMAND_WAIT_S 10

struct program {
    struct settings settings;
    struct capture capture;
    struct directory directory;
    struct identity identity;
    struct ring ring;
    struct finisher finisher;
    struct command command;
    struct jobs jobs;
    struct keeper keeper;
    struct output output;
    struct writer writer;
    struct control control;
    struct mirror mirror;
};

/* Interfaces are named before any is opened, so that a wrong name is reported without side effects.
 */
static void add_devices(struct program *program) {
    struct capture *capture = &program->capture;
    const struct settings *settings = &program->settings;
    capture->settings = settings;
    capture->wake_fd = eventfd(0, EFD_CLOEXEC);
    capture->packets_left = settings->stop_packets;
    if (settings->mirror) {
        mirror_open(&program->mirror);
        capture->mirror = &program->mirror;
    }
    capture->device_count = settings->interface_count;
    capture->devices = calloc(capture->device_count, sizeof *capture->devices);
    if (!capture->devices)
        fail(EXIT_IO, "out of memory");
    for (uint32_t i = 0; i < capture->device_count; i++) {
        struct device *device = &capture->devices[i];
        device->capture = capture;
        device->number = i;
        if (!device_name(device, settings->interfaces[i]))
            fail(EXIT_MISSING,
                 "-i %s: no interface has that number; expected one that `%s --list` shows",
                 settings->interfaces[i], program_name());
    }
}

/* An interface that is absent stays waiting if --wait is given; else it is an error, because a
 * misspelt name would record nothing. All other errors exit. */
static void open_devices(struct program *program) {
    const struct settings *settings = &program->settings;
    for (uint32_t i = 0; i < program->capture.device_count; i++) {
        struct device *device = &program->capture.devices[i];
        if (device_is_any(device) && !settings->no_promiscuous)
            log_warning(
                "any is never promiscuous: packets to other hosts, as on a mirror port, are "
                "not recorded; name the interface for those (-i eth0)");
        switch (device_open(device)) {
        case OPEN_DONE: atomic_store(&device->state, DEVICE_READING); break;
        case OPEN_DENIED: privilege_refuse(device->reason);
        case OPEN_WRONG: fail(EXIT_USAGE, "%s: %s", device->name, device->reason);
        case OPEN_ABSENT:
            if (!settings->wait)
                fail(EXIT_MISSING,
                     "-i %s: %s; expected an interface that is up (`%s --list`), or --wait",
                     device->name, device->reason, program_name());
            log_warning("waiting for %s (%s)", device->name, device->reason);
        }
    }
}

/* Files in a directory are named after "eth0" or "eth0+eth1". */
static void open_output_directory(struct program *program) {
    struct directory *directory = &program->directory;
    char names[64] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < program->capture.device_count && used + 1 < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? "+" : "",
                                 program->capture.devices[i].name);
    directory_open(directory, &program->settings, names);
    if (directory->is_stream)
        fcntl(directory->fd, F_SETFL, fcntl(directory->fd, F_GETFL) | O_NONBLOCK);
}

/* Returns whether a second process must be forked first, because the sandbox would forbid its work.
 */
static bool has_helper(const struct settings *settings) {
    return settings->on_close || settings->status;
}

static struct directory *locked;

static void unlock_output(void) {
    directory_unlock(locked);
}

/* A sealed directory is locked before the privileges are dropped, since the user may not write to
 * it. */
static void lock_output(struct program *program) {
    struct directory *directory = locked = &program->directory;
    atexit(unlock_output); /* if startup fails, too */
    if (directory->is_stream || directory_lock(directory) || errno != EBUSY)
        return; /* another error of the directory is reported with its first file */
    status_socket_close(&program->control.status);
    fail(EXIT_IO,
         "%s: another wiretale-capture writes the files %s*%s there: expected another directory or "
         "another name (-w DIR/NAME.pcapng)",
         directory->path, directory->prefix, directory->suffix);
}

/* Drops what the capture does not need any more. The order matters: the keeper and the command
 * process need the privileges that privilege_drop() takes away. */
static void confine(struct program *program) {
    const struct settings *settings = &program->settings;
    /* If permitted; the other threads undo it for themselves. */
    setpriority(PRIO_PROCESS, 0, READER_NICE);
    if (program->identity.changes &&
        !status_socket_give(&program->control.status, program->identity.user,
                            program->identity.group))
        log_warning("root remains the owner of %s: %s", settings->status, strerror(errno));
    program->finisher.publisher.replacement.overwrite = settings->overwrite;
    if (program->directory.sealed) {
        lock_output(program);
        keeper_start(&program->keeper, &program->directory, &program->identity,
                     settings->overwrite);
        program->finisher.publisher.keeper = &program->keeper;
    }
    if (has_helper(settings))
        command_become(&program->command, &program->identity, settings->status,
                       settings->on_close_ns);
    privilege_drop(&program->identity, true);
    if (!program->directory.sealed)
        lock_output(program);
    if (settings->no_sandbox)
        return;
    program->directory.confined = sandbox_files(&program->directory);
    if (!program->directory.confined)
        log_info("this kernel has no Landlock: files are not confined");
    if (!sandbox_calls())
        log_info("this kernel has no seccomp: system calls are not confined");
}

static void start_threads(struct program *program) {
    struct capture *capture = &program->capture;
    bool started = program->directory.is_stream ||
                   (jobs_start(&program->jobs) && finisher_start(&program->finisher));
    started = started && writer_start(&program->writer) &&
              span_keeper_start(&program->control.spans, &program->output);
    for (uint32_t i = 0; i < capture->device_count; i++)
        started = started && device_start(&capture->devices[i]);
    if (!started)
        fail(EXIT_IO, "cannot start a thread");
}

/* Recovers leftovers and scans the ring before the first file is made, because both must not take
 * it for a file of an earlier run. */
static void prepare_output(struct program *program) {
    ring_open(&program->ring, &program->settings, &program->directory);
    program->finisher.directory = &program->directory;
    program->finisher.ring = &program->ring;
    program->finisher.publisher.compress = program->settings.compress;
    program->output.capture = &program->capture;
    program->output.directory = &program->directory;
    program->output.finisher = &program->finisher;
    program->writer.output = &program->output;
    if (!program->directory.is_stream && !program->directory.sealed) {
        recover_find(&program->finisher.left, &program->directory);
        index_file_remove_orphans(program->directory.fd);
        ring_scan(&program->ring);
        if (!program->directory.plain)
            directory_continue_numbers(&program->directory);
    }
    program->jobs = (struct jobs){.command = program->settings.on_close ? &program->command : NULL,
                                  .ring = &program->ring,
                                  .directory = &program->directory,
                                  .most_tries = program->settings.on_close_tries};
    program->finisher.publisher.jobs = &program->jobs;
    jobs_open(&program->jobs);
    if (!chunk_queue_open(&program->capture.queue, program->settings.buffer_bytes,
                          program->capture.device_count))
        fail(EXIT_IO, "cannot allocate %llu bytes for packets (-B)",
             (unsigned long long)program->settings.buffer_bytes);
    notes_open(&program->output.notes);
    clock_watch_begin(&program->control.clock, &program->output.notes);
    link_watch_open(&program->control.links, &program->capture, &program->output);
    output_open(&program->output);
}

/* Returns whether more packets are lost than --max-loss allows. The percentage is decimal, so that
 * its product may be too small by a rounding error. */
static bool is_above_max_loss(const struct settings *settings, const struct counts *counts) {
    double allowed = settings->max_loss_percent * (double)counts_offered(counts) * (1 + 1e-12);
    return settings->max_loss_percent >= 0 && 100 * (double)counts_lost(counts) > allowed;
}

/* Returns the code of a capture that ended in order. As with tcpdump and dumpcap, it is 0 if only
 * the kernel or the interface dropped packets. */
static int exit_code_of_loss(const struct program *program, const struct counts *counts) {
    bool is_unwritten = counts->dropped_queue || counts->dropped_disk;
    if (program->settings.max_loss_percent >= 0)
        return is_above_max_loss(&program->settings, counts) ? EXIT_THRESHOLD : EXIT_DONE;
    return is_unwritten && !program->output.closed_pipe ? EXIT_TRUNCATED : EXIT_DONE;
}

/* Names the command that reads the capture; a path that a shell would not take as it is gets none.
 */
static void put_next(const struct settings *settings) {
    if (settings->on_terminal && !settings->quiet &&
        !strpbrk(settings->output, " %\"'`$\\*?&;|<>()"))
        log_plain("next: wiretale %s", settings->output);
}

/* The last line, but for put_next(). --quiet does not drop it if packets are lost, unless the
 * reader of a stream left, because it has what it wanted. */
static void report_end(const struct program *program, const struct status *status, int code) {
    char text[512];
    status_text(status, text, sizeof text);
    if (code == EXIT_THRESHOLD)
        log_warning("%s, more than --max-loss %g%%", text, program->settings.max_loss_percent);
    else if (counts_lost(&status->all) && !program->output.closed_pipe)
        log_warning("%s", text);
    else
        log_info("%s", text);
}

/* Joins the threads in the order of the data, so that each one still finds a consumer. Returns the
 * exit code. */
static int end(struct program *program, int code) {
    struct status status;
    for (uint32_t i = 0; i < program->capture.device_count; i++)
        pthread_join(program->capture.devices[i].thread, NULL);
    pthread_join(program->writer.thread, NULL);
    if (!program->directory.is_stream)
        finisher_end(&program->finisher);
    span_keeper_end(&program->control.spans);
    output_count_lost_files(&program->output);
    if (!program->directory.is_stream)
        jobs_end(&program->jobs, COMMAND_WAIT_S);
    if (has_helper(&program->settings))
        command_end(&program->command);
    status_take(&status, &program->capture, &program->output);
    if (program->output.directory_gone || program->output.stream_failed ||
        program->finisher.unnamed)
        code = EXIT_IO;
    else if (!code)
        code = exit_code_of_loss(program, &status.all);
    report_end(program, &status, code);
    if (code != EXIT_IO && status.all.written && !program->directory.is_stream)
        put_next(&program->settings);
    status_socket_close(&program->control.status);
    return code;
}

int main(int count, char **arguments) {
    static struct program program;
    prepare_stdio();
    /* If `wiretale` starts this program, argv[0] is its own name. */
    bool is_front_door = *arguments && !strcmp(*arguments, "wiretale");
    log_set_program(is_front_door ? "wiretale capture" : *arguments, "");
    /* A set-user-ID program must not trust files, environment and options, because its caller
     * controls them all. */
    if (getuid() != geteuid() || getgid() != getegid())
        fail(EXIT_MISSING, "expected no set-user-ID or set-group-ID bit: chmod ug-s, and sudo "
                           "setcap cap_net_raw,cap_net_admin+ep instead");
    if (count > 1 && !strcmp(arguments[1], "find")) {
        log_set_program(*arguments, "find");
        return find_main(count - 2, arguments + 2);
    }
    if (count > 1 && !strcmp(arguments[1], "status")) {
        log_set_program(*arguments, "status");
        return monitor_main(count - 2, arguments + 2);
    }
    settings_read(&program.settings, count, arguments);
    program.settings.on_terminal = isatty(STDERR_FILENO);
    if (program.settings.quiet)
        set_quiet();
    if (program.settings.list)
        return device_list(program.settings.json);
    if (!privilege_may_capture())
        privilege_refuse("capturing needs a privilege that this user does not have");
    /* The caller may have left descriptors open besides the standard streams and that of -w. */
    int named = directory_descriptor(program.settings.output);
    close_other_descriptors(&named, named > STDERR_FILENO);
    umask(027); /* for files of commands, too */
    if (has_helper(&program.settings))
        command_start(&program.command, program.settings.on_close);
    add_devices(&program);
    open_devices(&program);
    open_output_directory(&program);
    privilege_choose(&program.identity, program.settings.user, &program.directory);
    program.control = (struct control){
        .capture = &program.capture,
        .output = &program.output,
        .writer = &program.writer,
        .mirror = {.mirror = program.capture.mirror, .is_filtered = program.settings.filter}};
    control_take_signals(&program.control);
    service_open(&program.control.service);
    status_socket_open(&program.control.status, program.settings.status);
    confine(&program);
    prepare_output(&program);
    start_threads(&program);
    return end(&program, control_run(&program.control));
}
