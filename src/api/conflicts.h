/* Conflicts as users see them. */
#ifndef BRC_API_CONFLICTS_H
#define BRC_API_CONFLICTS_H

#include "../history/merge_list.h"

/* An iterator over them, which takes them out of the list (NULL: none). */
BRC_MUST_USE int brc_conflict_list(brc_iter **out, brc_clash_list *list, brc_error *err);
/* The same, of those that are not settled; the others are gone. */
BRC_MUST_USE int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, brc_error *err);

#endif
