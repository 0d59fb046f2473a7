#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"
#include "xfer.h"

/* ==== first names ================================ */

#define NAMES_MOST 5 /* names in a list */

int brc_first_names_add(brc_first_names *names, const char *name, brc_error *err)
{
    if (names->n++ < NAMES_MOST)
        return brc_buf_printf(&names->text, err, "%s%.300s", names->text.len > 0 ? ", " : "", name);
    return BRC_OK;
}

int brc_first_names_write(const brc_first_names *names, brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_append(out, names->text.data, names->text.len, err));
    if (names->n > NAMES_MOST)
        BRC_TRY(brc_buf_printf(out, err, " and %llu more",
                               (unsigned long long)(names->n - NAMES_MOST)));
    return BRC_OK;
}

void brc_first_names_dispose(brc_first_names *names)
{
    brc_buf_dispose(&names->text);
}

/* ==== names ================================ */

/* Names of nodes and files: checks them, handles their endings, and joins them to paths. */

int brc_name_is_safe(const char *name, size_t len)
{
    return brc_name_check(name, len, NULL) == BRC_OK;
}

int brc_path_is_safe(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (!brc_name_is_safe(path, len))
            return 0;
        if (path[len] == 0)
            return 1;
        path += len + 1;
    }
}

size_t brc_without_ending(const char *name, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    if (len <= n)
        return len;
    for (size_t i = 0; i < n; i++) {
        char c = name[len - n + i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != ending[i])
            return len;
    }
    return len - n;
}

size_t brc_before_ending(const char *name, size_t len)
{
    for (size_t i = len; i-- > 1;)
        if (name[i] == '.') {
            int letter = i + 1 < len ? name[i + 1] | 0x20 : 0;
            return letter >= 'a' && letter <= 'z' ? i : len;
        }
    return len;
}

int brc_has_ending(const char *name, const char *ending)
{
    size_t len = strlen(name);
    return brc_without_ending(name, len, ending) < len;
}
