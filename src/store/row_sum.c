#include "row_sum.h"

#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/hash.h"

/*
 * What is summed: the table's name, then of each column
 *
 *   NULL     u8 0
 *   INTEGER  u8 1, i64be
 *   REAL     u8 2, the IEEE 754 bits as u64be
 *   TEXT     u8 3, u64be bytes, the bytes in UTF-8
 *   BLOB     u8 4, u64be bytes, the bytes
 *
 * The table's name is a TEXT. The sum is the low 32 bits of the XXH3-64, as a signed number:
 * four bytes in the row.
 */
static int sum_number(brc_buf *out, int tag, uint64_t value)
{
    uint8_t bytes[9] = { (uint8_t)tag };
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)(value >> (56 - 8 * i));
    return brc_buf_append(out, bytes, sizeof(bytes), NULL);
}

static int sum_bytes(brc_buf *out, int tag, const void *data, size_t len)
{
    int rc = sum_number(out, tag, len);
    return rc == BRC_OK && len > 0 ? brc_buf_append(out, data, len, NULL) : rc;
}

static int sum_real(brc_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return sum_number(out, 2, bits);
}

static int sum_value(brc_buf *out, sqlite3_value *value)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return sum_number(out, 1, (uint64_t)sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        return sum_real(out, sqlite3_value_double(value));
    case SQLITE_TEXT: { /* the text first: it may have to be converted */
        const void *text = sqlite3_value_text(value);
        return text ? sum_bytes(out, 3, text, (size_t)sqlite3_value_bytes(value)) : BRC_ENOMEM;
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_value_blob(value);
        return sum_bytes(out, 4, blob, (size_t)sqlite3_value_bytes(value));
    }
    default:
        return brc_buf_append(out, "", 1, NULL);
    }
}

static void row_sum(sqlite3_context *context, int n, sqlite3_value **values)
{
    brc_buf *row = sqlite3_user_data(context);
    row->len = 0;
    for (int i = 0; i < n; i++)
        if (sum_value(row, values[i]) < 0) {
            sqlite3_result_error_nomem(context);
            return;
        }
    sqlite3_result_int64(context, (int32_t)(uint32_t)brc_hash_bytes(row->data, row->len));
}

static void row_free(void *row)
{
    brc_buf_dispose(row);
    free(row);
}

int brc_row_sum_register(sqlite3 *db)
{
    brc_buf *row = calloc(1, sizeof(*row));
    if (!row)
        return SQLITE_NOMEM;
    return sqlite3_create_function_v2(db, "row_sum", -1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, row,
                                      row_sum, NULL, NULL, row_free);
}
