/*
 * write_decoded.h - write --decode: values become the numbers that are stored.
 */
#ifndef BRC_CLI_CMD_WRITE_DECODED_H
#define BRC_CLI_CMD_WRITE_DECODED_H

#include "../../src/breccia.h"

struct cli;
struct cli_decoder;

/* Sets *out to what says how values of cli->array are stored; it lasts as long as `cli`. */
int cli_decoder_to_write(struct cli *cli, const struct cli_decoder **out);
/* Appends the stored element of a value, such as "280.5" or "2020-05-01", to cli->array's elements: sets *out to it,
 * which lasts as long as `cli`. */
int cli_encoded_element(struct cli *cli, const char *text, const void **out);
/* Fills the selection of cli->array with the values of a .npy file, or of standard input if `from` is "-": there they
 * have the data type that `read --decode --format raw` gives them. */
int cli_load_decoded(struct cli *cli, const brc_sel *sel, const char *from);
/* Prints a note if the elements of cli->array are packed. */
int cli_note_packed(struct cli *cli);

#endif
