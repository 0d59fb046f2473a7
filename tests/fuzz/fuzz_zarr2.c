/* A .zarray or .zgroup: what it becomes is a zarr.json, and goes back. */
#include "fuzz.h"

#include "../../src/xfer/zarr/zarr2.h"
#include "../../src/zarr/doc/meta.h"

static void check_array(const brc_json *zarray)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc, *source, *back, *attrs;
    brc_meta meta;
    if (brc_zarr2_array_import(&doc, &source, zarray, NULL, '.', fuzz_registry(), &err) < 0)
        return;
    brc_json_free(source);
    int rc = brc_meta_open(&meta, fuzz_registry(), doc, &err);
    FUZZ_TRUE(rc != BRC_EINTERNAL && rc != BRC_ENOMEM, &err);
    if (rc == BRC_OK) {
        rc = brc_zarr2_array_write(&back, &attrs, doc, 0, fuzz_registry(), &err);
        FUZZ_TRUE(rc == BRC_OK || rc == BRC_EUNSUPPORTED || rc == BRC_EINVAL, &err);
        brc_json_free(back);
        brc_json_free(attrs);
        brc_meta_dispose(&meta);
    }
    brc_json_free(doc);
}

static void check_group(const brc_json *zgroup)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *doc, *back, *attrs;
    if (brc_zarr2_group_read(&doc, zgroup, NULL, &err) < 0)
        return;
    FUZZ_TRUE(brc_meta_check_group(doc, &err) == BRC_OK, &err);
    FUZZ_TRUE(brc_zarr2_group_write(&back, &attrs, doc, &err) == BRC_OK, &err);
    brc_json_free(back);
    brc_json_free(attrs);
    brc_json_free(doc);
}

void fuzz_zarr2(const uint8_t *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_json *json;
    if (brc_json_parse(&json, (const char *)data, len, BRC_JSON_NAN, &err) < 0)
        return;
    check_array(json);
    check_group(json);
    brc_json_free(json);
}
