/*
 * memory.c - memory that lasts as long as the run. If there is none left, the process
 * ends: that undoes an open transaction, so nothing is half done.
 */
#include "cli.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct cli_block {
    struct cli_block *next;
    max_align_t memory[];
};

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

void *cli_grow(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = n < 16 ? 16 : 2 * n;
    return cli_regrow(list, *cap, size);
}

void cli_memory_release(struct cli *cli)
{
    struct cli_block *block = cli->blocks;

    cli->blocks = NULL;
    while (block) {
        struct cli_block *next = block->next;

        free(block);
        block = next;
    }
}
