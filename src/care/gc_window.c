/* The setting "window": how long versions that the operation log names are kept. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gc.h"

static const char setting_name[] = "window";

#define HOURS_DEFAULT (INT64_C(30) * 24)
#define HOURS_MOST (INT64_C(24) * 366 * 1000)
#define US_PER_HOUR INT64_C(3600000000)

/* Reads the setting, which is a JSON number of hours. */
static int window_hours(brc_store *store, int64_t *hours, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *end;
    *hours = HOURS_DEFAULT;
    int rc = brc_setting_find(store, setting_name, &text, err);
    if (rc > 0) {
        *hours = strtoll((const char *)text.data, &end, 10);
        rc = *end == '\0' && *hours >= 0 && *hours <= HOURS_MOST
                 ? BRC_OK
                 : brc_fail(err, BRC_ECORRUPT,
                            "%s is damaged: its setting 'window' is not a number of hours: "
                            "'config --unset window' makes it the default",
                            brc_store_path(store));
    }
    brc_buf_dispose(&text);
    return rc;
}

static brc_log_window window_of_hours(int64_t hours, int64_t now_us)
{
    return hours > 0 ? (brc_log_window){now_us - hours * US_PER_HOUR, BRC_WINDOW_LEAST}
                     : (brc_log_window){INT64_MAX, 0};
}

int brc_window_get(brc_store *store, int64_t now_us, brc_log_window *out, brc_error *err)
{
    int64_t hours;
    BRC_TRY(window_hours(store, &hours, err));
    *out = window_of_hours(hours, now_us);
    return BRC_OK;
}

int brc_window_text(brc_store *store, brc_buf *out, brc_error *err)
{
    int64_t hours;
    BRC_TRY(window_hours(store, &hours, err));
    if (hours == 0)
        return brc_buf_text(out, "0", err);
    return hours % 24 == 0 ? brc_buf_printf(out, err, "%" PRId64 "d", hours / 24)
                           : brc_buf_printf(out, err, "%" PRId64 "h", hours);
}

static int hours_of_text(const char *text, int64_t *hours, brc_error *err)
{
    const size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;
    const int64_t each = strcmp(unit, "h") == 0                     ? 1
                         : *unit == '\0' || strcmp(unit, "d") == 0 ? 24
                         : strcmp(unit, "w") == 0                  ? 24 * 7
                                                                   : 0;
    if (digits > 0 && digits < 9 && each > 0) {
        *hours = strtoll(text, NULL, 10) * each;
        if (*hours <= HOURS_MOST)
            return BRC_OK;
    }
    return brc_fail(err, BRC_EINVAL,
                    "'%.40s' is not a valid time to keep the log for: write 30d, 12h or 2w, or "
                    "0 to keep only versions that have a name",
                    text);
}

int brc_window_of_text(const char *text, int64_t now_us, brc_log_window *out, brc_error *err)
{
    int64_t hours;
    BRC_TRY(hours_of_text(text, &hours, err));
    *out = window_of_hours(hours, now_us);
    return BRC_OK;
}

int brc_window_set(brc_store *store, const char *text, brc_error *err)
{
    brc_buf json = BRC_BUF_INIT;
    int64_t hours = 0;
    if (text != NULL) {
        BRC_TRY(hours_of_text(text, &hours, err));
        BRC_TRY(brc_buf_printf(&json, err, "%" PRId64, hours));
    }
    int rc = brc_store_begin(store, err);
    if (rc == BRC_OK) {
        rc = brc_setting_put(store, setting_name, text != NULL ? (const char *)json.data : NULL,
                             err);
        int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : end;
    }
    brc_buf_dispose(&json);
    return rc;
}
