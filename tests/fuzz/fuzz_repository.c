/*
 * Whole repositories: the input is a program of edits of a small one's rows, after which
 * all hashes are right (kit/row_edits.h). Then fsck and the commands must agree
 * (kit/battery.h).
 */
#include "fuzz.h"

#include <stdio.h>

#include "../kit/battery.h"
#include "../kit/row_edits.h"

size_t fuzz_mutate_repository(uint8_t *data, size_t len, size_t max, unsigned seed)
{
    uint64_t random = seed;
    return row_edits_mutate(data, len, max, &random);
}

void fuzz_repository(const uint8_t *data, size_t len)
{
    battery result;
    const brc_buf *base = fuzz_base();
    const char *path = fuzz_file("repository.brc", base->data, base->len);
    row_edits_apply(path, data, len);
    battery_run(&result, path, fuzz_registry());
    if (result.broken[0] != '\0')
        fprintf(stderr, "%s\n", result.broken);
    FUZZ_TRUE(result.broken[0] == '\0', NULL);
}
