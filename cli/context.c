/*
 * context.c - errors, memory and the open repository of one run.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cli_block {
    struct cli_block *next;
    max_align_t memory[];
};

int cli_fail(struct cli *cli, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli->err.code = code;
    cli->err.detail = 0;
    cli->err.source[0] = '\0';
    vsnprintf(cli->err.message, sizeof(cli->err.message), format, args);
    va_end(args);
    return code;
}

int cli_usage(struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli->usage = 1;
    cli->err.code = BRC_EINVAL;
    cli->err.source[0] = '\0';
    vsnprintf(cli->err.message, sizeof(cli->err.message), format, args);
    va_end(args);
    return BRC_EINVAL;
}

int cli_fail_errno(struct cli *cli, int number, const char *what)
{
    int code = BRC_EIO;

    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        code = BRC_ENOSPACE;
    else if (number == ENOENT)
        code = BRC_ENOTFOUND;
    else if (number == EINTR && cli_signal())
        code = BRC_EINTERRUPT;
    return cli_fail(cli, code, "%s: %s", what, strerror(number));
}

/* The end of the process undoes an open transaction, so this loses nothing. */
static void out_of_memory(void)
{
    static const char message[] = "breccia: error: out of memory\n";

    if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
        _exit(1);
    _exit(1);
}

void *cli_alloc(struct cli *cli, size_t n, size_t size)
{
    struct cli_block *block;

    if (size && n > (SIZE_MAX - sizeof(*block)) / size)
        out_of_memory();
    block = calloc(1, sizeof(*block) + n * size);
    if (!block)
        out_of_memory();
    block->next = cli->blocks;
    cli->blocks = block;
    return block->memory;
}

char *cli_text(struct cli *cli, const char *format, ...)
{
    va_list args;
    int len;
    char *text;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = cli_alloc(cli, len < 0 ? 1 : (size_t)len + 1, 1);
    va_start(args, format);
    if (len > 0)
        vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return text;
}

void *cli_regrow(void *memory, size_t n, size_t size)
{
    void *grown;

    if (size && n > SIZE_MAX / size)
        out_of_memory();
    grown = realloc(memory, n > 0 && size > 0 ? n * size : 1);
    if (!grown)
        out_of_memory();
    return grown;
}

int cli_load_plugins(struct cli *cli)
{
    const char *file;

    if (cli->registry || !cli_has(cli, "plugin"))
        return BRC_OK;
    CLI_TRY(brc_registry_new(&cli->registry, &cli->err));
    for (size_t i = 0; (file = cli_nth_value(cli, "plugin", i)) != NULL; i++)
        CLI_TRY(brc_registry_load(cli->registry, file, &cli->err));
    return BRC_OK;
}

/* "breccia log x.brc >> x.brc": what is written there would be taken for the repository. */
static int check_output_elsewhere(struct cli *cli)
{
    struct stat file, output;

    if (stat(cli->file, &file) != 0)
        return BRC_OK;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &output) == 0 && output.st_dev == file.st_dev &&
            output.st_ino == file.st_ino) {
            cli->out.hold = 1; /* nothing of it appears */
            if (fd == STDERR_FILENO && !freopen("/dev/null", "w", stderr))
                _exit(1);
            return cli_fail(cli, BRC_EINVAL, "%s is standard %s too: write that elsewhere",
                            cli->file, fd == STDOUT_FILENO ? "output" : "error");
        }
    return BRC_OK;
}

int cli_open(struct cli *cli, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int rc;

    CLI_TRY(cli_load_plugins(cli)); /* its errors are not of FILE */
    cli->file = cli_operand(cli, 0);
    if (cli->file[0] == '\0')
        return cli_usage(cli, "FILE is empty: name the repository's file");
    CLI_TRY(check_output_elsewhere(cli));
    if (cli_has(cli, "no-recover"))
        flags |= BRC_OPEN_NO_RECOVER;
    if ((flags & BRC_OPEN_CREATE) && (flags & BRC_OPEN_NO_RECOVER))
        return cli_usage(cli, "--no-recover is for a file that is there");
    if (cli->command->flags & CLI_POOL)
        CLI_TRY(brc_pool_new(&cli->pool, cli->threads, &cli->err));
    cli->changes = !(flags & BRC_OPEN_READONLY);
    opts.flags = flags;
    opts.wait_ms = cli->wait_ms;
    opts.max_nodes = cli->max_nodes;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
    cli_progress_begin(cli);
    if (cli->progress.enabled) { /* else nobody measures what is to be done */
        opts.progress = cli_progress_step;
        opts.progress_ctx = cli;
    }
    if (flags & BRC_OPEN_CREATE)
        cli_signal_hold();
    rc = brc_open(&cli->repo, cli->file, &opts, &cli->err);
    cli_signal_target(cli->repo);
    return rc;
}

int cli_open_view(struct cli *cli)
{
    const char *at = cli_value(cli, "at");

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    return brc_session_open(&cli->session, cli->repo, at, at ? BRC_SESSION_AT : BRC_SESSION_VIEW,
                            &cli->err);
}

int cli_open_edit(struct cli *cli)
{
    CLI_TRY(cli_open(cli, 0));
    return brc_session_open(&cli->session, cli->repo, NULL, BRC_SESSION_WRITE, &cli->err);
}

int cli_open_array(struct cli *cli, const char *path)
{
    brc_array_free(cli->array);
    return brc_array_open(&cli->array, cli->session, path, &cli->err);
}

void cli_done(struct cli *cli)
{
    cli->done = 1;
    cli->out.answers = 1;
    cli_signal_hold();
}

int cli_end(struct cli *cli, int rc)
{
    int ended = brc_end(cli->repo, rc >= 0, rc >= 0 ? &cli->err : NULL);

    return rc < 0 ? rc : ended;
}

void cli_close(struct cli *cli)
{
    struct cli_block *block = cli->blocks;

    brc_iter_free(cli->iter);
    brc_array_free(cli->array);
    brc_session_free(cli->session);
    cli_signal_hold(); /* closing may still write, and what it frees is no target */
    brc_free(cli->repo);
    brc_pool_free(cli->pool);
    brc_registry_free(cli->registry);
    cli->iter = NULL;
    cli->array = NULL;
    cli->session = NULL;
    cli->repo = NULL;
    cli->pool = NULL;
    cli->registry = NULL;
    cli->blocks = NULL;
    while (block) {
        struct cli_block *next = block->next;

        free(block);
        block = next;
    }
    cli_args_dispose(&cli->args);
    cli_out_dispose(&cli->out);
}

const char *cli_path(struct cli *cli, const char *operand)
{
    size_t len = strlen(operand);

    while (len > 1 && operand[len - 1] == '/')
        len--;
    if (operand[0] == '/')
        return cli_text(cli, "%.*s", (int)len, operand);
    return cli_text(cli, "/%.*s", (int)len, operand);
}

const char *cli_long_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    return cli_text(cli, "%s", brc_oid_format(hex, id));
}

const char *cli_short_id(struct cli *cli, const brc_oid *id)
{
    char hex[65];

    return cli_text(cli, "%.8s", brc_oid_format(hex, id));
}
