/* How long what the operation log names is kept: setting "window". */
#ifndef BRC_HISTORY_LOG_WINDOW_H
#define BRC_HISTORY_LOG_WINDOW_H

#include "../store/store.h"

/* Entries of the log that stay in the window however old they are, so that a clock that jumps empties
 * nothing. */
#define BRC_WINDOW_LEAST 1000

/* From which time on, and how many entries at least. Where the window is 0, only what has a name is
 * kept: then both say "none". */
typedef struct brc_log_window {
    int64_t since_us, least;
} brc_log_window;
BRC_MUST_USE int brc_window_get(brc_store *store, int64_t now_us, brc_log_window *out, brc_error *err);
/* The window that `text` says, as brc_window_set() takes it, whatever is set. */
BRC_MUST_USE int brc_window_of(const char *text, int64_t now_us, brc_log_window *out, brc_error *err);
/* As text: "30d", "12h", "0". Set takes these, weeks ("2w") and a number of days; NULL: the default. */
BRC_MUST_USE int brc_window_text(brc_store *store, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_window_set(brc_store *store, const char *text, brc_error *err);

#endif
