/*
 * memory.h - the memory of a run.
 */
#ifndef BRECCIA_CLI_MEMORY_H
#define BRECCIA_CLI_MEMORY_H

#include "../src/breccia.h"

#include <stddef.h>

struct cli;
struct cli_block;

/* Zeroed; lasts until cli_close(). */
void *cli_alloc(struct cli *cli, size_t n, size_t size);
char *cli_text(struct cli *cli, const char *format, ...) BRC_PRINTF(2, 3);
/* realloc(); the caller frees it. */
void *cli_regrow(void *memory, size_t n, size_t size);
/* Makes room for one more item in a list of `n`; *cap: how many it has room for. */
void *cli_grow(void *list, size_t n, size_t *cap, size_t size);
/* For cli_close(): frees what the first two returned. */
void cli_memory_release(struct cli *cli);

#endif
