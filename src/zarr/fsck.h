/*
 * Checking a repository: every object against its checksum, its id and its guard,
 * and every ref, commit, map and uncommitted change for what it points to.
 */
#ifndef BRC_ZARR_FSCK_H
#define BRC_ZARR_FSCK_H

#include "../history/commit.h"
#include "repo.h"

typedef struct brc_fault {
    brc_oid id;
    int kind;      /* BRC_KIND_*, or one of these; 0: of the file itself         */
    int missing;
    char *message;
    void *used_by; /* char *[]                                                   */
    size_t nused_by, used_by_cap;
} brc_fault;
enum { BRC_FAULT_REF = BRC_KIND_MAX + 1 };

typedef struct brc_faults {
    void *items; /* brc_fault[] */
    size_t n, cap;
} brc_faults;

void brc_faults_dispose(brc_faults *faults);
/* NULL where there is none of this id. */
brc_fault *brc_faults_find(const brc_faults *faults, const brc_oid *id);
BRC_MUST_USE int brc_faults_add(brc_faults *faults, const brc_oid *id, int kind, int missing,
                                const char *message, brc_fault **out, brc_error *err);
BRC_MUST_USE int brc_fault_used_by(brc_fault *fault, const char *text, brc_error *err);

/* Every object. no_decode: chunks are checked by their checksum alone. */
BRC_MUST_USE int brc_check_objects(breccia *repo, int no_decode, brc_faults *faults, uint64_t *checked, brc_error *err);
/* Everything that refs and drafts reach: adds what is missing, and who uses what. */
BRC_MUST_USE int brc_check_history(breccia *repo, brc_faults *faults, brc_error *err);

#endif
