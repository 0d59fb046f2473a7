/* What is uncommitted in a session: read as one state, compared with what it follows, dropped. The public functions
 * brc_session_clean(), _discard() and _finish() are here too. */
#ifndef BRC_WORK_UNCOMMITTED_H
#define BRC_WORK_UNCOMMITTED_H

#include "session.h"

/* Calls run() within a read, which it may pause (brc_store_pause_read()). Where the session's draft or
 * its branch has changed by the end, it is called again, from the start: also where it failed, for
 * it may have seen half of a change. After some tries the lock is held: beside a busy writer it would
 * not end otherwise. */
typedef int (*brc_steady_fn)(void *ctx, brc_error *err);
BRC_MUST_USE int brc_session_read_steady(brc_session *s, brc_steady_fn run, void *ctx, brc_error *err);

#endif
