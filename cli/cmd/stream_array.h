/*
 * stream_array.h - the elements of cli->array for programs, in bounded memory.
 */
#ifndef BRECCIA_CLI_STREAM_ARRAY_H
#define BRECCIA_CLI_STREAM_ARRAY_H

#include "../../src/breccia.h"

struct cli;

/* {"shape": ..., "data_type": ..., "data": ...} */
int cli_stream_json(struct cli *cli, const brc_sel *sel);
/* One line per row of the last axis. */
int cli_stream_csv(struct cli *cli, const brc_sel *sel);
/* The bytes of a .npy file. */
int cli_stream_npy(struct cli *cli, const brc_sel *sel);
/* Canonical bytes. */
int cli_stream_raw(struct cli *cli, const brc_sel *sel);
/* Fills the selection from standard input, which must be its canonical bytes and nothing
 * more. */
int cli_stream_input(struct cli *cli, const brc_sel *sel);

/* The bytes of the element at `at`; one of variable length begins with a count of the
 * rest. */
size_t cli_element_len(const brc_array_info *info, const uint8_t *at);
/* An error about `what` if elements in memory are not canonical bytes here. */
int cli_check_raw(struct cli *cli, const char *what);

#endif
