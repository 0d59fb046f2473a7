/*
 * element_lines.h - elements that differ between versions, one by one.
 */
#ifndef BRECCIA_CLI_ELEMENT_LINES_H
#define BRECCIA_CLI_ELEMENT_LINES_H

#include "../../src/breccia.h"
#include "../record.h"

#include <stddef.h>
#include <stdint.h>

struct cli;

/* Elements and the array that they are of. */
struct cli_differing {
    const brc_differing *values;
    size_t n;
    const brc_array *array;
    int is_conflict; /* base, ours and theirs, in place of old and new */
    const char *more; /* the line after them if there are more, or NULL */
};

/* Sets *out to lines such as "[17] 4 → 3", which last as long as `cli`. */
int cli_differing_lines(struct cli *cli, const struct cli_differing *list, struct cli_texts *out);
/* Sets *out to a JSON list of {"index", "old", "new"} or {"index", "base", "ours", "theirs"}. */
int cli_differing_json(struct cli *cli, const struct cli_differing *list, const char **out);
/* Returns the box from `first` to `last` as a SLICE. */
const char *cli_box_words(struct cli *cli, int ndim, const uint64_t *first, const uint64_t *last);

#endif
