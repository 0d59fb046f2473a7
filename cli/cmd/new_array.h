/*
 * new_array.h - options for the data type and the codecs of a new array.
 */
#ifndef BRC_CLI_CMD_NEW_ARRAY_H
#define BRC_CLI_CMD_NEW_ARRAY_H

/* ---- dtype name -------------------------------- */

struct cli;

/* Sets *dtype to the value of --dtype as the library takes it; NumPy's names become Zarr's. The error for an unknown
 * name lists similar names. Loads the plug-ins. */
int cli_dtype_option(struct cli *cli, const char **dtype);

/* Returns a data type for people: "datetime64[s]", "U5", "{a: int32, b: float64}", or its name. */
const char *cli_dtype_words(struct cli *cli, const char *dtype);

/* ---- `--compress blosc:zstd:5` as a Zarr v3 codec list ---- */

/* Sets *out to --codecs or --compress as a JSON list, or to NULL if neither is given. `dtype` decides the serializer and
 * blosc's typesize; NULL is a type that is not known yet. */
int cli_codecs_option(struct cli *cli, const char *dtype, const char **out);
/* Sets *out to the codec of --compress as JSON, to "" for none, or to NULL without the option. */
int cli_compress_option(struct cli *cli, const char *dtype, const char **out);
/* The value of --compress in the help. */
#define CLI_COMPRESS_VALUE "zstd[:LEVEL]|blosc[:CNAME[:LEVEL[:SHUFFLE]]]|gzip[:LEVEL]|none"

#endif
