/*
 * What a merge could not settle: a list of conflicts, as table `conflict` has them
 * (docs/FORMAT.md, "Conflicts").
 */
#ifndef BRC_HISTORY_MERGE_LIST_H
#define BRC_HISTORY_MERGE_LIST_H

#include "snapshot.h"

/* ---- merge list -------------------------------- */

/* What a conflict is about, beside pointers to members ("/shape", "/attributes/a"). */
#define BRC_CLASH_NODE ""          /* the node itself: values are entries                */
#define BRC_CLASH_PLACE "place"    /* where it is: values are paths                      */
#define BRC_CLASH_CHUNK "chunk"    /* one of its chunks: values are ids                  */
#define BRC_CLASH_STORAGE "/storage" /* its storage options: values are ids of documents  */

typedef struct brc_clash {
    char *path;                   /* in the result, or where the node would be there      */
    char *member;
    brc_buf key;                  /* of a chunk, as in the array's map                    */
    brc_buf base, ours, theirs;   /* data NULL: it is not there                           */
    int settled;                  /* when read from a file: conflict.state                */
    int64_t draft;                /* of a join: whose child theirs is; else 0             */
} brc_clash;

typedef struct brc_clash_list {
    brc_clash *items;
    size_t n, cap;
} brc_clash_list;

/* A new one, with nothing but path and member. */
BRC_MUST_USE int brc_clash_add(brc_clash_list *list, const char *path, const char *member, brc_clash **out, brc_error *err);
/* Its three values, as entries; kind 0: not there. */
BRC_MUST_USE int brc_clash_entries(brc_clash *clash, const brc_entry *base, const brc_entry *ours, const brc_entry *theirs,
                                   size_t id_len, brc_error *err);
/* As ids; zero: not there. */
BRC_MUST_USE int brc_clash_ids(brc_clash *clash, const brc_oid *base, const brc_oid *ours, const brc_oid *theirs, size_t id_len,
                               brc_error *err);
/* As JSON texts, and as plain texts; NULL: not there. */
BRC_MUST_USE int brc_clash_values(brc_clash *clash, const brc_json *base, const brc_json *ours, const brc_json *theirs,
                                  brc_error *err);
BRC_MUST_USE int brc_clash_texts(brc_clash *clash, const char *base, const char *ours, const char *theirs, brc_error *err);
/* By path, member, key and, in a join, child. Two of one place are one: it is settled by path. So it is where one side moves a node to
 * where it has removed another, and the other side has removed the first and changed the second. */
void brc_clash_list_sort(brc_clash_list *list);
void brc_clash_list_dispose(brc_clash_list *list);

/* ---- merge rows -------------------------------- */

/* Conflicts as rows of an open merge (table `conflict`). */

/* One of them. `in_memory`: its base is in no version (several were merged): of a node or chunk only that
 * it is there is kept. Within a write. */
BRC_MUST_USE int brc_clash_put(brc_store *store, int64_t draft, const brc_clash *clash, int in_memory, brc_error *err);
BRC_MUST_USE int brc_clash_list_put(brc_store *store, int64_t draft, const brc_clash_list *list, int in_memory, brc_error *err);
/* All of a draft are added to the list, which is empty before; `settled` is the row's state. */
BRC_MUST_USE int brc_clash_list_read(brc_clash_list *out, brc_store *store, int64_t draft, brc_error *err);

#endif
