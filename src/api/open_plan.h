/* The plan of an open merge, rebase, cherry-pick or revert (open_merge.h), written: a JSON object, member by member. */
#ifndef BRC_API_OPEN_PLAN_H
#define BRC_API_OPEN_PLAN_H

#include "../base/buf.h"

/* `out` is empty before the first member. */
BRC_MUST_USE int brc_plan_text(brc_buf *out, const char *name, const char *text, brc_error *err);
BRC_MUST_USE int brc_plan_id(brc_buf *out, const char *name, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_plan_number(brc_buf *out, const char *name, int64_t number, brc_error *err);
BRC_MUST_USE int brc_plan_true(brc_buf *out, const char *name, brc_error *err);
/* Lists: ids, and texts. */
BRC_MUST_USE int brc_plan_ids(brc_buf *out, const char *name, const brc_oid *ids, size_t n, brc_error *err);
BRC_MUST_USE int brc_plan_texts(brc_buf *out, const char *name, const char *const *texts, size_t n, brc_error *err);
/* The end: out->data is the text. */
BRC_MUST_USE int brc_plan_end(brc_buf *out, brc_error *err);

#endif
