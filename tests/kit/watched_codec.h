/*
 * A codec that tells the test of what it encodes and decodes. It appends a byte, so that what is
 * stored differs from what it stands for.
 */
#ifndef BRC_TESTS_WATCHED_CODEC_H
#define BRC_TESTS_WATCHED_CODEC_H

#include "../../src/breccia_codec.h"

/* Called, where not NULL, on the thread that encodes or decodes, with the bytes that are not encoded. */
typedef struct watcher {
    const char *name; /* a URI */
    void (*encodes)(brc_span bytes);
    void (*decodes)(brc_span bytes);
} watcher;

/* Built-ins and this; the watcher must outlive it. */
brc_registry *watched_registry(const watcher *w, brc_error *err);

#endif
