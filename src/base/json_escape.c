#include "json_escape.h"

#include <string.h>

static int escape_control(brc_buf *out, uint8_t c, brc_error *err)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found)
        return brc_buf_printf(out, err, "\\%c", to[found - from]);
    return brc_buf_printf(out, err, "\\u%04x", (unsigned)c);
}

int brc_json_escape(brc_buf *out, const char *text, size_t len, brc_error *err)
{
    size_t start = 0;
    if (len == 0) /* text may be NULL then */
        return BRC_OK;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i];
        int is_nul = i + 1 < len && memcmp(text + i, BRC_JSON_NUL, 2) == 0;
        if (c >= 0x20 && c != '"' && c != '\\' && !is_nul)
            continue;
        BRC_TRY(brc_buf_append(out, text + start, i - start, err));
        BRC_TRY(escape_control(out, is_nul ? 0 : c, err));
        i += (size_t)is_nul;
        start = i + 1;
    }
    return brc_buf_append(out, text + start, len - start, err);
}

int brc_json_quote(brc_buf *out, const char *text, size_t len, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_json_escape(out, text, len, err));
    return brc_buf_byte(out, '"', err);
}

int brc_json_pointer_step(brc_buf *out, const char *name, brc_error *err)
{
    size_t len = out->len;
    int rc = BRC_OK;
    BRC_GO(brc_buf_byte(out, '/', err));
    for (; *name; name++) {
        if (*name == '~' || *name == '/')
            BRC_GO(brc_buf_text(out, *name == '~' ? "~0" : "~1", err));
        else
            BRC_GO(brc_buf_byte(out, (uint8_t)*name, err));
    }
    return BRC_OK;
done:
    out->len = len;
    return rc;
}
