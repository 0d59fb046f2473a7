/*
 * api_node.h - nodes of a version: lists of them, the names of an array's dimensions, the levels of a picture in several sizes.
 */
#ifndef BRC_SERVE_API_NODE_H
#define BRC_SERVE_API_NODE_H

#include "api.h"

enum { SERVE_LEVELS_MOST = 32 };

typedef struct serve_entry {
    char *path;
    char *dtype; /* as brc_array_info has it; NULL: a group                     */
    int kind, ndim;
    uint64_t shape[BRC_MAX_NDIM];
    uint64_t chunks, stored; /* of an array                                     */
    double elements;
    brc_oid last;      /* the commit that changed it last; zero: not known      */
    int64_t last_time;
} serve_entry;

typedef struct serve_entries {
    serve_entry *nodes;
    size_t n;
    int more; /* there are more nodes than were asked for                       */
} serve_entries;

/* Reads the nodes at and under `path`, at most `most` and down to a depth, those of a group before their own. */
int serve_entries_read(serve_entries *out, serve_call *call, const char *path, uint64_t depth, uint64_t most);
void serve_entries_free(serve_entries *entries);
/* Finds the commits that changed them last, among the newest ones and while time is left. */
int serve_entries_date(serve_entries *entries, serve_call *call);
/* Returns the array that shows most: the largest of numbers with two axes or more, else of any; or NULL. */
const serve_entry *serve_entries_best(const serve_entries *entries);

/* Reads a node's document. *names is its list of the names of dimensions, or NULL. */
int serve_document(brc_json **out, const brc_json **names, serve_call *call, const char *path);

/* The levels of OME-Zarr's "multiscales" of a group, the finest first. */
typedef struct serve_levels {
    char *paths[SERVE_LEVELS_MOST];
    int n;
} serve_levels;
int serve_levels_read(serve_levels *out, serve_call *call, const char *group);
void serve_levels_free(serve_levels *levels);

#endif
