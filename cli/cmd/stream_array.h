/*
 * stream_array.h - the elements of cli->array for programs, in bounded memory.
 */
#ifndef BRECCIA_CLI_STREAM_ARRAY_H
#define BRECCIA_CLI_STREAM_ARRAY_H

#include "../../src/breccia.h"

struct cli;

/* {"shape": ..., "data_type": ..., "data": ...} */
int cli_stream_json(struct cli *cli, const brc_sel *sel);
/* The last axis is a line. */
int cli_stream_csv(struct cli *cli, const brc_sel *sel);
/* The bytes of a .npy file. */
int cli_stream_npy(struct cli *cli, const brc_sel *sel);
/* Canonical bytes. */
int cli_stream_raw(struct cli *cli, const brc_sel *sel);
/* Writes the selection with canonical bytes from standard input, which must end with
 * them. */
int cli_stream_input(struct cli *cli, const brc_sel *sel);

/* Bytes of the element at `at`: of variable length, it begins with a count of the rest. */
size_t cli_element_len(const brc_array_info *info, const uint8_t *at);
/* An error that begins with `what` where elements in memory are not canonical bytes. */
int cli_check_raw(struct cli *cli, const char *what);

#endif
