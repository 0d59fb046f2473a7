/* The uncommitted changes of a session: reads them as one state, compares them with what they follow, drops them.
 * The public functions brc_session_clean(), brc_session_discard() and brc_session_finish() are here too. */
#ifndef BRC_WORK_UNCOMMITTED_H
#define BRC_WORK_UNCOMMITTED_H

#include "session.h"

/* Calls run() within a read, which run() may pause (brc_store_pause_read()). If the session's draft or its branch
 * has changed by the end, calls run() again from the start, even if it failed, because it may have seen half of a
 * change. After some tries run() is called with the lock held: otherwise it would never finish beside a busy
 * writer. */
typedef int (*brc_steady_fn)(void *ctx, brc_error *err);
BRC_MUST_USE int brc_session_read_steady(brc_session *s, brc_steady_fn run, void *ctx, brc_error *err);

#endif
