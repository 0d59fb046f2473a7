/*
 * Merging JSON documents by member.
 *
 * A member that one side alone changed is that side's; one that both made the same is so. Where both
 * are objects they are merged in turn, as far down as that goes. Any other member that both sides
 * changed is a clash. Values are compared as what they say: 1 and 1.0 are equal, and so are objects
 * whose members are in another order; the text of what is taken stays as it was written.
 *
 * The result has the members of the base in their order, and the new ones behind them by name: so
 * it is the same whichever side is called ours.
 */
#ifndef BRC_MERGE_MERGE_DOC_H
#define BRC_MERGE_MERGE_DOC_H

#include "../base/json.h"

/* A value that is not known: unequal to any other. What a merge of merge bases could not settle. */
#define BRC_UNKNOWN_MEMBER "breccia:unknown"
int brc_json_is_unknown(const brc_json *value);
/* Or a member is, however deep: what is merged by member may be known in part. */
int brc_json_has_unknown(const brc_json *value);
BRC_MUST_USE int brc_json_new_unknown(brc_json **out, brc_error *err);

/* Both sides changed the member at `pointer` (RFC 6901), each in its own way; NULL: it is not there.
 * It becomes *instead, which is the callee's to make; left NULL: theirs where it returns 1, ours where 0. */
typedef int (*brc_doc_clash_fn)(void *ctx, const char *pointer, const brc_json *base, const brc_json *ours,
                                const brc_json *theirs, brc_json **instead, brc_error *err);

/* Equal as values. NULL: absent. */
int brc_json_same(const brc_json *a, const brc_json *b);
/* base NULL: there is none. Members of the documents themselves that are in `skip`, which NULL ends, stay
 * ours. */
BRC_MUST_USE int brc_doc_merge(brc_json **out, const brc_json *base, const brc_json *ours, const brc_json *theirs,
                               const char *const *skip, brc_doc_clash_fn clash, void *ctx, brc_error *err);

#endif
