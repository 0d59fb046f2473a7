/*
 * source.c - another file whose arrays a command reads.
 */
#include "source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli.h"
#include "../credentials.h"

static int is_repository(const char *name)
{
    static const char magic[] = "SQLite format 3";
    char begin[sizeof(magic)] = "";
    FILE *file = fopen(name, "rb");
    size_t n = file ? fread(begin, 1, sizeof(begin), file) : 0;

    if (file)
        fclose(file);
    return n == sizeof(begin) && memcmp(begin, magic, sizeof(magic)) == 0;
}

static int open_repository(struct cli *cli, const char *name, uint32_t flags, breccia **out)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;

    opts.flags = flags;
    opts.wait_ms = cli->wait_ms;
    opts.pool = cli->pool;
    opts.registry = cli->registry;
    opts.libexec = cli_libexec(cli);
    opts.credentials = cli_credentials;
    if (cli->progress.enabled) {
        opts.progress = cli_progress_step;
        opts.progress_ctx = cli;
    }
    return brc_open(out, name, &opts, &cli->err);
}

static int folder_apart(struct cli *cli, const char **out)
{
    const char *under = getenv("TMPDIR");
    const char *pattern = cli_text(cli, "%s/breccia-XXXXXX", under && under[0] ? under : "/tmp");
    char *name = cli_alloc(cli, strlen(pattern) + 1, 1);

    memcpy(name, pattern, strlen(pattern));
    if (!mkdtemp(name))
        return cli_fail_errno(cli, errno, name);
    *out = name;
    return BRC_OK;
}

/* Imports the file into a repository of its own. What cannot be kept is left out. */
static int import_apart(struct cli *cli, struct cli_source *out)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    int rc;

    CLI_TRY(folder_apart(cli, &out->folder));
    CLI_TRY(open_repository(cli, cli_text(cli, "%s/source.brc", out->folder), BRC_OPEN_CREATE,
                            &out->repo));
    CLI_TRY(brc_session_open(&out->session, out->repo, NULL, BRC_SESSION_WRITE, &cli->err));
    opts.flags = BRC_XFER_SKIP_UNSUPPORTED;
    out->root = "/source";
    cli_signal_target(out->repo);
    rc = brc_import(out->session, out->name, out->root, &opts, &cli->err);
    cli_signal_target(cli->repo);
    return rc;
}

int cli_source_open(struct cli *cli, const char *name, struct cli_source *out)
{
    *out = (struct cli_source){ .name = name, .root = "/" };
    CLI_TRY(brc_check_file(cli->file, name, &cli->err));
    if (!is_repository(name))
        return import_apart(cli, out);
    CLI_TRY(open_repository(cli, name, BRC_OPEN_READONLY, &out->repo));
    return brc_session_open(&out->session, out->repo, "HEAD", BRC_SESSION_AT, &cli->err);
}

void cli_source_close(struct cli *cli, struct cli_source *source)
{
    DIR *folder;

    brc_session_free(source->session);
    brc_free(source->repo);
    if (!source->folder)
        return;
    folder = opendir(source->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(cli_text(cli, "%s/%s", source->folder, entry->d_name));
    if (folder)
        closedir(folder);
    rmdir(source->folder);
}
