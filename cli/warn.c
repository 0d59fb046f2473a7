/*
 * warn.c - prints warnings.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Moves `from` behind its line, whose text is kept as long as `cli`. */
static const char *next_line(struct cli *cli, const brc_buf *lines, size_t *from, size_t to)
{
    const char *line = (const char *)lines->data + *from;
    const char *stop = memchr(line, '\n', to - *from);
    size_t len = stop ? (size_t)(stop - line) : to - *from;

    *from += len + (stop != NULL);
    return cli_text(cli, "%.*s", (int)len, line);
}

void cli_warn(struct cli *cli, const brc_buf *lines)
{
    if (cli->quiet || lines->len == 0)
        return;
    cli_progress_end(cli);
    for (size_t from = 0; from < lines->len;)
        fprintf(stderr, "breccia: warning: %s\n",
                cli_escaped(cli, next_line(cli, lines, &from, lines->len)));
}

void cli_warnings_json(struct cli *cli, const brc_buf *lines, size_t from, size_t to)
{
    cli_json_key(cli, "warnings");
    cli_json_open(cli, '[');
    while (from < to)
        cli_json_string(cli, next_line(cli, lines, &from, to));
    cli_json_close(cli, '[');
}
