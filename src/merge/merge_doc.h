/*
 * Merges JSON documents member by member.
 *
 * A member that only one side changed is taken from that side; a member that both sides changed
 * alike is taken too. If a member is an object on both sides, the objects are merged in turn,
 * however deep. Any other member that both sides changed is a conflict. Values are compared by
 * meaning: 1 and 1.0 are equal, and so are objects whose members are in a different order. The text
 * of a taken value stays as it was written.
 *
 * The result has the members of the base in their order, followed by new members sorted by name, so
 * it does not depend on which side is called ours.
 */
#ifndef BRC_MERGE_MERGE_DOC_H
#define BRC_MERGE_MERGE_DOC_H

#include "../base/json.h"

/* A value that is not known and differs from every other value: a merge of merge bases could not
 * settle it. */
#define BRC_UNKNOWN_MEMBER "breccia:unknown"
int brc_json_is_unknown(const brc_json *value);
/* Says whether the value or any member in it is unknown, because a value that is merged by member
 * may be known in part. */
int brc_json_has_unknown(const brc_json *value);
BRC_MUST_USE int brc_json_new_unknown(brc_json **out, brc_error *err);

/* Called for a member at `pointer` (RFC 6901) that both sides changed differently; NULL: the
 * member does not exist. The function may set *instead to the value that the member gets, which it
 * allocates. If it leaves *instead NULL, theirs is taken if it returns 1, and ours if it returns
 * 0. */
typedef int (*brc_doc_clash_fn)(void *ctx, const char *pointer, const brc_json *base, const brc_json *ours,
                                const brc_json *theirs, brc_json **instead, brc_error *err);

/* Says whether two values are equal by meaning. NULL: absent. */
int brc_json_same(const brc_json *a, const brc_json *b);
/* Merges two documents. If `base` is NULL, there is no base. Top-level members that are in `skip`,
 * which ends with NULL, stay as in ours. */
BRC_MUST_USE int brc_doc_merge(brc_json **out, const brc_json *base, const brc_json *ours, const brc_json *theirs,
                               const char *const *skip, brc_doc_clash_fn clash, void *ctx, brc_error *err);

#endif
