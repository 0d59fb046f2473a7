#include "commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/ref.h"
#include "moves.h"

#define MAX_MESSAGE ((size_t)1 << 20)
#define MAX_AUTHOR 1024

/* ---- writing -------------------------------------------------------------------- */

static int commit_check(const brc_commit *c, brc_error *err)
{
    size_t author = strlen(c->author), message = strlen(c->message);
    if (author == 0 || author > MAX_AUTHOR || !brc_utf8_valid(c->author, author) ||
        strpbrk(c->author, "\r\n") != NULL)
        return brc_fail(err, BRC_EINVAL, "the author must be one line of 1 to %d bytes of UTF-8",
                        MAX_AUTHOR);
    if (message > MAX_MESSAGE || !brc_utf8_valid(c->message, message))
        return brc_fail(err, BRC_EINVAL, "the message must be UTF-8 of at most 1 MiB");
    if (c->nparents > BRC_MAX_PARENTS)
        return brc_fail(err, BRC_ELIMIT, "a commit can have at most %d parents", BRC_MAX_PARENTS);
    return BRC_OK;
}

int brc_message_check(const char *message, brc_error *err)
{
    if (message != NULL && message[strspn(message, " \t\r\n")] == '\0')
        return brc_fail(err, BRC_EINVAL, "the message of a commit must not be blank");
    return BRC_OK;
}

static int commit_write(brc_buf *out, const brc_commit *c, const brc_move_set *moves,
                        brc_error *err)
{
    char hex[65];
    if (!brc_oid_is_zero(&c->root))
        BRC_TRY(brc_buf_printf(out, err, "root %s\n", brc_oid_format(hex, &c->root)));
    for (size_t i = 0; i < c->nparents; i++)
        BRC_TRY(brc_buf_printf(out, err, "parent %s\n", brc_oid_format(hex, &c->parents[i])));
    if (moves != NULL)
        BRC_TRY(brc_move_lines_write(out, moves, err));
    BRC_TRY(brc_buf_printf(out, err, "author %s\ntime %" PRId64 "\n", c->author, c->time_us));
    if (c->meta_json != NULL && strcmp(c->meta_json, "{}") != 0)
        BRC_TRY(brc_buf_printf(out, err, "meta %s\n", c->meta_json));
    BRC_TRY(brc_buf_text(out, "\n", err));
    return brc_buf_text(out, c->message, err);
}

int brc_commit_put(brc_store *store, brc_commit *commit, const brc_move_set *moves, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    BRC_TRY(commit_check(commit, err));
    int rc = commit_write(&text, commit, moves, err);
    if (rc == BRC_OK)
        rc = brc_store_put(store, BRC_KIND_COMMIT, text.data, text.len, &commit->id, err);
    if (rc == BRC_OK)
        rc = brc_boundary_drop(store, &commit->id, err); /* the commit's parents are in the file
                                                          * now */
    if (rc == BRC_OK)
        rc = brc_commit_info_put(store, commit, err);
    brc_buf_dispose(&text);
    return rc;
}

/* ---- reading -------------------------------------------------------------------- */

/* Reads the hexadecimal digits of exactly one id. */
static int read_oid(brc_oid *out, const char *hex, size_t len, size_t id_len, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    if (len != 2 * id_len || strspn(hex, "0123456789abcdef") < len)
        return brc_fail(err, BRC_EINVAL, "'%.*s' is not an id of %zu hexadecimal digits",
                        (int)len, hex,
                        2 * id_len);
    for (size_t i = 0; i < len; i++) {
        int digit = hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10;
        out->bytes[i / 2] = (uint8_t)(out->bytes[i / 2] << 4 | digit);
    }
    if (brc_oid_is_zero(out))
        return brc_fail(err, BRC_EINVAL, "an id that is all zeros names nothing");
    return BRC_OK;
}

/* A commit and everything it points to, in one piece of memory except for the moves. */
typedef struct commit_memory {
    brc_commit commit;
    brc_move_set moves;
    brc_oid *nearest; /* if parents have expired, the commits that stand for them */
    brc_oid parents[BRC_MAX_PARENTS];
    char text[];
} commit_memory;

/* Takes the line "word rest" off the front of the text. */
static char *commit_line(char **at, const char *word)
{
    size_t len = strlen(word);
    char *end = strchr(*at, '\n');
    if (end == NULL || strncmp(*at, word, len) != 0)
        return NULL;
    char *rest = *at + len;
    *end = '\0';
    *at = end + 1;
    return rest;
}

/* Checks the meta, which is shown to others as JSON. */
static int commit_meta_check(const char *text, brc_error *err)
{
    brc_json *meta;
    BRC_TRY(brc_json_parse(&meta, text, strlen(text), 0, err));
    int is_object = brc_json_kind(meta) == BRC_JSON_OBJECT;
    brc_json_free(meta);
    return is_object ? BRC_OK : brc_fail(err, BRC_EINVAL, "its meta is not a JSON object");
}

static int commit_moves_read(commit_memory *m, char **at, brc_error *err)
{
    char *line;
    while ((line = commit_line(at, "move ")) != NULL) {
        if (m->commit.nparents == 0)
            return brc_fail(err, BRC_EINVAL, "it has moves, but no parent");
        BRC_TRY(brc_move_line_read(&m->moves, line, err));
    }
    return brc_move_set_seal(&m->moves, err);
}

