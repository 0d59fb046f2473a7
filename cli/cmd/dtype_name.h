/*
 * dtype_name.h - names of data types, as Zarr and NumPy have them.
 */
#ifndef BRECCIA_CLI_DTYPE_NAME_H
#define BRECCIA_CLI_DTYPE_NAME_H

struct cli;

/* The value of option --dtype as the library takes it. NumPy's names become Zarr's; a name that nobody knows is
 * an error that says which were meant. Plug-ins are loaded. */
int cli_dtype_option(struct cli *cli, const char **dtype);

#endif
