/* A converter's program: its arguments, and how it ends. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../xfer/foreign/protocol.h"
#include "convert_run.h"
#include "sandbox.h"

#define STREAM_NAME "the stream" /* for messages */
#define PLUGIN_FOLDER "/usr/local/hdf5/lib/plugin" /* where libhdf5 looks by itself */

typedef struct program_args {
    int is_export, classic;
    int ended; /* as of waitpid(): how the process in the sandbox did */
} program_args;

/* ---- arguments -------------------------------- */

static int wrong_arguments(const brc_driver *driver, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL,
                    "this converts %s: call it with import [--exclude PATTERN]... "
                    "[--skip-unsupported] [--hdf5-plugins FOLDERS] FILE, or with "
                    "export %s[--path PATH] FILE",
                    driver->format, driver->classic ? "[--classic] " : "");
}

static int read_arguments(brc_convert *c, program_args *args, int argc, char **argv,
                          const brc_driver *driver, brc_error *err)
{
    if (argc < 3)
        return wrong_arguments(driver, err);
    args->is_export = strcmp(argv[1], "export") == 0;
    if (!args->is_export && strcmp(argv[1], "import") != 0)
        return wrong_arguments(driver, err);
    BRC_TRY(brc_new_array((void **)&c->exclude, (size_t)argc, sizeof(*c->exclude), err));
    BRC_TRY(brc_new_array((void **)&c->excluded, (size_t)argc, 1, err));
    for (int i = 2; i < argc - 1; i++) {
        int has_value = i + 1 < argc - 1;
        if (!args->is_export && has_value && strcmp(argv[i], "--exclude") == 0)
            c->exclude[c->nexclude++] = argv[++i];
        else if (!args->is_export && strcmp(argv[i], "--skip-unsupported") == 0)
            c->skips = 1;
        else if (!args->is_export && has_value && strcmp(argv[i], "--hdf5-plugins") == 0)
            c->plugins = argv[++i];
        else if (args->is_export && has_value && strcmp(argv[i], "--path") == 0)
            c->path = argv[++i];
        else if (args->is_export && driver->classic && strcmp(argv[i], "--classic") == 0)
            args->classic = 1;
        else
            return wrong_arguments(driver, err);
    }
    c->file = argv[argc - 1];
    return BRC_OK;
}

/* ---- one run -------------------------------- */

/* What is opened for the stream is opened before the sandbox closes. */
static int open_run(brc_convert *c, const program_args *args, brc_error *err)
{
    BRC_TRY(brc_registry_new(&c->registry, err));
    BRC_TRY(brc_scratch_new(&c->scratch, err));
    if (args->is_export && brc_spool_open(&c->spool, c->file, NULL) < 0)
        c->spool.fd = -1; /* who needs it says so */
    if (args->is_export)
        return brc_tar_in_open_fd(&c->in, STDIN_FILENO, STREAM_NAME, err);
    return brc_tar_out_open_fd(&c->out, STDOUT_FILENO, STREAM_NAME, err);
}

static void close_run(brc_convert *c)
{
    brc_convert_nodes_free(c);
    brc_tar_in_free(c->in);
    brc_spool_close(&c->spool);
    brc_tar_out_free(c->out);
    brc_scratch_free(c->scratch);
    brc_registry_free(c->registry);
    free(c->exclude);
    free(c->excluded);
    brc_parts_dispose(&c->parts);
}

/* 1 in the process that only opened files for the other one. */
static int run_converter(brc_convert *c, program_args *args, const brc_driver *driver,
                         brc_error *err)
{
    BRC_TRY(brc_door_init(&c->door, c->file, args->is_export, err));
    c->has_door = brc_sandbox_has_door();
    if (c->has_door) {
        int rc = brc_door_keep(&c->door, &args->ended, err);
        if (rc != 0)
            return rc;
    }
    BRC_TRY(open_run(c, args, err));
    BRC_TRY(driver->prepare(c->plugins, err));
    BRC_TRY(brc_watch_start(&c->watch, c->file, BRC_WATCH_SECONDS, err));
    BRC_TRY(brc_sandbox_enter(c->file, args->is_export, err));
    return args->is_export ? brc_convert_export(c, driver, args->classic, err)
                           : brc_convert_import(c, driver, err);
}

/* As the other process did, by the same signal too. */
static int end_as(int ended)
{
    if (!WIFSIGNALED(ended))
        return WEXITSTATUS(ended);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    (void)signal(WTERMSIG(ended), SIG_DFL);
    (void)kill(getpid(), WTERMSIG(ended));
    return 128 + WTERMSIG(ended);
}

int brc_convert_main(int argc, char **argv, const brc_driver *driver)
{
    brc_convert c = { .path = "/", .names = driver->names, .parts = BRC_PARTS_INIT,
                      .spool = BRC_SPOOL_INIT };
    brc_error err = BRC_ERROR_INIT;

    program_args args = { 0 };
    c.plugins = getenv("HDF5_PLUGIN_PATH");
    if (!c.plugins || !*c.plugins)
        c.plugins = PLUGIN_FOLDER;
    int rc = read_arguments(&c, &args, argc, argv, driver, &err);
    if (rc == BRC_OK)
        rc = run_converter(&c, &args, driver, &err);
    brc_convert_tell_more(&c);
    close_run(&c);
    if (rc == 1)
        return end_as(args.ended);
    if (rc < 0 && c.is_netcdf)
        return BRC_STATUS_IS_NETCDF;
    if (rc < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return brc_status_of_code(rc);
    }
    return BRC_STATUS_GOOD;
}
