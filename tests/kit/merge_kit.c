#include "ios.h"
#include "merge_kit.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/history/commit.h"
#include "../../src/work/session.h"
#include "../../src/zarr/transfer.h"

void merge_kit_start(merge_kit *k, const merge_type *type)
{
    memset(k, 0, sizeof(*k));
    scenario_start(&k->t);
    k->type = type;
}

void merge_kit_stop(merge_kit *k)
{
    brc_buf_dispose(&k->keys);
    brc_buf_dispose(&k->mask);
    scenario_stop(&k->t);
}

/* ---- versions -------------------------------- */

static uint64_t elements_of(const merge_version *v)
{
    uint64_t n = 1;
    for (int i = 0; i < v->ndim; i++)
        n *= v->shape[i];
    return n;
}

static void list_numbers(char *out, size_t size, int ndim, const uint64_t *numbers, uint64_t times)
{
    size_t len = 0;
    out[0] = '\0';
    for (int i = 0; i < ndim; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%llu", i > 0 ? "," : "",
                                (unsigned long long)(numbers[i] * times));
    ck_assert_uint_lt(len, size);
}

static void kit_document(const merge_kit *k, const merge_version *v, brc_json **out)
{
    char doc[4096], dims[256], chunk[256], outer[256], codecs[1024];
    const char *fill = k->type->values[v->fill];
    const int word = fill[0] == 'N' || fill[0] == 'I' || strcmp(fill, "-Infinity") == 0;
    list_numbers(dims, sizeof(dims), v->ndim, v->shape, 1);
    list_numbers(chunk, sizeof(chunk), v->ndim, v->chunk, 1);
    list_numbers(outer, sizeof(outer), v->ndim, v->chunk, v->shard > 0 ? v->shard : 1);
    snprintf(codecs, sizeof(codecs), "[%s%s]", k->type->to_bytes, v->more != NULL ? v->more : "");
    if (v->shard > 0)
        snprintf(codecs, sizeof(codecs),
                 "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[%s],"
                 "\"codecs\":[%s],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{"
                 "\"endian\":\"little\"}}]}}%s]",
                 chunk, k->type->to_bytes, v->more != NULL ? v->more : "");
    int len = snprintf(doc, sizeof(doc),
                       "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%s],"
                       "\"data_type\":%s,\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"
                       "\"chunk_shape\":[%s]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
                       "\"fill_value\":%s%s%s,\"codecs\":%s}",
                       dims, k->type->dtype, outer, word ? "\"" : "", fill, word ? "\"" : "",
                       codecs);
    ck_assert_int_lt(len, (int)sizeof(doc));
    ck_assert_msg(brc_json_parse(out, doc, strlen(doc), 0, NULL) == BRC_OK, "%s", doc);
}

static void merge_kit_bytes(merge_kit *k, const merge_version *v, brc_array *a, brc_buf *out)
{
    brc_buf values[MERGE_VALUES];
    const uint64_t n = elements_of(v);
    for (int i = 0; i < MERGE_VALUES; i++) {
        values[i] = (brc_buf)BRC_BUF_INIT;
        OK(&k->t, brc_element_parse(&values[i], a, k->type->values[i], &k->t.err));
    }
    for (uint64_t i = 0; i < n; i++)
        OK(&k->t, brc_buf_append(out, values[v->values[i]].data, values[v->values[i]].len,
                                 &k->t.err));
    for (int i = 0; i < MERGE_VALUES; i++)
        brc_buf_dispose(&values[i]);
}

void merge_kit_keep(merge_kit *k, int side)
{
    brc_oid root, commit = scenario_commit(&k->t, "a version");
    breccia *repo = k->t.repo;
    OK(&k->t, brc_store_begin_read(repo->store, &k->t.err));
    OK(&k->t, brc_commit_root(repo->store, &commit, &root, &k->t.err));
    OK(&k->t, brc_snapshot_find(repo->store, &root, "/a", &k->side[side], &k->t.err));
    brc_store_end_read(repo->store);
    ck_assert_int_eq(k->side[side].kind, BRC_ARRAY);
}

void merge_kit_store(merge_kit *k, int side)
{
    scenario *t = &k->t;
    const merge_version *v = &k->v[side];
    brc_buf data = BRC_BUF_INIT;
    brc_json *doc;
    brc_array *a;
    char why[32];
    memset(&k->side[side], 0, sizeof(k->side[side]));
    if (!v->is_there)
        return;
    (void)!brc_node_remove(t->session, "/a", NULL);
    kit_document(k, v, &doc);
    ck_assert_msg(brc_array_create_doc(&a, t->session, "/a", doc, &t->err) == BRC_OK, "%s %s",
                  k->type->dtype, t->err.message);
    merge_kit_bytes(k, v, a, &data);
    if (elements_of(v) > 0)
        OK(t, brc_array_write(a, NULL, data.data, data.len, &t->err));
    brc_buf_dispose(&data);
    brc_array_free(a);
    brc_json_free(doc);
    snprintf(why, sizeof(why), "%u", k->stored++);
    OK(t, brc_attrs_set(t->session, "/", "n", why, &t->err)); /* something to commit, in any case */
    merge_kit_keep(k, side);
}

/* ---- merging -------------------------------- */

