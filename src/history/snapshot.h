/*
 * Snapshots: the hierarchy at one moment, as a tree of maps.
 *
 * A snapshot is the root of a map with one item, the root node, whose name is empty. A group's map
 * contains its children: the key is the child's name and a zero byte, and the value is an entry. An
 * array's map contains its chunks (map.h): the value is the chunk's id.
 *
 *   entry   u8 kind (1 group, 2 array), u8 parts, the document's id,
 *           if parts & 1 the map's root, if parts & 2 the id of the
 *           storage options
 *
 * The zero id is the empty snapshot: a root group with a plain document.
 */
#ifndef BRC_HISTORY_SNAPSHOT_H
#define BRC_HISTORY_SNAPSHOT_H

#include "../base/json.h"
#include "../base/node_path.h"
#include "../tree/map.h"

typedef struct brc_entry {
    int kind;        /* BRC_GROUP, BRC_ARRAY; 0: the node does not exist          */
    brc_oid doc;     /* zero: the document of a plain group                      */
    brc_oid map;     /* children or chunks; zero: none                           */
    brc_oid storage; /* zero: none                                               */
} brc_entry;

#define BRC_ENTRY_MAX (2 + 3 * 32)
size_t brc_entry_encode(uint8_t out[BRC_ENTRY_MAX], const brc_entry *entry, size_t id_len);
BRC_MUST_USE int brc_entry_decode(brc_entry *out, brc_span bytes, size_t id_len, brc_error *err);
int brc_entry_equal(const brc_entry *a, const brc_entry *b);

/* Decodes a child in a group's map: the key is its name and a zero byte. Fails with BRC_ECORRUPT if
 * the name is not allowed or the entry is damaged. */
BRC_MUST_USE int brc_child_decode(brc_entry *out, brc_span key, brc_span value, size_t id_len, brc_error *err);

/* Makes a child's key: its name and a zero byte. */
BRC_MUST_USE int brc_child_key(brc_buf *out, const char *name, size_t len, brc_error *err);

/* Finds the entry at a path of a snapshot; kind 0 if there is none. */
BRC_MUST_USE int brc_snapshot_find(brc_store *store, const brc_oid *snapshot, const char *path, brc_entry *out, brc_error *err);
/* Finds an entry below another entry. `path` is relative, such as "a/b"; "" is the entry itself. */
BRC_MUST_USE int brc_entry_find(brc_store *store, const brc_entry *from, const char *path, brc_entry *out, brc_error *err);
/* Writes the snapshot that has this root node. */
BRC_MUST_USE int brc_snapshot_put(brc_store *store, const brc_entry *root, brc_oid *out, brc_error *err);
/* The snapshot of a branch without a commit, zero in *root, becomes the id of the empty one. */
BRC_MUST_USE int brc_snapshot_normal(brc_store *store, brc_oid *root, brc_error *err);

/* Returns the document's text, borrowed until the next call on the store. */
BRC_MUST_USE int brc_entry_text(brc_store *store, const brc_entry *entry, brc_span *out, brc_error *err);
BRC_MUST_USE int brc_entry_doc(brc_store *store, const brc_entry *entry, brc_json **out, brc_error *err);

#endif
