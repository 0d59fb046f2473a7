/*
 * Conflicts of a merge, as table `conflict` stores them (docs/FORMAT.md, "Conflicts").
 */
#ifndef BRC_HISTORY_MERGE_LIST_H
#define BRC_HISTORY_MERGE_LIST_H

#include "snapshot.h"

/* ---- merge list -------------------------------- */

/* Subjects of conflicts, besides pointers to members ("/shape", "/attributes/a"). */
#define BRC_CLASH_NODE ""          /* the node itself: values are entries                */
#define BRC_CLASH_PLACE "place"    /* its place: values are paths                        */
#define BRC_CLASH_CHUNK "chunk"    /* one of its chunks: values are ids                  */
#define BRC_CLASH_STORAGE "/storage" /* its storage options: values are ids of documents  */

typedef struct brc_clash {
    char *path;                   /* the node's path in the result, or the path that it would have there */
    char *member;
    brc_buf key;                  /* the key of a chunk, as in the array's map            */
    brc_buf base, ours, theirs;   /* data NULL: absent                                    */
    int settled;                  /* of a conflict read from a file: conflict.state       */
    int64_t draft;                /* of a join: the child whose change is theirs; else 0  */
} brc_clash;

typedef struct brc_clash_list {
    brc_clash *items;
    size_t n, cap;
} brc_clash_list;

/* Adds a conflict with only a path and a member. */
BRC_MUST_USE int brc_clash_add(brc_clash_list *list, const char *path, const char *member, brc_clash **out, brc_error *err);
/* Sets its three values to entries; kind 0: absent. */
BRC_MUST_USE int brc_clash_entries(brc_clash *clash, const brc_entry *base, const brc_entry *ours, const brc_entry *theirs,
                                   size_t id_len, brc_error *err);
/* Sets its three values to ids; zero: absent. */
BRC_MUST_USE int brc_clash_ids(brc_clash *clash, const brc_oid *base, const brc_oid *ours, const brc_oid *theirs, size_t id_len,
                               brc_error *err);
/* Set its three values to JSON texts, and to plain texts; NULL: absent. */
BRC_MUST_USE int brc_clash_values(brc_clash *clash, const brc_json *base, const brc_json *ours, const brc_json *theirs,
                                  brc_error *err);
BRC_MUST_USE int brc_clash_texts(brc_clash *clash, const char *base, const char *ours, const char *theirs, brc_error *err);
/* Sorts by path, member, key and, in a join, child. Two conflicts with the same place become one,
 * because conflicts are settled by path. That happens if one side moves a node to where it has
 * removed another node, and the other side has removed the first node and changed the second. */
void brc_clash_list_sort(brc_clash_list *list);
void brc_clash_list_dispose(brc_clash_list *list);

/* ---- merge rows -------------------------------- */

/* Conflicts as rows of an open merge (table `conflict`). */

/* Writes one conflict, within a write. With `in_memory`, its base is in no version because several
 * bases were merged: of a base's node or chunk, only its existence is recorded. */
BRC_MUST_USE int brc_clash_put(brc_store *store, int64_t draft, const brc_clash *clash, int in_memory, brc_error *err);
BRC_MUST_USE int brc_clash_list_put(brc_store *store, int64_t draft, const brc_clash_list *list, int in_memory, brc_error *err);
/* Adds all conflicts of a draft to the list, which must be empty; `settled` is the row's state. */
BRC_MUST_USE int brc_clash_list_read(brc_clash_list *out, brc_store *store, int64_t draft, brc_error *err);

#endif
