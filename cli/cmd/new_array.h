/*
 * new_array.h - names of data types, as Zarr and NumPy have them.
 */
#ifndef BRC_CLI_CMD_NEW_ARRAY_H
#define BRC_CLI_CMD_NEW_ARRAY_H

/* ---- dtype name -------------------------------- */

struct cli;

/* The value of option --dtype as the library takes it. NumPy's names become Zarr's; a name that nobody knows is
 * an error that says which were meant. Plug-ins are loaded. */
int cli_dtype_option(struct cli *cli, const char **dtype);

/* ---- compress -------------------------------- */

/*
 * new_array.h - `--compress blosc:zstd:5` as a Zarr v3 codec list.
 */

struct cli;

/* --codecs or --compress as a JSON list; *out is NULL if neither is given. `dtype`
 * (NULL: not known yet) decides the serializer and blosc's typesize. */
int cli_codecs_option(struct cli *cli, const char *dtype, const char **out);
/* The text of --help about --compress. */
#define CLI_COMPRESS_VALUE "zstd[:LEVEL]|blosc[:CNAME[:LEVEL[:SHUFFLE]]]|gzip[:LEVEL]|none"

#endif
