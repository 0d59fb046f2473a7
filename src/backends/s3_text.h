/*
 * The texts that the backend s3 reads and writes: its configuration, the names of its objects, and the
 * answers of servers, which may be anything.
 */
#ifndef BRC_BACKENDS_S3_TEXT_H
#define BRC_BACKENDS_S3_TEXT_H

#include "backends.h"

#define BRC_S3_HEX 32
/* REPOSITORY/WRITER/PACK, each of 32 hexadecimal digits. */
#define BRC_S3_PLACE_LEN (3 * BRC_S3_HEX + 2)
#define BRC_S3_KEY_SIZE 400

typedef struct brc_s3_config {
    char endpoint[272]; /* scheme://host or scheme://host:port, in lower case        */
    char bucket[64];
    char prefix[256];   /* without "/" at the ends; "": none                         */
    char region[32];
    int path_style;     /* the bucket is in the path, not in the name of the host    */
    int is_standard;    /* the endpoint is Amazon's own for the region               */
    int idle_s;         /* nothing moves for so long: the attempt at a request has failed */
    uint64_t pack_bytes;
} brc_s3_config;

/* Reads a configuration, and fills in what it leaves out. BRC_EINVAL names the option at fault. */
BRC_MUST_USE int brc_s3_config_read(brc_s3_config *out, const brc_json *config, brc_error *err);
/* Appends the configuration with all options. */
BRC_MUST_USE int brc_s3_config_write(const brc_s3_config *config, brc_buf *out, brc_error *err);

/* Writes the URL of an object, or of the bucket if `key` is "". `out` has room for all of them. */
#define BRC_S3_URL_SIZE 2400
void brc_s3_url(char out[BRC_S3_URL_SIZE], const brc_s3_config *config, const char *key, const char *query);

/* Returns whether a place has the form of those of this backend, in the repository of this id. */
int brc_s3_is_place(const char *place, const char *id);
/* Writes the name of the place's object. */
void brc_s3_key(char out[BRC_S3_KEY_SIZE], const brc_s3_config *config, const char *place);

/* Writes the text of the first element <NAME> of an XML document, if it is of letters, digits, "." and "-" and has
 * room; else "". */
void brc_s3_element(char *out, size_t size, const char *name, const char *xml, size_t len);

/* A page of a listing: calls each() for all objects whose name is a place below `folder` (PREFIX/ID/WRITER/). Stores
 * whether there are more pages, and the place at which the next one goes on. Fails with BRC_EIO if the page is
 * damaged or leads nowhere. */
BRC_MUST_USE int brc_s3_page(const char *xml, size_t len, const char *folder, const char *id,
                             int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to, int *more,
                             char last[BRC_S3_PLACE_LEN + 1], brc_error *err);

/* Objects of one pack that are read in one request: near each other, and not too much at once, so that several
 * requests share a long range. */
#define BRC_S3_GAP ((uint64_t)64 << 10)
#define BRC_S3_JOINED ((uint64_t)1 << 20)
/* Returns how many of the n objects, which are sorted by place and offset, are read with the first one, and stores
 * the end of what is read. `gap` and `range`: other limits than those; 0: those. */
size_t brc_s3_join(size_t n, brc_stored *const *items, uint64_t gap, uint64_t range, uint64_t *end);

#endif
