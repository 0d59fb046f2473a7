/*
 * print_array.h - an array's elements as text for people and for programs.
 */
#ifndef BRECCIA_CLI_PRINT_ARRAY_H
#define BRECCIA_CLI_PRINT_ARRAY_H

#include "../../src/breccia.h"

struct cli;

/* Bytes of the element at `at`: of variable length, it begins with a count of the rest. */
size_t cli_element_len(const brc_array_info *info, const uint8_t *at);

/* As NumPy prints: in brackets, aligned, and past 1000 elements the first and last
 * three of each axis only. Works on cli->array. */
int cli_print_array(struct cli *cli, const brc_sel *sel);
/* {"shape": ..., "data_type": ..., "data": ...}, part by part. */
int cli_stream_json(struct cli *cli, const brc_sel *sel);
/* The last axis is a line. */
int cli_stream_csv(struct cli *cli, const brc_sel *sel);
/* Canonical bytes. */
/* The bytes of a .npy file. */
int cli_stream_npy(struct cli *cli, const brc_sel *sel);
int cli_stream_raw(struct cli *cli, const brc_sel *sel);

#endif
