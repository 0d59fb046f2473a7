/*
 * out_file.c - a file in place of standard output.
 */
#include "out_file.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is there a pipe, a device or a link of this name? It is written to, not replaced. */
static int is_in_place(const char *name)
{
    struct stat status;

    return lstat(name, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static int put_into_fd(struct cli *cli, int fd, const char *name,
                       int (*put)(struct cli *cli, const void *ctx), const void *ctx)
{
    struct cli_out saved = cli->out;
    struct cli_json doc = cli->doc;
    int rc;

    cli_out_begin(&cli->out, fd, name);
    cli->out.color = 0;
    memset(&cli->doc, 0, sizeof(cli->doc)); /* the file is a document of its own */
    rc = put(cli, ctx);
    if (rc >= 0)
        rc = cli_out_flush(cli);
    cli_out_dispose(&cli->out);
    cli->out = saved;
    cli->doc = doc;
    if (close(fd) != 0 && rc >= 0)
        rc = cli_fail_errno(cli, errno, name);
    return rc;
}

int cli_to_file(struct cli *cli, const char *name,
                int (*put)(struct cli *cli, const void *ctx), const void *ctx)
{
    const char *partial = cli_text(cli, "%s.%ld.partial", name, (long)getpid());
    int fd, rc;

    CLI_TRY(brc_check_file(cli->file, name, &cli->err));
    if (is_in_place(name)) {
        fd = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
        return fd < 0 ? cli_fail_errno(cli, errno, name)
                      : put_into_fd(cli, fd, name, put, ctx);
    }
    fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return cli_fail_errno(cli, errno, name);
    rc = put_into_fd(cli, fd, name, put, ctx);
    if (rc >= 0 && rename(partial, name) != 0)
        rc = cli_fail_errno(cli, errno, name);
    if (rc < 0)
        unlink(partial);
    return rc;
}
