#include "move_text.h"

#include <string.h>

/* The bytes that a line cannot hold as they are. */
static int is_escaped(unsigned char byte)
{
    return byte <= ' ' || byte == '%' || byte == 0x7f;
}

static int move_path_write(brc_buf *out, const char *path, brc_error *err)
{
    for (const char *at = path; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        BRC_TRY(is_escaped(byte) ? brc_buf_printf(out, err, "%%%02X", byte)
                                 : brc_buf_byte(out, byte, err));
    }
    return BRC_OK;
}

int brc_move_lines_write(brc_buf *out, const brc_move_set *set, brc_error *err)
{
    if (set->n > BRC_MAX_MOVES)
        return brc_fail(err, BRC_ELIMIT,
                        "a commit can list at most %zu moves, and here are %zu: commit before "
                        "more nodes are moved",
                        BRC_MAX_MOVES, set->n);
    for (size_t i = 0; i < set->n; i++) {
        BRC_TRY(brc_buf_text(out, "move ", err));
        BRC_TRY(move_path_write(out, set->items[i].from, err));
        BRC_TRY(brc_buf_byte(out, ' ', err));
        BRC_TRY(move_path_write(out, set->items[i].to, err));
        BRC_TRY(brc_buf_byte(out, '\n', err));
    }
    return BRC_OK;
}

/* 0 to 15 for "0" to "F", else -1. */
static int upper_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place. There is one way to write a path: a byte is escaped if and only if it must be. */
static int move_path_read(char *path, brc_error *err)
{
    char *to = path;
    for (const char *at = path; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '%') {
            int high = upper_hex(at[1]), low = high < 0 ? -1 : upper_hex(at[2]);
            byte = (unsigned char)(low < 0 ? 0 : high << 4 | low);
            if (byte == 0 || !is_escaped(byte))
                return brc_fail(err, BRC_EINVAL, "a path of a move has a wrong escape");
            at += 2;
        } else if (is_escaped(byte)) {
            return brc_fail(err, BRC_EINVAL, "a path of a move has a byte that must be escaped");
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    BRC_TRY(brc_path_is_normal(path, err));
    return path[1] != '\0' ? BRC_OK : brc_fail(err, BRC_EINVAL, "the root node cannot move");
}

int brc_move_line_read(brc_move_set *set, char *line, brc_error *err)
{
    char *space = strchr(line, ' ');
    if (space == NULL || set->n == BRC_MAX_MOVES)
        return brc_fail(err, BRC_EINVAL, "a move lacks a path, or there are too many");
    *space = '\0';
    BRC_TRY(move_path_read(line, err));
    BRC_TRY(move_path_read(space + 1, err));
    if (set->n > 0 && strcmp(set->items[set->n - 1].to, space + 1) >= 0)
        return brc_fail(err, BRC_EINVAL, "its moves are not in order");
    return brc_move_set_add(set, line, space + 1, err);
}
