/* The table of formats: that its rows are whole and distinct, and what leads to which. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "../../src/xfer/formats.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(formats);

/* Returns whether another row has this name or ending. */
static int is_taken(const brc_format *but, const char *text)
{
    const brc_format *f;
    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        if (f != but && f->name && strcmp(f->name, text) == 0)
            return 1;
        for (const char *const *e = f->endings; f != but && e && *e; e++)
            if (strcmp(*e, text) == 0)
                return 1;
    }
    return 0;
}

CASE("table");

TEST(rows_are_whole_and_distinct)
{
    const brc_format *f;
    int directories = 0;
    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        ck_assert(f->probe || f->export);
        ck_assert(!f->name == !f->export);
        ck_assert(!f->probe == !f->import && !f->probe == !f->size);
        ck_assert(!f->probe == !f->source_text && (f->probe || !f->is_group));
        ck_assert(!f->name || !is_taken(f, f->name));
        for (const char *const *e = f->endings; e && *e; e++)
            ck_assert(**e == '.' && !is_taken(f, *e));
        directories += f->is_directory;
    }
    ck_assert_int_eq(directories, 1);
}

static const brc_format *dest_format(const char *dest, const char *name)
{
    const brc_format *f;
    ck_assert_int_eq(brc_format_of_dest(&f, dest, name, NULL), BRC_OK);
    return f;
}

TEST(names_and_endings_lead_to_their_rows)
{
    const brc_format *f;
    char dest[40];
    for (size_t i = 0; (f = brc_format_at(i)) != NULL; i++) {
        if (f->name)
            ck_assert_ptr_eq(dest_format("x.any", f->name), f);
        for (const char *const *e = f->endings; f->export && e && *e; e++) {
            snprintf(dest, sizeof(dest), "a.b/x%s", *e);
            ck_assert_ptr_eq(dest_format(dest, NULL), f);
            for (char *c = dest; *c; c++)
                *c = (char)toupper((unsigned char)*c);
            ck_assert_ptr_eq(dest_format(dest, NULL), f);
        }
    }
    ck_assert_ptr_eq(dest_format("x.npy", "hdf5"), &brc_format_hdf5);
    ck_assert_ptr_eq(dest_format("a.npy/x", NULL), &brc_format_zarr3);
    ck_assert_ptr_eq(dest_format("a.npy/.npy", NULL), &brc_format_zarr3);
    ck_assert_ptr_eq(dest_format("v1.2", NULL), &brc_format_zarr3);
}

TEST(what_is_not_known_is_told_with_all_that_is)
{
    const brc_format *f, *row;
    brc_error err = BRC_ERROR_INIT, other = BRC_ERROR_INIT, source = BRC_ERROR_INIT;
    brc_source nothing = { .name = "x" };
    ck_assert_int_eq(brc_format_of_dest(&f, "x", "nonesuch", &err), BRC_EINVAL);
    ck_assert_int_eq(brc_format_of_dest(&f, "x.nonesuch", NULL, &other), BRC_EINVAL);
    nothing.is_gzip = 1; /* the file is not looked at */
    ck_assert_int_eq(brc_format_of_source(&f, &nothing, &source), BRC_EUNSUPPORTED);
    ck_assert_ptr_null(f);
    for (size_t i = 0; (row = brc_format_at(i)) != NULL; i++) {
        ck_assert(!row->name || strstr(err.message, row->name));
        ck_assert(!row->source_text || strstr(source.message, row->source_text));
        for (const char *const *e = row->endings; row->export && e && *e; e++)
            ck_assert(strstr(other.message, *e));
    }
    ck_assert(strstr(err.message, "netcdf3 and hdf5 can be written"));
}

static const struct {
    const char *head;
    size_t len;
    const brc_format *plain, *in_gzip; /* NULL: none */
} heads[] = {
    { "\x93NUMPY\1", 7, &brc_format_npy, &brc_format_npy },
    { "\x93NUMP", 5, NULL, NULL },
    { "\0\0\x08\1\0\0\0\2", 8, &brc_format_idx, &brc_format_idx },
    { "\0\0\x0A\1\0\0\0\2", 8, NULL, NULL },
    { "PK\3\4\0\0\0\0", 8, &brc_format_npz, NULL },
    { "PK\5\6\0\0\0\0", 8, &brc_format_npz, NULL },
    { "PK\1\2\0\0\0\0", 8, NULL, NULL },
    { "CDF\1\0\0\0\0", 8, &brc_format_netcdf, NULL },
    { "CDF\2\0\0\0\0", 8, &brc_format_netcdf, NULL },
    { "CDF\5\0\0\0\0", 8, &brc_format_netcdf, NULL },
    { "CDF\3\0\0\0\0", 8, NULL, NULL },
    { "CDF", 3, NULL, NULL },
    { "", 0, NULL, NULL },
};

EACH(sources_are_known_by_their_first_bytes, heads)
{
    exchange_kit kit;
    brc_source source;
    const brc_format *f;
    exchange_start(&kit);
    const char *file = exchange_file(&kit, "x.npz", heads[_i].head, heads[_i].len);
    ck_assert_int_eq(brc_source_look(&source, file, NULL), BRC_OK);
    ck_assert(!source.is_dir && !source.is_gzip && source.head_len == heads[_i].len);
    int rc = brc_format_of_source(&f, &source, NULL);
    ck_assert_int_eq(rc, heads[_i].plain ? BRC_OK : BRC_EUNSUPPORTED);
    ck_assert_ptr_eq(f, heads[_i].plain);
    source.is_gzip = 1;
    rc = brc_format_of_source(&f, &source, NULL);
    ck_assert_int_eq(rc, heads[_i].in_gzip ? BRC_OK : BRC_EUNSUPPORTED);
    ck_assert_ptr_eq(f, heads[_i].in_gzip);
    exchange_stop(&kit);
}
