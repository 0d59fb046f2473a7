/*
 * context.c - the open repository of one run.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Refuses "breccia log x.brc >> x.brc", which would overwrite the repository. */
static int check_output_elsewhere(struct cli *cli)
{
    struct stat file, output;

    if (stat(cli->file, &file) != 0)
        return BRC_OK;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &output) == 0 && output.st_dev == file.st_dev &&
            output.st_ino == file.st_ino) {
            cli->out.hold = 1; /* so that no output appears */
            if (fd == STDERR_FILENO && !freopen("/dev/null", "w", stderr))
                _exit(1);
            return cli_fail(cli, BRC_EINVAL,
                            "standard %s goes to %s, the repository: send it elsewhere",
                            fd == STDOUT_FILENO ? "output" : "error", cli->file);
        }
    return BRC_OK;
}

int cli_open(struct cli *cli, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int rc;

    CLI_TRY(cli_load_plugins(cli)); /* first: their errors do not name FILE */
    cli->file = cli_operand(cli, 0);
    if (cli->file[0] == '\0')
        return cli_usage(cli, "FILE is empty: give the name of the repository");
    CLI_TRY(check_output_elsewhere(cli));
    if (cli_has(cli, "no-recover"))
        flags |= BRC_OPEN_NO_RECOVER;
    if ((flags & BRC_OPEN_CREATE) && (flags & BRC_OPEN_NO_RECOVER))
        return cli_usage(cli, "--no-recover needs a file that exists");
    if (cli->command->flags & CLI_POOL)
        CLI_TRY(brc_pool_new(&cli->pool, cli->threads, &cli->err));
    cli->changes = !(flags & BRC_OPEN_READONLY);
    opts.flags = flags;
    opts.wait_ms = cli->wait_ms;
    opts.max_nodes = cli->max_nodes;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
    opts.libexec = cli_libexec(cli);
    cli_progress_begin(cli);
    if (cli->progress.enabled) { /* otherwise the library need not report progress */
        opts.progress = cli_progress_step;
        opts.progress_ctx = cli;
    }
    if (flags & BRC_OPEN_CREATE)
        cli_signal_hold();
    rc = brc_open(&cli->repo, cli->file, &opts, &cli->err);
    cli_signal_target(cli->repo);
    return rc;
}

int cli_open_silently(struct cli *cli)
{
    const char *at = cli_value(cli, "at");

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    return brc_session_open(&cli->session, cli->repo, at, at ? BRC_SESSION_AT : BRC_SESSION_VIEW,
                            &cli->err);
}

int cli_stale_draft(struct cli *cli, const char *branch, int64_t *id)
{
    const uint32_t flags = BRC_DRAFT_OWNED | BRC_DRAFT_MERGING | BRC_DRAFT_STALE;
    brc_iter *it;
    const brc_draft *draft;
    int rc;

    *id = 0;
    CLI_TRY(brc_drafts(&it, cli->repo, &cli->err));
    while ((rc = brc_drafts_next(it, &draft, &cli->err)) > 0)
        if ((draft->flags & flags) == BRC_DRAFT_STALE && strcmp(draft->branch, branch) == 0)
            *id = draft->id;
    brc_iter_free(it);
    return rc;
}

int cli_find_moved(struct cli *cli, const char **branch)
{
    brc_session_info info = BRC_SESSION_INFO_INIT;
    int64_t draft = 0;

    if (cli->session)
        CLI_TRY(brc_session_stat(&info, cli->session, &cli->err));
    CLI_TRY(cli_branch(cli, branch));
    if (!cli->session || (info.mode == BRC_SESSION_VIEW && info.draft != 0))
        CLI_TRY(cli_stale_draft(cli, *branch, &draft));
    cli->moved = draft != 0;
    return BRC_OK;
}

const char *cli_moved_words(struct cli *cli, const char *branch)
{
    branch = cli_escaped(cli, branch);
    return cli_text(cli, "%s has moved since its uncommitted changes began, and its new version is "
                         "not shown: '--at %s' shows it, 'breccia commit' merges the changes "
                         "onto it",
                    branch, branch);
}

int cli_open_view(struct cli *cli)
{
    const char *branch;

    CLI_TRY(cli_open_silently(cli));
    CLI_TRY(cli_find_moved(cli, &branch));
    if (cli->moved && !cli->quiet)
        fprintf(stderr, "breccia: note: %s\n", cli_moved_words(cli, branch));
    return BRC_OK;
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

int cli_select(struct cli *cli, const char *slice, brc_sel *out)
{
    if (slice)
        return brc_sel_parse(out, cli->array, slice, &cli->err);
    brc_sel_all(out, cli->array);
    return BRC_OK;
}

int cli_node_kind(struct cli *cli, const char *path, int *kind)
{
    CLI_TRY(brc_node_kind(kind, cli->session, path, &cli->err));
    if (*kind == 0)
        return cli_fail(cli, BRC_ENOTFOUND, "%s: there is no node %s", cli->file, path);
    return BRC_OK;
}

int cli_branch(struct cli *cli, const char **out)
{
    CLI_TRY(brc_head(out, cli->repo, &cli->err));
    *out = cli_text(cli, "%s", *out);
    return BRC_OK;
}

void cli_done(struct cli *cli)
{
    cli->done = 1;
    cli->out.answers = 1;
    cli_signal_hold();
}

int cli_end(struct cli *cli, int rc)
{
    int ended = brc_end(cli->repo, rc >= 0 ? BRC_END_KEEP : 0, rc >= 0 ? &cli->err : NULL);

    return rc < 0 ? rc : ended;
}

int cli_end_bulk(struct cli *cli, int rc)
{
    int ended = brc_bulk_end(cli->session, rc >= 0 ? BRC_END_KEEP : 0, rc >= 0 ? &cli->err : NULL);

    return rc < 0 ? rc : ended;
}

void cli_close(struct cli *cli)
{
    brc_iter_free(cli->iter);
    brc_array_free(cli->array);
    brc_session_free(cli->session);
    cli_signal_hold(); /* closing may still write, and frees the signal's target */
    brc_free(cli->repo);
    brc_pool_free(cli->pool);
    brc_registry_free(cli->registry);
    cli->iter = NULL;
    cli->array = NULL;
    cli->session = NULL;
    cli->repo = NULL;
    cli->pool = NULL;
    cli->registry = NULL;
    cli_args_dispose(&cli->args);
    cli_out_dispose(&cli->out);
    cli_memory_release(cli, NULL);
}
