/* A zarr.json: checked, opened, and again what it was when it is printed. */
#include "fuzz.h"

#include <string.h>

#include "../../src/xfer/documents.h"
#include "../../src/zarr/doc/meta.h"

/* The text of a fill value reads back to the same bits. */
static void check_fill(const brc_meta *meta)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf text = BRC_BUF_INIT, again = BRC_BUF_INIT;
    brc_json *json;
    const brc_dtype *type = meta->type;
    int rc = type->ops->print(type, meta->fill.data, meta->fill.len, BRC_PRINT_FILL, &text, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    rc = brc_json_parse(&json, (const char *)text.data, text.len, 0, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    FUZZ_TRUE(type->ops->parse(type, json, &again, &err) == BRC_OK, &err);
    FUZZ_TRUE(again.len == meta->fill.len, NULL);
    FUZZ_TRUE(again.len == 0 || memcmp(again.data, meta->fill.data, again.len) == 0, NULL);
    brc_json_free(json);
    brc_buf_dispose(&text);
    brc_buf_dispose(&again);
}

static int open_document(const brc_json *doc, brc_error *err)
{
    brc_meta meta;
    int kind;
    BRC_TRY(brc_meta_kind(doc, &kind, err));
    if (kind == BRC_GROUP)
        return brc_meta_check_group(doc, err);
    BRC_TRY(brc_meta_open(&meta, fuzz_registry(), doc, err));
    if (meta.type != NULL)
        check_fill(&meta);
    brc_meta_dispose(&meta);
    return BRC_OK;
}

/* A marked document is strict JSON, and comes back as it was; restoring a document that has no
 * marks of ours does no harm. */
static void check_marks(const brc_json *doc, int version)
{
    brc_error err = BRC_ERROR_INIT;
    brc_nan_out out = { .version = version };
    brc_buf text = BRC_BUF_INIT;
    brc_json *copy, *came;
    FUZZ_TRUE(brc_json_clone(&copy, doc, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_nan_mark(&out, copy, "/n", &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_json_write(&text, copy, 0, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_json_parse(&came, (const char *)text.data, text.len, 0, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_nan_restore(came, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_json_equal(doc, came), NULL);
    FUZZ_TRUE(brc_nan_restore(came, &err) == BRC_OK, &err);
    brc_json_free(copy);
    brc_json_free(came);
    brc_buf_dispose(&text);
    brc_nan_out_dispose(&out);
}

void fuzz_zarr_json(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc, *again;
    brc_buf text = BRC_BUF_INIT;

    if (brc_json_parse_document(&doc, (const char *)data, len, &err) < 0)
        return;
    int rc = open_document(doc, &err);
    FUZZ_TRUE(rc != BRC_EINTERNAL && rc != BRC_ENOMEM, &err);
    FUZZ_TRUE(brc_json_write(&text, doc, 0, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_json_parse_document(&again, (const char *)text.data, text.len, &err) == BRC_OK,
              &err);
    FUZZ_TRUE(brc_json_equal(doc, again), NULL);
    if (rc == BRC_OK) {
        check_marks(doc, 2);
        check_marks(doc, 3);
    }
    FUZZ_TRUE(open_document(again, &err) == rc, &err);
    brc_json_free(doc);
    brc_json_free(again);
    brc_buf_dispose(&text);
}
