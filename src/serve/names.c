#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"

int serve_names_add(serve_names *list, const char *name, size_t len, const char *end,
                    brc_error *err)
{
    if (list->n == SERVE_NAMES_MOST)
        return brc_fail(err, BRC_ELIMIT, "there are more than %d names", SERVE_NAMES_MOST);
    if (list->n == list->cap) {
        char **grown = realloc(list->names, (list->cap * 2 + 16) * sizeof(*grown));
        if (grown == NULL)
            return brc_fail(err, BRC_ENOMEM, "out of memory");
        list->names = grown;
        list->cap = list->cap * 2 + 16;
    }
    const size_t more = strlen(end);
    char *copy = malloc(len + more + 1);
    if (copy == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    memcpy(copy, name, len);
    memcpy(copy + len, end, more + 1);
    list->names[list->n++] = copy;
    return BRC_OK;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void serve_names_sort(serve_names *list)
{
    size_t kept = 0;
    if (list->n > 1)
        qsort(list->names, list->n, sizeof(*list->names), name_order);
    for (size_t i = 0; i < list->n; i++) {
        if (kept > 0 && strcmp(list->names[kept - 1], list->names[i]) == 0)
            free(list->names[i]);
        else
            list->names[kept++] = list->names[i];
    }
    list->n = kept;
}

void serve_names_dispose(serve_names *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    memset(list, 0, sizeof(*list));
}
