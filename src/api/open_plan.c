#include "open_plan.h"

#include <string.h>

#include "../breccia_json.h"

static int plan_name(brc_buf *out, const char *name, brc_error *err)
{
    return brc_buf_printf(out, err, "%s\"%s\":", out->len == 0 ? "{" : ",", name);
}

int brc_plan_text(brc_buf *out, const char *name, const char *text, brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    return brc_json_quote(out, text, strlen(text), err);
}

int brc_plan_id(brc_buf *out, const char *name, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_plan_text(out, name, brc_oid_format(hex, id), err);
}

int brc_plan_number(brc_buf *out, const char *name, int64_t number, brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    return brc_buf_printf(out, err, "%lld", (long long)number);
}

int brc_plan_true(brc_buf *out, const char *name, brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    return brc_buf_text(out, "true", err);
}

int brc_plan_texts(brc_buf *out, const char *name, const char *const *texts, size_t n,
                   brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    BRC_TRY(brc_buf_text(out, "[", err));
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_buf_text(out, i == 0 ? "" : ",", err));
        BRC_TRY(brc_json_quote(out, texts[i], strlen(texts[i]), err));
    }
    return brc_buf_text(out, "]", err);
}

int brc_plan_ids(brc_buf *out, const char *name, const brc_oid *ids, size_t n, brc_error *err)
{
    char hex[65];
    BRC_TRY(plan_name(out, name, err));
    BRC_TRY(brc_buf_text(out, "[", err));
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s\"%s\"", i == 0 ? "" : ",",
                               brc_oid_format(hex, &ids[i])));
    return brc_buf_text(out, "]", err);
}

int brc_plan_end(brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}
