/*
 * Checks a repository: every object against its checksum, its id and its guard, and every ref,
 * commit, map and uncommitted change for the objects that it names.
 */
#ifndef BRC_CARE_FSCK_H
#define BRC_CARE_FSCK_H

#include "../base/hash.h"
#include "../history/closure.h"
#include "../work/session.h"

/* ---- what was found (fsck_tree.c) -------------------------------- */

typedef struct brc_fault {
    brc_oid id;
    int kind;      /* BRC_KIND_*, or one of these; 0: a fault of the file itself */
    int missing;
    int in_place;  /* its place is at fault, and not the object */
    char *message;
    void *used_by; /* char *[]                                                   */
    size_t nused_by, used_by_cap;
} brc_fault;
enum { BRC_FAULT_REF = BRC_KIND_MAX + 1 };
/* The most users of a fault that are reported. */
#define BRC_FAULT_USERS 64

typedef struct brc_faults {
    void *items; /* brc_fault[] */
    size_t n, cap;
    brc_id_table by_id; /* size_t: index in `items` of the first fault of each id */
} brc_faults;
#define BRC_FAULTS_INIT { 0, 0, 0, BRC_ID_TABLE_INIT(sizeof(size_t)) }

void brc_faults_dispose(brc_faults *faults);
/* Returns the fault with this id, or NULL. Valid until the next fault is added. */
brc_fault *brc_faults_find(const brc_faults *faults, const brc_oid *id);
BRC_MUST_USE int brc_faults_add(brc_faults *faults, const brc_oid *id, int kind, int missing,
                                const char *message, brc_fault **out, brc_error *err);
/* Adds a fault of the file itself. */
BRC_MUST_USE int brc_faults_add_file(brc_faults *faults, const char *message, brc_error *err);
BRC_MUST_USE int brc_fault_used_by(brc_fault *fault, const char *text, brc_error *err);

/* ---- objects by themselves (fsck.c) -------------------------------- */

/* Checks every object, or, with `after` above 0, the objects whose bytes are in the file in later
 * rows than `after`. With no_decode, chunks are checked only by their checksums. */
BRC_MUST_USE int brc_check_objects(breccia *repo, int64_t after, int no_decode, brc_faults *faults, uint64_t *checked, brc_error *err);

/* ---- what still stands (standing.c) -------------------------------- */

/* Reports on each branch and tag that has lost something. Must be called within a read. */
BRC_MUST_USE int brc_standing_tell(brc_store *store, const brc_faults *faults,
                                   int (*tell)(void *ctx, const brc_standing *one), void *ctx, brc_error *err);

/* ---- uses (fsck_tree.c) -------------------------------- */

/* The context of everything that examines versions. */
typedef struct brc_check {
    breccia *repo;
    brc_store *store;
    brc_faults *faults;
    int no_decode;
    const char *what; /* the version that is being walked, such as "main (1a2b3c4d)" */
} brc_check;
/* Records who uses the object, and checks whether it exists. Sets *bad to 1 if it is at fault.
 * `part` is a part of the node at `path`, or "". */
BRC_MUST_USE int brc_check_use(const brc_check *c, const brc_oid *id, int kind, const char *path,
                               const char *part, int *bad, brc_error *err);
/* Like brc_check_use(), for a fault that has just been found in the object. */
BRC_MUST_USE int brc_check_fault(const brc_check *c, const brc_oid *id, int kind, const char *path,
                                 const char *part, const char *message, brc_error *err);

/* ---- one array (fsck_tree.c) -------------------------------- */

/* The check of one array's chunks. */
typedef struct brc_array_check {
    int open;             /* 0: the document says nothing that could be checked   */
    struct brc_meta *meta;
    brc_oid context;      /* chunks that are right for one array are right for every array with the same
                           * context */
    char *path;
    brc_oid key;          /* identifies the array among those that were met       */
    int bad;
    brc_node_total before; /* the totals above the array when its map began      */
} brc_array_check;
/* The check of one chunk of an array. */
typedef struct brc_chunk_check {
    brc_object object;
    uint64_t index[BRC_MAX_NDIM];
    int ndim;
    int looked_up;    /* its row exists, and is that of a chunk */
    int decodes;      /* used by the function itself           */
    brc_error *fault; /* the fault, which the caller releases; NULL: none */
} brc_chunk_check;

/* ---- what a version is made of (fsck_tree.c) -------------------------------- */

typedef struct brc_tree_check {
    brc_check check;
    int64_t others; /* brc_store_others() at the beginning */
    brc_closure *walk;                 /* keeps for each node whether it was good or bad */
    brc_id_table arrays, docs, chunks; /* what was met, good and bad       */
    void *levels;         /* the levels of the current node and those above it    */
    size_t levels_cap;
    void *extents;        /* uint64_t[]: the greatest chunk indexes under a node, by axis */
    size_t nextents, extents_cap;
    brc_array_check *array;   /* the array whose chunks are being walked              */
    struct chunk_batch *batch;
} brc_tree_check;
BRC_MUST_USE int brc_tree_check_new(brc_tree_check *c, breccia *repo, int no_decode, brc_faults *faults, brc_error *err);
void brc_tree_check_dispose(brc_tree_check *c);
/* Continues to the next commit that a root of c->walk reaches, and checks everything before it.
 * Returns 1 with a step at COMMIT or VERSION, or 0 at the end. */
BRC_MUST_USE int brc_tree_check_next(brc_tree_check *c, brc_closure_step *at, brc_error *err);
/* Checks a complete version, while no commit is due; the zero id is the empty version. */
BRC_MUST_USE int brc_tree_check_snapshot(brc_tree_check *c, const brc_oid *root, brc_error *err);
/* Checks one node of a draft, and the objects that its entry names, while no commit is due. The
 * chunks of `row` hide the node's own. */
BRC_MUST_USE int brc_tree_check_entry(brc_tree_check *c, const char *path, const brc_entry *entry, int64_t row, brc_error *err);

#endif
