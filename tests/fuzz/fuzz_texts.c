/*
 * The texts that people and programs write in arguments: the first byte says which parser reads
 * the rest.
 *
 *   s slice    r revision    t time    n name of a ref    p path    k key of the Zarr view
 *   e element of an array    d name of a data type
 */
#include "../../src/history/commit.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/codec/registry.h"
#include "../../src/work/session.h"
#include "../../src/nd/shape.h"

static int is_told(int rc)
{
    return rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_ENOTFOUND || rc == BRC_EAMBIGUOUS ||
           rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED;
}

/* A selection lies in the array. */
static void read_slice(const char *text)
{
    static const uint64_t shape[4] = { 10, 0, 1, UINT64_MAX };
    brc_error err = BRC_ERROR_INIT;
    brc_sel sel = BRC_SEL_INIT;
    for (int ndim = 0; ndim <= 4; ndim++) {
        int rc = brc_sel_read(&sel, ndim, shape, text, &err);
        FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL, &err);
        if (rc == BRC_OK)
            FUZZ_TRUE(brc_sel_check(&sel, ndim, shape, &err) == BRC_OK, &err);
    }
}

static void read_revision(const char *text)
{
    brc_error err = BRC_ERROR_INIT;
    brc_commit *commit;
    brc_session *s = fuzz_history();
    brc_store *store = s->repo->store;
    brc_oid id;
    int rc = brc_rev_resolve(store, text, &id, &err);
    FUZZ_TRUE(is_told(rc), &err);
    if (rc == BRC_OK) {
        FUZZ_TRUE(brc_commit_get(&commit, store, &id, &err) == BRC_OK, &err);
        brc_commit_free(commit);
    }
}

static void read_time(const char *text)
{
    brc_error err = BRC_ERROR_INIT;
    int64_t time;
    int rc = brc_time_parse(&time, text, &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL, &err);
}

static void read_ref_name(const char *text)
{
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_ref_name_check(text, &err);
    FUZZ_TRUE(rc == BRC_OK || rc == BRC_EINVAL, &err);
}

/* A path's normal form is its own, and each of its names is allowed. */
static void read_path(const char *text)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf path = BRC_BUF_INIT, again = BRC_BUF_INIT;
    int rc = brc_path_normal(&path, text, &err);
    FUZZ_TRUE(is_told(rc), &err);
    if (rc == BRC_OK) {
        FUZZ_TRUE(brc_path_normal(&again, (const char *)path.data, &err) == BRC_OK, &err);
        FUZZ_TRUE(again.len == path.len && memcmp(again.data, path.data, path.len) == 0, NULL);
        brc_entry entry;
        brc_session *s = fuzz_history();
        rc = brc_snapshot_find(s->repo->store, &s->base, (const char *)path.data, &entry, &err);
        FUZZ_TRUE(is_told(rc), &err);
    }
    brc_buf_dispose(&path);
    brc_buf_dispose(&again);
}

static void read_key(const char *text)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf value = BRC_BUF_INIT;
    int rc = brc_key_get(&value, fuzz_history(), text, NULL, NULL, &err);
    FUZZ_TRUE(is_told(rc), &err);
    brc_buf_dispose(&value);
}

/* The text of an element reads back as an element with the same text. */
static void read_element(const char *text)
{
    static const char *const arrays[] = { "/a", "/g/b", "/g/t" };
    brc_error err = BRC_ERROR_INIT;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        brc_buf element = BRC_BUF_INIT, json = BRC_BUF_INIT, people = BRC_BUF_INIT;
        brc_array *a;
        FUZZ_TRUE(brc_array_open(&a, fuzz_history(), arrays[i], &err) == BRC_OK, &err);
        int rc = brc_element_parse(&element, a, text, &err);
        FUZZ_TRUE(is_told(rc), &err);
        if (rc == BRC_OK) {
            FUZZ_TRUE(brc_element_format(&json, a, element.data, 1, &err) == BRC_OK, &err);
            FUZZ_TRUE(brc_element_format(&people, a, element.data, 0, &err) == BRC_OK, &err);
        }
        brc_array_free(a);
        brc_buf_dispose(&element);
        brc_buf_dispose(&json);
        brc_buf_dispose(&people);
    }
}

static void read_type(const char *text)
{
    brc_error err = BRC_ERROR_INIT;
    brc_dtype *type, *again;
    int big;
    int rc = brc_dtype_open(&type, fuzz_registry(), NULL, text, &err);
    FUZZ_TRUE(is_told(rc), &err);
    if (rc == BRC_OK) {
        rc = brc_dtype_open(&again, fuzz_registry(), NULL, type->name, &err);
        FUZZ_TRUE(rc == BRC_OK && again->item_size == type->item_size, &err);
        brc_dtype_free(again);
        brc_dtype_free(type);
    }
    rc = brc_dtype_open_npy(&type, &big, fuzz_registry(), text, &err);
    FUZZ_TRUE(is_told(rc), &err);
    if (rc == BRC_OK)
        brc_dtype_free(type);
}

void fuzz_texts(const uint8_t *data, size_t len)
{
    static const struct {
        char letter;
        void (*read)(const char *text);
    } parsers[] = { { 's', read_slice },   { 'r', read_revision }, { 't', read_time },
                    { 'n', read_ref_name }, { 'p', read_path },    { 'k', read_key },
                    { 'e', read_element },  { 'd', read_type } };
    if (len == 0)
        return;
    char *text = fuzz_text(data + 1, len - 1);
    for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++)
        if (parsers[i].letter == (char)data[0])
            parsers[i].read(text);
    free(text);
}
