/*
 * Checking a repository: every object against its checksum, its id and its guard,
 * and every ref, commit, map and uncommitted change for what it points to.
 */
#ifndef BRC_CARE_FSCK_H
#define BRC_CARE_FSCK_H

#include "../base/hash.h"
#include "../history/closure.h"
#include "../work/session.h"

/* ---- what was found (fsck_tree.c) -------------------------------- */

typedef struct brc_fault {
    brc_oid id;
    int kind;      /* BRC_KIND_*, or one of these; 0: of the file itself         */
    int missing;
    char *message;
    void *used_by; /* char *[]                                                   */
    size_t nused_by, used_by_cap;
} brc_fault;
enum { BRC_FAULT_REF = BRC_KIND_MAX + 1 };
/* At most this many users of a fault are reported. */
#define BRC_FAULT_USERS 64

typedef struct brc_faults {
    void *items; /* brc_fault[] */
    size_t n, cap;
    brc_id_table by_id; /* size_t: where in items; the first of each id */
} brc_faults;
#define BRC_FAULTS_INIT { 0, 0, 0, BRC_ID_TABLE_INIT(sizeof(size_t)) }

void brc_faults_dispose(brc_faults *faults);
/* NULL if there is none of this id. Valid until the next is added. */
brc_fault *brc_faults_find(const brc_faults *faults, const brc_oid *id);
BRC_MUST_USE int brc_faults_add(brc_faults *faults, const brc_oid *id, int kind, int missing,
                                const char *message, brc_fault **out, brc_error *err);
/* A fault of the file itself. */
BRC_MUST_USE int brc_faults_add_file(brc_faults *faults, const char *message, brc_error *err);
BRC_MUST_USE int brc_fault_used_by(brc_fault *fault, const char *text, brc_error *err);

/* ---- objects by themselves (fsck.c) -------------------------------- */

/* Every object, or with `after` above 0 those whose bytes lie in the file behind that row of stored bytes.
 * no_decode: chunks are checked by their checksum alone. */
BRC_MUST_USE int brc_check_objects(breccia *repo, int64_t after, int no_decode, brc_faults *faults, uint64_t *checked, brc_error *err);

/* ---- what still stands (standing.c) -------------------------------- */

/* Of each branch and tag, where something is at fault. Within a read. */
BRC_MUST_USE int brc_standing_tell(brc_store *store, const brc_faults *faults,
                                   int (*tell)(void *ctx, const brc_standing *one), void *ctx, brc_error *err);

/* ---- uses (fsck_tree.c) -------------------------------- */

/* What everything that looks at versions gets. */
typedef struct brc_check {
    breccia *repo;
    brc_store *store;
    brc_faults *faults;
    int no_decode;
    const char *what; /* "main (1a2b3c4d)": what is being walked */
} brc_check;
/* Notes who uses the object, and finds out whether it is there; *bad 1 if it is at
 * fault. `part` of the node at `path`, or "". */
BRC_MUST_USE int brc_check_use(const brc_check *c, const brc_oid *id, int kind, const char *path,
                               const char *part, int *bad, brc_error *err);
/* The same as a fault that is found in it now. */
BRC_MUST_USE int brc_check_fault(const brc_check *c, const brc_oid *id, int kind, const char *path,
                                 const char *part, const char *message, brc_error *err);

/* ---- one array (fsck_tree.c) -------------------------------- */

/* What is said of the chunks of an array. */
typedef struct brc_array_check {
    int open;             /* 0: its document says nothing that could be checked   */
    struct brc_meta *meta;
    brc_oid context;      /* equal: what is right for a chunk of one is so for the other */
    char *path;
    brc_oid key;          /* of the array among those that were met               */
    int bad;
    brc_node_total before; /* the totals above it when its map began             */
} brc_array_check;
/* One chunk of it. */
typedef struct brc_chunk_check {
    brc_object object;
    uint64_t index[BRC_MAX_NDIM];
    int ndim;
    int looked_up;    /* its row is there, and that of a chunk */
    int decodes;      /* the function's own                    */
    brc_error *fault; /* what is wrong, to be released; NULL: nothing */
} brc_chunk_check;

/* ---- what a version is made of (fsck_tree.c) -------------------------------- */

typedef struct brc_tree_check {
    brc_check check;
    int64_t others; /* brc_store_others() when it began */
    brc_closure *walk;                 /* of each node it keeps whether it was good or bad */
    brc_id_table arrays, docs, chunks; /* what was met, good and bad       */
    void *levels;         /* of the nodes above each other                        */
    size_t levels_cap;
    void *extents;        /* uint64_t[]: how far the chunks under a node reach, by axis */
    size_t nextents, extents_cap;
    brc_array_check *array;   /* whose chunks are being walked                        */
    struct chunk_batch *batch;
} brc_tree_check;
BRC_MUST_USE int brc_tree_check_new(brc_tree_check *c, breccia *repo, int no_decode, brc_faults *faults, brc_error *err);
void brc_tree_check_dispose(brc_tree_check *c);
/* Goes on to the next commit that a root of c->walk reaches: what comes before it is checked. 1 with
 * a step at COMMIT or VERSION, 0 at the end. */
BRC_MUST_USE int brc_tree_check_next(brc_tree_check *c, brc_closure_step *at, brc_error *err);
/* A whole version, while no commit is due; the zero id is the empty one. */
BRC_MUST_USE int brc_tree_check_snapshot(brc_tree_check *c, const brc_oid *root, brc_error *err);
/* Likewise one node of a draft, with what its entry names; `row`'s chunks are over its own. */
BRC_MUST_USE int brc_tree_check_entry(brc_tree_check *c, const char *path, const brc_entry *entry, int64_t row, brc_error *err);

/* ---- from the refs down (fsck.c) -------------------------------- */

/* Everything that refs, the operation log and drafts reach, and every commit: adds what is
 * missing, and who uses what. */
BRC_MUST_USE int brc_check_history(breccia *repo, int no_decode, brc_faults *faults, brc_error *err);

#endif
