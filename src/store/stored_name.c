/* What stored bytes are called: by their canonical name, or as an offset in a place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/utf8.h"
#include "backend.h"

/* ---- canonical names -------------------------------- */

char *brc_stored_name(char out[BRC_STORED_NAME_SIZE], const brc_stored *stored)
{
    char hex[65];
    snprintf(out, BRC_STORED_NAME_SIZE, "%s-%016" PRIx64, brc_oid_format(hex, &stored->id),
             stored->sum);
    return out;
}

/* What is read is written again: one that differs is not canonical. */
int brc_stored_parse_name(brc_stored *stored, const char *name)
{
    char again[BRC_STORED_NAME_SIZE];
    brc_stored found = {.size = sizeof(found)};
    const char *sum = strchr(name, '-');
    const size_t digits = strspn(name, "0123456789abcdef");
    if (sum == NULL || name + digits != sum || digits > 2 * sizeof(found.id.bytes))
        return 0;
    for (size_t i = 0; i < digits; i++) {
        const char c = name[i];
        const int value = c <= '9' ? c - '0' : c - 'a' + 10;
        found.id.bytes[i / 2] = (uint8_t)(found.id.bytes[i / 2] << 4 | value);
    }
    found.sum = strtoull(sum + 1, NULL, 16);
    if (strcmp(brc_stored_name(again, &found), name) != 0)
        return 0;
    stored->id = found.id;
    stored->sum = found.sum;
    return 1;
}

/* ---- places -------------------------------- */

int brc_is_place_name(const char *name)
{
    const size_t len = strnlen(name, BRC_PLACE_MAX + 1);
    return len > 0 && len <= BRC_PLACE_MAX && brc_utf8_valid(name, len);
}

int brc_stored_put_at(brc_stored *stored, const char *place, uint64_t offset, brc_error *err)
{
    char *name;
    if (place == NULL || !brc_is_place_name(place))
        return brc_fail(err, BRC_EINVAL, "a place has a name in UTF-8 of 1 to %d bytes",
                        BRC_PLACE_MAX);
    if (offset > INT64_MAX || stored->len > INT64_MAX - offset)
        return brc_fail(err, BRC_EINVAL,
                        "the offset %" PRIu64 " in the place \"%.80s\" is too large", offset,
                        place);
    BRC_TRY(brc_dup(&name, place, err));
    brc_stored_clear(stored);
    stored->place = name;
    stored->offset = offset;
    return BRC_OK;
}

void brc_stored_clear(brc_stored *stored)
{
    free((void *)(uintptr_t)stored->place);
    stored->place = NULL;
    stored->offset = 0;
}
