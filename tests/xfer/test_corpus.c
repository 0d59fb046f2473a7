/* The corpus of small files (tests/kit/corpus.h): in, compared by element, out, and in again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/corpus.h"
#include "../kit/hdf5_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(corpus);

static corpus_table (*const tables[])(void) = {corpus_hdf5, corpus_netcdf, corpus_zarr, corpus_npy};
enum { TABLES = sizeof(tables) / sizeof(tables[0]), LEAST = 40 };

/* The i-th of all; NULL behind the last. */
static const corpus_entry *entry_at(int i)
{
    for (int k = 0; k < TABLES; k++) {
        const corpus_table table = tables[k]();
        if (i < table.n)
            return &table.entries[i];
        i -= table.n;
    }
    return NULL;
}

static int count_entries(void)
{
    int n = 0;
    while (entry_at(n) != NULL)
        n++;
    return n;
}

static void make(exchange_kit *kit, const corpus_entry *e)
{
    int nc;
    if (e->hdf5 != NULL) {
        hid_t file = hdf5_new_file(kit, e->file, !e->mode);
        e->hdf5(file);
        H5(H5Fclose(file));
    } else if (e->netcdf != NULL) {
        NC(nc_create(exchange_path(kit, e->file), e->mode, &nc));
        e->netcdf(nc);
        NC(nc_close(nc));
    } else {
        e->other(kit, e->file);
    }
}

static void import_as(exchange_kit *kit, const corpus_entry *e, const char *source,
                      const char *path)
{
    int rc = brc_import(kit->session, source, path, NULL, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", e->cause, kit->err.message);
}

static void check_note(exchange_kit *kit, const corpus_entry *e, const char *root)
{
    char path[256];
    brc_buf doc = BRC_BUF_INIT;
    if (e->note == NULL)
        return;
    const char *words = strchr(e->note, ' ');
    ck_assert_ptr_nonnull(words);
    snprintf(path, sizeof(path), "%s%.*s", root, (int)(words - e->note), e->note);
    int rc = brc_node_json(&doc, kit->session, path, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    ck_assert_msg(memmem(doc.data, doc.len, words + 1, strlen(words + 1)) != NULL,
                  "%s: \"%s\" is not in %.*s", e->cause, words + 1, (int)doc.len,
                  (const char *)doc.data);
    brc_buf_dispose(&doc);
}

/* Exported from `from` by this format (NULL: by the ending), imported as `to`, and compared. */
static void out_and_in(exchange_kit *kit, const corpus_entry *e, const char *from, const char *name,
                       const char *format, const char *to)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = format;
    int rc = brc_export(kit->session, from, exchange_path(kit, name), &opts, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s, to %s: %s", e->cause, name, kit->err.message);
    import_as(kit, e, exchange_path(kit, name), to);
    hdf5_check_all(kit, to, e->checks);
    check_note(kit, e, to);
}

/* To its own format, or that it cannot be. */
static void to_its_own(exchange_kit *kit, const corpus_entry *e, const char *from,
                       const char *stem, const char *to)
{
    char name[40];
    snprintf(name, sizeof(name), "%s%s", stem, strrchr(e->file, '.'));
    if (e->refused == NULL) {
        out_and_in(kit, e, from, name, e->format, to);
        return;
    }
    int rc = brc_export(kit->session, from, exchange_path(kit, name), NULL, &kit->err);
    ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(kit->err.message, e->refused) != NULL, "%s", kit->err.message);
    ck_assert(!exchange_exists(exchange_path(kit, name)));
}

CASE("files", .timeout = 60);

LOOP(in_compared_out_and_in_again, 0, count_entries())
{
    exchange_kit kit;
    const corpus_entry *e = entry_at(_i);
    exchange_start(&kit);
    make(&kit, e);
    import_as(&kit, e, exchange_path(&kit, e->file), "/in");
    ck_assert_ptr_nonnull(e->checks[0]);
    hdf5_check_all(&kit, "/in", e->checks);
    check_note(&kit, e, "/in");
    to_its_own(&kit, e, "/in", "same", "/same");
    out_and_in(&kit, e, "/in", "three.zarr", "zarr3", "/three");
    out_and_in(&kit, e, "/three", "three.zip", NULL, "/zip"); /* what came through Zarr */
    to_its_own(&kit, e, "/zip", "back", "/back");
    exchange_stop(&kit);
}

TEST(there_are_enough)
{
    ck_assert_int_ge(count_entries(), LEAST);
    for (int i = 0; i < count_entries(); i++)
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(entry_at(i)->cause, entry_at(k)->cause);
}