static int commit_fields(commit_memory *m, size_t id_len, brc_error *err)
{
    char *at = m->text, *value, number[24];
    brc_commit *c = &m->commit;
    if ((value = commit_line(&at, "root ")) != NULL)
        BRC_TRY(read_oid(&c->root, value, strlen(value), id_len, err));
    while ((value = commit_line(&at, "parent ")) != NULL) {
        if (c->nparents == BRC_MAX_PARENTS)
            return brc_fail(err, BRC_EINVAL, "it has too many parents");
        BRC_TRY(read_oid(&m->parents[c->nparents++], value, strlen(value), id_len, err));
    }
    BRC_TRY(commit_moves_read(m, &at, err));
    c->author = commit_line(&at, "author ");
    value = commit_line(&at, "time ");
    if (c->author == NULL || value == NULL)
        return brc_fail(err, BRC_EINVAL, "its author or time is missing");
    c->time_us = strtoll(value, NULL, 10);
    snprintf(number, sizeof(number), "%" PRId64, c->time_us);
    if (*c->author == '\0' || strcmp(number, value) != 0)
        return brc_fail(err, BRC_EINVAL, "its author is empty, or its time is not a number");
    value = commit_line(&at, "meta ");
    c->meta_json = value != NULL ? value : "{}";
    if (value != NULL)
        BRC_TRY(commit_meta_check(value, err));
    if (*at != '\n')
        return brc_fail(err, BRC_EINVAL, "it has a line that cannot be understood");
    c->message = at + 1;
    c->parents = m->parents;
    return BRC_OK;
}

int brc_commit_parse(brc_commit **out, const brc_oid *id, brc_span text, size_t id_len,
                     brc_error *err)
{
    void *p;
    char hex[65];
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(commit_memory) + text.len + 1, err));
    commit_memory *m = p;
    memcpy(m->text, text.data, text.len);
    m->commit.id = *id;
    int is_text = memchr(m->text, 0, text.len) == NULL && brc_utf8_valid(m->text, text.len);
    int rc = is_text ? commit_fields(m, id_len, err) : BRC_EINVAL;
    if (rc < 0) {
        brc_commit_free(&m->commit);
        if (rc == BRC_ENOMEM)
            return rc;
        return brc_fail(err, BRC_ECORRUPT, "commit %s is damaged: it does not have the form of a "
                                           "commit",
                        brc_oid_format(hex, id));
    }
    *out = &m->commit;
    return BRC_OK;
}

/* Reads the moves since the first commit that stands for a parent. */
static int cut_moves_read(commit_memory *m, char *text, brc_error *err)
{
    char *line;
    brc_move_set_dispose(&m->moves);
    memset(&m->moves, 0, sizeof(m->moves));
    while ((line = commit_line(&text, "move ")) != NULL)
        BRC_TRY(brc_move_line_read(&m->moves, line, err));
    if (*text != '\0')
        return brc_fail(err, BRC_EINVAL, "they are not moves");
    return brc_move_set_seal(&m->moves, err);
}

/* Replaces expired parents by the commits that stand for them. */
static int commit_cut(commit_memory *m, brc_store *store, brc_error *err)
{
    brc_boundary cut;
    char hex[65];
    int rc = brc_boundary_get(store, &m->commit.id, &cut, err);
    if (rc <= 0)
        return rc;
    m->nearest = cut.parents;
    m->commit.parents = cut.parents;
    m->commit.nparents = cut.nparents;
    m->commit.flags |= BRC_PAST_EXPIRED;
    rc = cut_moves_read(m, cut.moves, NULL);
    free(cut.moves);
    if (rc < 0 && rc != BRC_ENOMEM)
        return brc_fail(err, BRC_ECORRUPT,
                        "the record of the expired parents of commit %s is damaged; run 'breccia "
                        "fsck'",
                        brc_oid_format(hex, &m->commit.id));
    return rc < 0 ? brc_nomem(err) : BRC_OK;
}

int brc_commit_get(brc_commit **out, brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_span text;
    *out = NULL;
    BRC_TRY(brc_store_get(store, BRC_KIND_COMMIT, id, &text, err));
    BRC_TRY(brc_commit_parse(out, id, text, brc_store_id_len(store), err));
    int rc = commit_cut((commit_memory *)*out, store, err);
    if (rc < 0) {
        brc_commit_free(*out);
        *out = NULL;
    }
    return rc;
}

void brc_commit_free(brc_commit *commit)
{
    commit_memory *m = (commit_memory *)commit; /* the commit is its first member */
    if (m == NULL)
        return;
    brc_move_set_dispose(&m->moves);
    free(m->nearest);
    free(m);
}

const brc_move_set *brc_commit_moves(const brc_commit *commit)
{
    return &((const commit_memory *)commit)->moves;
}

int brc_commit_root(brc_store *store, const brc_oid *id, brc_oid *root, brc_error *err)
{
    brc_commit *c;
    BRC_TRY(brc_commit_get(&c, store, id, err));
    *root = c->root;
    brc_commit_free(c);
    return BRC_OK;
}

int brc_commit_need(brc_commit **out, brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    char hex[65];
    *out = NULL;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!o.found || o.kind != BRC_KIND_COMMIT)
        return brc_fail(err, BRC_ENOTFOUND, "there is no commit %s in %s",
                        brc_oid_format(hex, id), brc_store_path(store));
    return brc_commit_get(out, store, id, err);
}
