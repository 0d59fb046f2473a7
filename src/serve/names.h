/* A list of names, such as those in a directory. */
#ifndef BRC_SERVE_NAMES_H
#define BRC_SERVE_NAMES_H

#include "../breccia.h"

/* The most names of one list. */
enum { SERVE_NAMES_MOST = 1000000 };

typedef struct serve_names {
    char **names;
    size_t n, cap;
} serve_names;

/* Adds a copy of `len` bytes of text with `end` behind it. BRC_ELIMIT: the list is full. */
BRC_MUST_USE int serve_names_add(serve_names *list, const char *name, size_t len, const char *end, brc_error *err);
/* Sorts by bytes, and drops names that are there twice. */
void serve_names_sort(serve_names *list);
void serve_names_dispose(serve_names *list);

#endif
