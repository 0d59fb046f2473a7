/* What all inputs have in common. */
#include "input.h"

#include <string.h>

#include "../zarr/repo.h"

#define PIECE_BYTES ((size_t)4 << 20) /* read at once: between pieces, progress is reported */

void brc_input_free(brc_input *in)
{
    if (in)
        in->close(in);
}

int brc_input_peek(brc_input *in, const uint8_t **head, size_t *n, brc_error *err)
{
    if (in->taken == 0 && in->head_len == 0) {
        size_t got = 1;
        while (got > 0 && in->head_len < BRC_INPUT_HEAD) {
            BRC_TRY(
                in->read(in, in->head + in->head_len, BRC_INPUT_HEAD - in->head_len, &got, err));
            in->head_len += got;
        }
    }
    *head = in->head + in->head_at;
    *n = in->head_len - in->head_at;
    return BRC_OK;
}

int brc_input_exact(brc_input *in, void *dst, size_t len, brc_error *err)
{
    uint8_t *at = dst;
    size_t left = len;
    size_t n = in->head_len - in->head_at;
    if (n > left)
        n = left;
    if (n > 0)
        memcpy(at, in->head + in->head_at, n);
    in->head_at += n;
    at += n;
    left -= n;
    while (left > 0) {
        if (in->repo)
            BRC_TRY(brc_task_step(in->repo, 0, err));
        BRC_TRY(in->read(in, at, left < PIECE_BYTES ? left : PIECE_BYTES, &n, err));
        if (n == 0)
            return brc_fail(err, BRC_EINVAL, "%s ends too early: %llu bytes are missing", in->name,
                            (unsigned long long)left);
        at += n;
        left -= n;
    }
    in->taken += len;
    return BRC_OK;
}

int brc_input_end(brc_input *in, brc_error *err)
{
    uint8_t byte;
    size_t got = in->head_len - in->head_at;
    if (got == 0)
        BRC_TRY(in->read(in, &byte, 1, &got, err));
    if (got > 0)
        return brc_fail(err, BRC_EINVAL, "%s goes on after its last element, at byte %llu",
                        in->name, (unsigned long long)in->taken);
    return BRC_OK;
}
