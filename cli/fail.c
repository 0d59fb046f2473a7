/*
 * fail.c - fills in the error of a run.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

int cli_called(struct cli *cli, int rc, const brc_error *err)
{
    if (rc >= 0)
        return rc;
    if (rc == BRC_EINTERRUPT && cli->err.code < 0)
        return cli->err.code;
    cli->err = *err;
    return rc;
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
