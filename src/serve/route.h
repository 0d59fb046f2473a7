/*
 * Reads what a request asks for. All of it comes from strangers; these functions only compute.
 *
 *   /TOKEN/                              the page
 *   /TOKEN/api/WHAT                      the page's data
 *   /TOKEN/REV/NAME.zarr/KEY             a key of Zarr v3
 *   /TOKEN/v2/REV/NAME.zarr/KEY          the same in the form of Zarr v2
 *   /TOKEN/REV/                          the names that are served
 *
 * The path is split at "/" first, then each segment is percent-decoded: a "/" in REV is written "%2F",
 * and in no other segment may there be one. NAME may have folders in front. A path that ends with "/" is
 * a directory's. "v2" is REV if NAME.zarr follows it at once, and so is "api".
 */
#ifndef BRC_SERVE_ROUTE_H
#define BRC_SERVE_ROUTE_H

#include "answer.h"

enum { SERVE_MOST_URI = 8192, SERVE_MOST_PAIRS = 64 };

enum {
    SERVE_NOTHING,   /* there is nothing under this path, or the token is wrong   */
    SERVE_IS_PAGE,
    SERVE_IS_API,
    SERVE_IS_NAMES,  /* the directory above NAME.zarr                             */
    SERVE_IS_KEY,
    SERVE_IS_UNSLASHED /* a directory's path without the "/" at its end           */
};

typedef struct serve_target {
    int what;
    int format;       /* of Zarr: 2 or 3                                          */
    const char *rev;  /* NULL: none                                               */
    const char *name; /* with its folders, "fold/data"; of SERVE_IS_NAMES the folders alone, "fold" or ""  */
    const char *key;  /* "" or ending in "/": a directory                         */
    const char *api;
    serve_query query;
    const char *names[SERVE_MOST_PAIRS], *values[SERVE_MOST_PAIRS];
    char *text;       /* what these point into                                    */
} serve_target;

/* Reads a request's target, "/TOKEN/main/a.zarr/zarr.json?x=1", as it came. Fails with BRC_EINVAL if it is not valid
 * text, with BRC_ELIMIT if it is too long; otherwise out->what says what it is. Release with serve_target_dispose(). */
BRC_MUST_USE int serve_target_read(serve_target *out, const char *uri, const char *token, brc_error *err);
void serve_target_dispose(serve_target *target);

/* Tells whether a client that gets "not found" for the key takes that for "no such node". Chunks that are not found are
 * taken for fill value. */
int serve_is_document(const char *key);

/* Reads the header Range. Returns 1 with one range, or 0 if there is none that counts: the whole is sent then, as for
 * several ranges, other units and what cannot be understood. `text` may be NULL. */
int serve_range_read(brc_key_range *out, const char *text);
/* Tells whether the header If-None-Match (or If-Range, `strong`) names the etag, which has no quotes. */
int serve_etag_matches(const char *text, const char *etag, int strong);
/* Tells whether the header Host names this machine's loopback or one of the n hosts, whatever the port. */
int serve_host_is_known(const char *text, const char *const *hosts, size_t n);
/* Appends text with everything percent-encoded that is not unreserved in a URL; "/" stays if `slashes`. */
BRC_MUST_USE int serve_url_escape(brc_buf *out, const char *text, int slashes, brc_error *err);
/* Appends text for HTML and XML: & < > " and ' are escaped, and control characters are replaced. */
BRC_MUST_USE int serve_html_escape(brc_buf *out, const char *text, brc_error *err);

#endif
