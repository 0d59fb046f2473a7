/*
 * Keys and bytes that a client sets: a list of steps, each an operation, a key (one of some, or any
 * text) and a value, which come from the input. What was set is there, with the bytes that it had
 * unless it is a document or a chunk, and everything can be read, listed, committed or refused.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/work/session.h"
#include "../../src/zarr/transfer.h"

enum { STEPS_MOST = 32 };

static const char *const known_keys[] = {
    "zarr.json", "a/zarr.json", "a/c/0", "a/c/1", "a/0", "a", "a/b/zarr.json", "a/b/c/0/0",
    "g/zarr.json", "g/a/zarr.json", "g/a/c/0", "c/0", "../x", "a//b", ".zattrs",
    "a/c/99999999999999999999",
};

/* A client's refusals; anything else than these is a fault. */
static int is_refusal(int rc)
{
    return rc == BRC_EINVAL || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED || rc == BRC_ECONFLICT ||
           rc == BRC_ENOTFOUND;
}

static int checked(int rc, const brc_error *err)
{
    FUZZ_TRUE(rc >= 0 || is_refusal(rc), err);
    return rc;
}

/* The next piece of the input: its length comes first. */
static uint8_t *take_piece(brc_reader *r, size_t *len)
{
    size_t n = (size_t)brc_read_varint(r);
    if (r->bad || n > brc_reader_left(r))
        n = r->bad ? 0 : brc_reader_left(r);
    const uint8_t *at = n > 0 ? brc_read_bytes(r, n) : (const uint8_t *)"";
    *len = n;
    return fuzz_bytes(at, n);
}

static char *take_key(brc_reader *r)
{
    size_t len;
    const uint8_t which = brc_read_byte(r);
    const size_t n = sizeof(known_keys) / sizeof(known_keys[0]);
    if (which < 0xe0)
        return fuzz_text((const uint8_t *)known_keys[which % n], strlen(known_keys[which % n]));
    uint8_t *bytes = take_piece(r, &len);
    char *text = fuzz_text(bytes, len);
    free(bytes);
    return text;
}

/* Returns whether the value may be a shard without chunks, which has no key. */
static int may_be_empty_shard(const uint8_t *value, size_t len)
{
    size_t run = 0;
    for (size_t i = 0; i < len && run < 16; i++)
        run = value[i] == 0xff ? run + 1 : 0;
    return run == 16;
}

static int set_and_get(brc_session *s, const char *key, brc_reader *r)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    size_t len;
    int is = 0;
    uint8_t *value = take_piece(r, &len);
    const int rc = checked(brc_key_set(s, key, value, len, 0, &err), &err);
    if (rc == BRC_OK)
        is = checked(brc_key_get(NULL, s, key, NULL, NULL, &err), &err) == BRC_OK;
    if (rc == BRC_OK)
        FUZZ_TRUE(is || may_be_empty_shard(value, len), &err);
    if (rc == BRC_OK && is) {
        FUZZ_TRUE(brc_key_get(NULL, s, key, NULL, &info, &err) == BRC_OK, &err);
        FUZZ_TRUE(brc_key_get(&out, s, key, NULL, NULL, &err) == BRC_OK, &err);
        FUZZ_TRUE(out.len == info.length, NULL);
        /* The same again changes nothing. */
        FUZZ_TRUE(brc_key_set(s, key, out.data, out.len, 0, &err) == BRC_OK, &err);
        FUZZ_TRUE(brc_key_get(&out, s, key, NULL, NULL,
                              &err) == BRC_OK && out.len == info.length, &err);
    }
    brc_buf_dispose(&out);
    free(value);
    return rc;
}

static void list_all(brc_session *s)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const char *key;
    int rc;
    FUZZ_TRUE(brc_keys(&it, s, "", 0, &err) == BRC_OK, &err);
    while ((rc = brc_next(it, &key, &err)) > 0)
        FUZZ_TRUE(brc_key_get(NULL, s, key, NULL, NULL, &err) == BRC_OK, &err);
    FUZZ_TRUE(rc == 0, &err);
    brc_iter_free(it);
}

static int step(brc_session *s, brc_reader *r)
{
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    const uint8_t what = brc_read_byte(r);
    char *key = take_key(r);
    int rc;
    opts.message = "fuzz";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    if (what % 8 == 0)
        rc = checked(brc_key_delete(s, key, 0, &err), &err);
    else if (what % 8 == 1)
        rc = checked(brc_key_delete(s, key, BRC_KEY_PREFIX, &err), &err);
    else if (what % 8 == 2)
        rc = checked(brc_session_commit(&id, s, &opts, &err), &err);
    else
        rc = set_and_get(s, key, r);
    free(key);
    return rc;
}

void fuzz_keys(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_reader r = brc_reader_of(data, len);
    brc_session *s = fuzz_session();
    breccia *repo = brc_session_repo(s);
    int rc = BRC_OK;
    FUZZ_TRUE(brc_begin(repo, &err) == BRC_OK, &err);
    /* After a refusal within the transaction nothing of it can be kept. */
    for (int i = 0; i < STEPS_MOST && brc_reader_left(&r) > 0 && !r.bad; i++)
        if ((rc = step(s, &r)) < 0 && rc != BRC_EINVAL)
            break;
    if (rc >= 0)
        list_all(s);
    FUZZ_TRUE(brc_end(repo, 0, &err) == BRC_OK, &err);
}
