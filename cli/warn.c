/*
 * warn.c - prints warnings.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

void cli_warn(struct cli *cli, const brc_buf *lines)
{
    const char *line = (const char *)lines->data, *end = line ? line + lines->len : NULL;

    if (cli->quiet || lines->len == 0)
        return;
    cli_progress_end(cli);
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);

        fprintf(stderr, "breccia: warning: %s\n",
                cli_escaped(cli, cli_text(cli, "%.*s", (int)len, line)));
        line += len + (stop != NULL);
    }
}
