/* A commit's lines of moves: "move FROM TO", by TO (docs/FORMAT.md, section 7). */
#ifndef BRC_HISTORY_MOVE_TEXT_H
#define BRC_HISTORY_MOVE_TEXT_H

#include "move_set.h"

/* How many one commit can have. */
#define BRC_MAX_MOVES ((size_t)1 << 20)

/* The lines of a sealed set. BRC_ELIMIT: there are too many. */
BRC_MUST_USE int brc_move_lines_write(brc_buf *out, const brc_move_set *set, brc_error *err);
/* One line after its first word, "FROM TO", which it may change. The set must be sealed after
 * the last. BRC_EINVAL: it does not have the form, or its TO does not follow that before. */
BRC_MUST_USE int brc_move_line_read(brc_move_set *set, char *line, brc_error *err);

#endif
