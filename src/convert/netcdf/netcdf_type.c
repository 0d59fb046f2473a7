/* The memory of elements, see netcdf_type.h. */
#include "netcdf_type.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"

#define MAX_MOVES ((size_t)1 << 16)

void brc_netcdf_type_free(brc_netcdf_type *type)
{
    free(type->moves);
    brc_buf_dispose(&type->dtype);
    memset(type, 0, sizeof(*type));
}

int brc_netcdf_add_move(brc_netcdf_type *type, size_t file, size_t here, size_t len, brc_error *err)
{
    brc_netcdf_move *moves = type->moves, *last = type->nmoves ? &moves[type->nmoves - 1] : NULL;

    if (last && last->file + last->len == file && last->here + last->len == here) {
        last->len += len;
        return BRC_OK;
    }
    if (type->nmoves == MAX_MOVES)
        return brc_fail(err, BRC_ELIMIT, "a compound type has more than %lu fields",
                        (unsigned long)MAX_MOVES);
    BRC_TRY(brc_grow_array(&type->moves, &type->moves_cap, type->nmoves + 1, sizeof(*moves), err));
    moves = type->moves;
    moves[type->nmoves++] = (brc_netcdf_move){ file, here, len };
    return BRC_OK;
}

void brc_netcdf_move_in(const brc_netcdf_type *type, uint8_t *here, const uint8_t *file, size_t n)
{
    const brc_netcdf_move *moves = type->moves;
    for (; n > 0; n--, here += type->here_size, file += type->file_size)
        for (size_t i = 0; i < type->nmoves; i++)
            memcpy(here + moves[i].here, file + moves[i].file, moves[i].len);
}

void brc_netcdf_move_out(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n)
{
    const brc_netcdf_move *moves = type->moves;
    for (; n > 0; n--, here += type->here_size, file += type->file_size) {
        memset(file, 0, type->file_size); /* what is between the fields */
        for (size_t i = 0; i < type->nmoves; i++)
            memcpy(file + moves[i].file, here + moves[i].here, moves[i].len);
    }
}

void brc_netcdf_lay_out(const brc_netcdf_type *type, uint8_t *file, const uint8_t *element,
                        uint8_t *here)
{
    memcpy(here, element, type->here_size);
    brc_dtype_native(type->from, here, type->here_size);
    if (type->nmoves > 0)
        brc_netcdf_move_out(type, file, here, 1);
    else
        memcpy(file, here, type->file_size);
}
