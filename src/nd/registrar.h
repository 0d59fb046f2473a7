/*
 * Adding to a registry: who does, and until when. What is added keeps where it came from.
 */
#ifndef BRC_ND_REGISTRAR_H
#define BRC_ND_REGISTRAR_H

#include <stdatomic.h>

#include "../base/error.h"

/* Of a registry: what holds now for everything that is added to it. */
typedef struct brc_registrar {
    int core;            /* it is breccia's own                                  */
    size_t plugin;       /* number of the plug-in whose entry point runs, from 1; 0: none */
    const char *loading; /* that plug-in's path; NULL: none                      */
    atomic_int frozen;   /* the registry is in use: nothing is added any more    */
} brc_registrar;

/* Of an entry: where it came from. */
typedef struct brc_origin {
    int core;
    size_t plugin;
    char *owner; /* who registered it, in its own memory; NULL: it did not say  */
} brc_origin;

/* May something of this name be added? `what` is what it is: "codec". */
BRC_MUST_USE int brc_registrar_admit(const brc_registrar *by, const char *what, const char *name, brc_error *err);
/* `owner`: what the added table says of itself, or NULL. */
BRC_MUST_USE int brc_origin_make(brc_origin *out, const brc_registrar *by, const char *owner, brc_error *err);
void brc_origin_dispose(brc_origin *origin);
/* For lists: "breccia" where it is its own. */
const char *brc_origin_name(const brc_origin *origin);
/* For sentences: "breccia itself". */
const char *brc_origin_words(const brc_origin *origin);

/* A caller built against an older header has a shorter table: what it lacks is zero. What
 * a newer one adds is not known here. */
void brc_table_copy(void *dst, size_t dst_size, const void *src, size_t src_size);

#endif
