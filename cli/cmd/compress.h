/*
 * compress.h - `--compress blosc:zstd:5` as a Zarr v3 codec list.
 */
#ifndef BRECCIA_CLI_COMPRESS_H
#define BRECCIA_CLI_COMPRESS_H

struct cli;

/* --codecs or --compress as a JSON list; *out is NULL if neither is given. `dtype`
 * (NULL: not known yet) decides the serializer and blosc's typesize. */
int cli_codecs_option(struct cli *cli, const char *dtype, const char **out);
/* What --help says about --compress. */
#define CLI_COMPRESS_VALUE "zstd[:LEVEL]|blosc[:CNAME[:LEVEL[:SHUFFLE]]]|gzip[:LEVEL]|none"

#endif
