/* Conflicts as rows of an open merge (table `conflict`). */
#ifndef BRC_HISTORY_MERGE_ROWS_H
#define BRC_HISTORY_MERGE_ROWS_H

#include "merge_list.h"

/* One of them. `in_memory`: its base is in no version (several were merged): of a node or chunk only that
 * it is there is kept. Within a write. */
BRC_MUST_USE int brc_clash_put(brc_store *store, int64_t draft, const brc_clash *clash, int in_memory, brc_error *err);
BRC_MUST_USE int brc_clash_list_put(brc_store *store, int64_t draft, const brc_clash_list *list, int in_memory, brc_error *err);
/* All of a draft are added to the list, which is empty before; `settled` is the row's state. */
BRC_MUST_USE int brc_clash_list_read(brc_clash_list *out, brc_store *store, int64_t draft, brc_error *err);

#endif
