#include "snapshot.h"

#include <string.h>

static const char plain_group[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";

enum { PART_MAP = 1, PART_STORAGE = 2 };

size_t brc_entry_encode(uint8_t out[BRC_ENTRY_MAX], const brc_entry *entry, size_t id_len)
{
    int map = !brc_oid_is_zero(&entry->map), storage = !brc_oid_is_zero(&entry->storage);
    size_t at = 0;
    out[at++] = (uint8_t)entry->kind;
    out[at++] = (uint8_t)((map ? PART_MAP : 0) | (storage ? PART_STORAGE : 0));
    memcpy(out + at, entry->doc.bytes, id_len);
    at += id_len;
    if (map) {
        memcpy(out + at, entry->map.bytes, id_len);
        at += id_len;
    }
    if (storage) {
        memcpy(out + at, entry->storage.bytes, id_len);
        at += id_len;
    }
    return at;
}

static int entry_read_id(brc_reader *r, brc_oid *out, size_t id_len)
{
    const uint8_t *id = brc_read_bytes(r, id_len);
    memset(out, 0, sizeof(*out));
    if (id != NULL)
        memcpy(out->bytes, id, id_len);
    return id != NULL && !brc_oid_is_zero(out);
}

int brc_entry_decode(brc_entry *out, brc_span bytes, size_t id_len, brc_error *err)
{
    brc_reader r = brc_reader_of(bytes.data, bytes.len);
    memset(out, 0, sizeof(*out));
    int kind = brc_read_byte(&r), parts = brc_read_byte(&r);
    int ok = (kind == BRC_GROUP || kind == BRC_ARRAY) && parts <= (PART_MAP | PART_STORAGE) &&
             entry_read_id(&r, &out->doc, id_len) &&
             (!(parts & PART_MAP) || entry_read_id(&r, &out->map, id_len)) &&
             (!(parts & PART_STORAGE) || entry_read_id(&r, &out->storage, id_len)) &&
             brc_reader_left(&r) == 0;
    if (!ok)
        return brc_fail(err, BRC_ECORRUPT, "a node's entry is damaged; run 'breccia fsck'");
    out->kind = kind;
    return BRC_OK;
}

int brc_entry_equal(const brc_entry *a, const brc_entry *b)
{
    return a->kind == b->kind && brc_oid_cmp(&a->doc, &b->doc) == 0 &&
           brc_oid_cmp(&a->map, &b->map) == 0 && brc_oid_cmp(&a->storage, &b->storage) == 0;
}

int brc_child_decode(brc_entry *out, brc_span key, brc_span value, size_t id_len, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    if (key.len == 0 || key.data[key.len - 1] != 0)
        return brc_fail(err, BRC_ECORRUPT, "a child's name is damaged; run 'breccia fsck'");
    BRC_TRY(brc_name_is_stored((const char *)key.data, key.len - 1, err));
    return brc_entry_decode(out, value, id_len, err);
}

int brc_child_key(brc_buf *out, const char *name, size_t len, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_append(out, name, len, err));
    return brc_buf_byte(out, 0, err);
}

static int child_find(brc_store *store, const brc_oid *map, const char *name, size_t len,
                      brc_entry *out, brc_error *err)
{
    int found = 0;
    brc_span value;
    brc_buf key = BRC_BUF_INIT;
    memset(out, 0, sizeof(*out));
    int rc = brc_child_key(&key, name, len, err);
    if (rc == BRC_OK)
        rc = brc_map_get(store, map, key.data, key.len, &found, &value, err);
    if (rc == BRC_OK && found)
        rc = brc_entry_decode(out, value, brc_store_id_len(store), err);
    brc_buf_dispose(&key);
    return rc;
}

int brc_entry_find(brc_store *store, const brc_entry *from, const char *path, brc_entry *out,
                   brc_error *err)
{
    brc_entry at = *from;
    while (*path != '\0' && at.kind != 0) {
        const char *slash = strchr(path, '/');
        size_t len = slash != NULL ? (size_t)(slash - path) : strlen(path);
        brc_oid map = at.map;
        if (at.kind != BRC_GROUP)
            memset(&at, 0, sizeof(at));
        else
            BRC_TRY(child_find(store, &map, path, len, &at, err));
        path += len + (slash != NULL);
    }
    *out = at;
    return BRC_OK;
}

int brc_snapshot_find(brc_store *store, const brc_oid *snapshot, const char *path, brc_entry *out,
                      brc_error *err)
{
    brc_entry root;
    memset(&root, 0, sizeof(root));
    if (brc_oid_is_zero(snapshot))
        root.kind = BRC_GROUP;
    else
        BRC_TRY(child_find(store, snapshot, "", 0, &root, err));
    if (root.kind == 0)
        return brc_fail(err, BRC_ECORRUPT, "a snapshot has no root node; run 'breccia fsck'");
    return brc_entry_find(store, &root, path + (*path == '/'), out, err);
}

int brc_snapshot_put(brc_store *store, const brc_entry *root, brc_oid *out, brc_error *err)
{
    static const uint8_t key[1] = {0};
    brc_entry entry = *root;
    uint8_t value[BRC_ENTRY_MAX];
    brc_oid none;
    memset(&none, 0, sizeof(none));
    if (brc_oid_is_zero(&entry.doc))
        BRC_TRY(brc_store_put(store, BRC_KIND_DOCUMENT, plain_group, strlen(plain_group),
                              &entry.doc, err));
    size_t len = brc_entry_encode(value, &entry, brc_store_id_len(store));
    brc_edit edit = {key, sizeof(key), value, len};
    return brc_map_edit(store, &none, &edit, 1, out, err);
}

int brc_entry_text(brc_store *store, const brc_entry *entry, brc_span *out, brc_error *err)
{
    if (brc_oid_is_zero(&entry->doc)) {
        *out = (brc_span){(const uint8_t *)plain_group, strlen(plain_group)};
        return BRC_OK;
    }
    return brc_store_get(store, BRC_KIND_DOCUMENT, &entry->doc, out, err);
}

int brc_entry_doc(brc_store *store, const brc_entry *entry, brc_json **out, brc_error *err)
{
    brc_span text;
    *out = NULL;
    BRC_TRY(brc_entry_text(store, entry, &text, err));
    int rc = brc_json_parse_document(out, (const char *)text.data, text.len, err);
    if (rc == BRC_EINVAL && err != NULL) /* it was checked when it was stored */
        brc_error_recode(err, BRC_ECORRUPT);
    return rc == BRC_EINVAL ? BRC_ECORRUPT : rc;
}

int brc_snapshot_normal(brc_store *store, brc_oid *root, brc_error *err)
{
    brc_entry entry;
    if (!brc_oid_is_zero(root))
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(store, root, "/", &entry, err));
    return brc_snapshot_put(store, &entry, root, err);
}