static int kit_chunk(void *ctx, brc_span key, const brc_oid *id, brc_error *err)
{
    static const brc_oid none;
    merge_kit *k = ctx;
    if (k->stops_after > 0 && (int)k->calls == k->stops_after)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    k->calls++;
    BRC_TRY(brc_buf_varint(&k->keys, key.len, err));
    BRC_TRY(brc_buf_append(&k->keys, key.data, key.len, err));
    return brc_buf_append(&k->keys, id != NULL ? id->bytes : none.bytes, sizeof(none.bytes), err);
}

static int kit_conflict(void *ctx, const brc_chunk_conflict *c, brc_error *err)
{
    merge_kit *k = ctx;
    k->conflicts++;
    k->kinds[c->kind]++;
    k->elements += c->elements;
    memcpy(k->first, c->first, sizeof(k->first));
    memcpy(k->last, c->last, sizeof(k->last));
    ck_assert_uint_ge(c->elements, 1);
    k->mask.len = 0;
    return brc_buf_append(&k->mask, c->mask.data, c->mask.len, err);
}

int merge_kit_try(merge_kit *k, const merge_version *result)
{
    const brc_merge_chunks_ops ops = {.ctx = k, .chunk = k->is_trial ? NULL : kit_chunk,
                                      .conflict = kit_conflict, .unknown = k->unknown};
    brc_json *doc;
    k->keys.len = 0;
    k->calls = k->conflicts = 0;
    k->elements = 0;
    memset(k->kinds, 0, sizeof(k->kinds));
    k->merge = (brc_chunk_merge){.repo = k->t.repo, .path = "/a", .favour = k->favour, .ops = &ops};
    for (int s = 0; s < BRC_SIDES; s++)
        k->merge.side[s] = k->side[k->swapped && s > 0 ? 3 - s : s];
    kit_document(k, result, &doc);
    k->merge.merged = doc;
    int rc = brc_merge_chunks(&k->merge, &k->t.err);
    brc_json_free(doc);
    k->merge.merged = NULL;
    return rc;
}

static void merge_kit_make(merge_kit *k, const merge_version *result)
{
    scenario *t = &k->t;
    brc_store *store = t->repo->store;
    brc_entry entry = k->merge.side[k->merge.map == BRC_CHUNKS_THEIRS ? BRC_SIDE_THEIRS
                                                                      : BRC_SIDE_OURS];
    brc_reader r = brc_reader_of(k->keys.data, k->keys.len);
    brc_json *doc;
    int64_t row;
    kit_document(k, result, &doc);
    (void)!brc_node_remove(t->session, "/m", NULL);
    OK(t, brc_session_begin(t->session, &t->err));
    while (brc_reader_left(&r) > 0) {
        const size_t len = (size_t)brc_read_varint(&r);
        const brc_oid before = entry.map;
        brc_edit edit = {.key = brc_read_bytes(&r, len), .key_len = len};
        edit.value = brc_read_bytes(&r, sizeof(brc_oid));
        edit.value_len = brc_store_id_len(store);
        static const brc_oid none;
        if (memcmp(edit.value, none.bytes, sizeof(none.bytes)) == 0)
            edit.value = NULL;
        OK(t, brc_map_edit(store, &before, &edit, 1, &entry.map, &t->err));
    }
    OK(t, brc_session_put_doc(t->session, "/m", &entry, doc, &row, &t->err));
    OK(t, brc_session_end(t->session, BRC_OK, &t->err));
    brc_json_free(doc);
}

void merge_kit_run(merge_kit *k, const merge_version *result)
{
    OK(&k->t, merge_kit_try(k, result));
    if (k->merge.map != BRC_CHUNKS_APART && !k->is_trial)
        merge_kit_make(k, result);
}

static void read_all(scenario *t, const char *path, brc_buf *out)
{
    brc_array *a = scenario_array_at(t, t->session, path);
    const brc_array_info *info = brc_array_describe(a);
    brc_sel all = BRC_SEL_INIT;
    sel_all(&all, a);
    if (info->item_size == 0) {
        OK(t, io_elements(a, &all, out, &t->err));
    } else {
        const size_t len = (size_t)brc_sel_count(&all) * info->item_size;
        OK(t, brc_buf_reserve(out, len, &t->err));
        OK(t, brc_array_read(a, &all, out->data, len, &t->err));
        out->len = len;
    }
    brc_array_free(a);
}

void merge_kit_check(merge_kit *k, const merge_version *want, const char *label)
{
    scenario *t = &k->t;
    brc_buf got = BRC_BUF_INIT, expected = BRC_BUF_INIT;
    brc_array *a = scenario_array_at(t, t->session, "/m");
    merge_kit_bytes(k, want, a, &expected);
    brc_array_free(a);
    read_all(t, "/m", &got);
    ck_assert_msg(got.len == expected.len, "%s: %zu bytes, not %zu", label, got.len, expected.len);
    for (size_t i = 0; i < got.len; i++)
        if (got.data[i] != expected.data[i])
            ck_abort_msg("%s: byte %zu of %zu is %d, not %d", label, i, got.len, got.data[i],
                         expected.data[i]);
    brc_buf_dispose(&got);
    brc_buf_dispose(&expected);
}
