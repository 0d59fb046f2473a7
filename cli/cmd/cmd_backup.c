/*
 * cmd_backup.c - backup.
 */
#include "../cli.h"
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_option backup_options[] = {
    CLI_OPTIONS_END
};

static void put_backup(struct cli *cli, const brc_backup_report *report, const char *dest)
{
    const int incremental = (report->flags & BRC_BACKUP_INCREMENTAL) != 0;

    cli_answer(cli,
               CLI_FIELDS({ "dest", CLI_OF(dest) }, { "incremental", CLI_OF(incremental) },
                          { "bytes_copied", CLI_OF(report->bytes_copied) },
                          { "objects_copied", CLI_OF(report->objects_copied) },
                          { "objects_checked", CLI_OF(report->objects_checked) },
                          { "file_bytes", CLI_OF(report->file_bytes) }),
               "%s %s: %s copied, %s checked", incremental ? "updated" : "made", dest,
               cli_count(cli, report->objects_copied, "object"),
               cli_count(cli, report->objects_checked, "object"));
}

static int put_whole_file(struct cli *cli, const char *name)
{
    enum { PIECE = 1 << 20 };
    char *piece = cli_alloc(cli, PIECE, 1);
    ssize_t n = 0;
    int rc = BRC_OK, fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return cli_fail_errno(cli, errno, name);
    while (rc == BRC_OK && (n = read(fd, piece, PIECE)) > 0) {
        cli_put(cli, piece, (size_t)n);
        rc = cli_out_check(cli);
        if (rc == BRC_OK && cli_signal() != 0)
            rc = cli_fail(cli, BRC_EINTERRUPT, "stopped on request");
    }
    if (rc == BRC_OK && n < 0)
        rc = cli_fail_errno(cli, errno, name);
    close(fd);
    return rc;
}

/* Makes the copy in a folder of its own first, since SQLite does not write a file from front to
 * back. */
static int backup_to_output(struct cli *cli)
{
    const char *tmp = getenv("TMPDIR");
    char *folder = cli_text(cli, "%s/breccia-backup-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const char *file;
    int rc;

    if (isatty(STDOUT_FILENO))
        return cli_usage(cli, "a backup is not text: send standard output to a file or a pipe");
    if (cli->json)
        return cli_usage(cli, "--json and DEST '-' exclude each other: both are standard output");
    if (!mkdtemp(folder))
        return cli_fail_errno(cli, errno, folder);
    file = cli_text(cli, "%s/backup.brc", folder);
    rc = brc_backup(NULL, cli->repo, file, &cli->err);
    if (rc >= 0)
        rc = put_whole_file(cli, file);
    unlink(file);
    unlink(cli_text(cli, "%s-journal", file));
    rmdir(folder);
    return rc;
}

static int run_backup(struct cli *cli)
{
    const char *dest = cli_operand(cli, 1);
    brc_backup_report report = BRC_BACKUP_REPORT_INIT;

    CLI_TRY(cli_open(cli, BRC_OPEN_READONLY));
    if (strcmp(dest, "-") == 0)
        return backup_to_output(cli);
    CLI_TRY(brc_backup(&report, cli->repo, dest, &cli->err));
    cli_done(cli);
    put_backup(cli, &report, dest);
    return BRC_OK;
}

const struct cli_command cli_command_backup = {
    .name = "backup",
    .group = "Keeping",
    .summary = "copy the file while others write it",
    .usage = "FILE DEST",
    .details = "Copies one state of FILE to DEST, with uncommitted changes, while others read\n"
               "and write FILE. Everything new in DEST is read back and decoded. 'cp' is a safe\n"
               "copy only while nobody writes. Where DEST is an older backup of FILE, only the\n"
               "new objects are copied. If the command is stopped, the older backup stays; the\n"
               "same command continues a new backup that is not finished. DEST can be opened\n"
               "and read like any repository; once DEST is changed, it is not a backup any\n"
               "more.\n"
               "\n"
               "With DEST '-', the backup goes to standard output; the copy is made in $TMPDIR\n"
               "(/tmp) first. Chunks outside of FILE ('backend') are not copied.",
    .examples = "breccia backup climate.brc /media/disk/climate.brc\n"
                "breccia backup climate.brc - | ssh host 'cat > climate.brc'",
    .options = backup_options,
    .min_operands = 2,
    .max_operands = 2,
    .flags = 0,
    .run = run_backup,
};
