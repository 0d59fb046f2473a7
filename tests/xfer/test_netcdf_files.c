/* NetCDF files of enemies, and real ones. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../../src/convert/hdf5/hdf5_driver.h"
#include "../../src/convert/netcdf/netcdf_driver.h"
#include "../kit/convert_kit.h"
#include "../kit/converters.h"
#include "../kit/effort.h"
#include "../kit/netcdf_kit.h"
#include "../kit/sanitized.h"
#include "../kit/suite.h"

TEST_SUITE(netcdf_files);

/* ---- enemies --------------------------------------------------- */

CASE("enemies", .timeout = 600);

/* A name that netCDF-C would take for a server's. */
TEST(names_are_files)
{
    exchange_kit kit;
    char source[512];
    exchange_start(&kit);
    ck_assert_int_eq(mkdir(exchange_path(&kit, "http:"), 0777), 0);
    netcdf_write_atomics(exchange_path(&kit, "http:/x.nc"), NC_NETCDF4, 1);
    snprintf(source, sizeof(source), "%s/http://x.nc", kit.dir);
    netcdf_import_ok(&kit, source, "/in");
    netcdf_check_bytes(&kit, "/in/byte1", netcdf_atomics[0].bytes, 3);
    ck_assert_int_eq(chdir(kit.dir), 0);
    netcdf_import_ok(&kit, "http://x.nc", "/relative");
    netcdf_export_ok(&kit, "/in", "http:/out#mode=zarr.nc", "netcdf");
    ck_assert_int_eq(chdir("/"), 0);
    exchange_stop(&kit);
}

static void put_bytes(exchange_kit *kit, const uint8_t *data, size_t len)
{
    (void)unlink(exchange_path(kit, "bad.nc"));
    exchange_file(kit, "bad.nc", data, len);
}

/* The import gives an error or values; afterwards nothing is left of it. */
static int try_import(exchange_kit *kit)
{
    int rc = brc_import(kit->session, exchange_path(kit, "bad.nc"), "/bad", NULL, &kit->err);
    if (rc == BRC_OK)
        ck_assert_int_eq(brc_node_remove(kit->session, "/bad", &kit->err), BRC_OK);
    else
        ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT ||
                          rc == BRC_EIO || rc == BRC_ENOMEM || rc == BRC_EEXISTS,
                      "%d: %s", rc, kit->err.message);
    return rc;
}

static const brc_driver *driver_of(int mode)
{
    return (mode & NC_NETCDF4) != 0 ? &brc_hdf5_driver : &brc_netcdf_driver;
}

/* The converter by itself, and where it ends the import that runs it: they agree. */
static void try_both(exchange_kit *kit, int mode, const char *what, size_t at)
{
    convert_ending run;
    convert_import(&run, driver_of(mode), exchange_path(kit, "bad.nc"));
    int good = convert_check(&run, what, at);
    if (run.endless)
        return; /* the import would wait for it */
    int rc = try_import(kit);
    /* A sanitized program also ends with what libhdf5 leaks of a damaged file. */
    if (KIT_SANITIZED && good && rc < 0 && strstr(kit->err.message, "crashed") != NULL)
        return;
    ck_assert_msg((rc == BRC_OK) == good, "%s %zu: \"%s\", but the import says %d \"%s\"", what, at,
                  run.says, rc, rc < 0 ? kit->err.message : "");
    if (run.crashed)
        ck_assert_msg(strstr(kit->err.message, "crashed"), "%s", kit->err.message);
}

/* Bytes from one damage to the next: a classic file's header is most of it. */
static size_t damage_step(int mode)
{
    return (mode == NC_NETCDF4 ? 13 : 1) * effort_step(4, 4);
}

/* Each length is refused, by the converter and so by an import. */
LOOP(cut_off, 0, NETCDF_KINDS)
{
    exchange_kit kit;
    convert_damage damage = { 0, 0, 0 };
    const netcdf_kind *kind = &netcdf_kinds[_i];
    exchange_start(&kit);
    const char *source = exchange_path(&kit, kind->name);
    netcdf_write_atomics(source, kind->mode, kind->ntypes);
    brc_buf whole = exchange_read(source);
    convert_cut_all(&damage, driver_of(kind->mode), kit.dir, whole.data, whole.len,
                    damage_step(kind->mode));
    ck_assert_uint_eq(damage.good, 0);
    for (size_t len = 0; len < whole.len; len += whole.len / 16) {
        put_bytes(&kit, whole.data, len);
        ck_assert_msg(try_import(&kit) < 0, "cut at byte %zu", len);
    }
    /* of a classic file, the last byte alone as well */
    if (kind->mode != NC_NETCDF4) {
        put_bytes(&kit, whole.data, whole.len - 4);
        ck_assert_int_eq(try_import(&kit), BRC_EINVAL);
        ck_assert_ptr_nonnull(strstr(kit.err.message, "shorter than its header says"));
    }
    brc_buf_dispose(&whole);
    exchange_stop(&kit);
}

/* Each byte changed: the converter imports it, or refuses it with one sentence, or, where
 * libhdf5 believes it, crashes; an import is good or says why not. */
LOOP(flipped_bytes, 0, NETCDF_KINDS)
{
    exchange_kit kit;
    convert_damage damage = { 0, 0, 0 };
    int mode = netcdf_kinds[_i].mode;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "small.nc");
    netcdf_write_small(source, mode);
    brc_buf whole = exchange_read(source);
    convert_flip_all(&damage, driver_of(mode), kit.dir, whole.data, whole.len,
                     damage_step(mode));
    if (mode != NC_NETCDF4) /* most of the header is not data */
        ck_assert_uint_gt(damage.refused, damage.good / 4);
    for (size_t i = 0; i < whole.len; i += whole.len / 40 + 1) {
        whole.data[i] ^= 0x80;
        put_bytes(&kit, whole.data, whole.len);
        try_both(&kit, mode, "flipped at byte", i);
        whole.data[i] ^= 0x80;
    }
    put_bytes(&kit, whole.data, whole.len);
    ck_assert_int_eq(try_import(&kit), BRC_OK);
    brc_buf_dispose(&whole);
    exchange_stop(&kit);
}

/* Headers that promise more than any file has: netCDF-C takes memory for that. */
TEST(promises)
{
#define U32(a, b, c, d) a, b, c, d
#define ZERO U32(0, 0, 0, 0)
#define HUGE U32(0x7f, 0xff, 0xff, 0xff)
    static const struct {
        const char *what;
        uint8_t bytes[64];
    } headers[] = {
        { "2^31 dimensions", { 'C', 'D', 'F', 1, ZERO, U32(0, 0, 0, 10), HUGE } },
        { "2^31 attributes", { 'C', 'D', 'F', 1, ZERO, ZERO, ZERO, U32(0, 0, 0, 12), HUGE } },
        { "2^31 variables",
          { 'C', 'D', 'F', 2, ZERO, ZERO, ZERO, ZERO, ZERO, U32(0, 0, 0, 11), HUGE } },
        { "a name of 2^31 bytes",
          { 'C', 'D', 'F', 1, ZERO, U32(0, 0, 0, 10), U32(0, 0, 0, 1), HUGE } },
        { "2^63 variables of version 5",
          { 'C', 'D', 'F', 5, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, U32(0, 0, 0, 11),
            HUGE, HUGE } },
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        exchange_kit kit;
        convert_ending run;
        exchange_start(&kit);
        put_bytes(&kit, headers[i].bytes, sizeof(headers[i].bytes));
        convert_import(&run, &brc_netcdf_driver, exchange_path(&kit, "bad.nc"));
        ck_assert_msg(!convert_check(&run, headers[i].what, i) && !run.crashed && run.mib < 300,
                      "%s: %ld MiB, signal %d", headers[i].what, run.mib, run.crashed);
        ck_assert_int_eq(try_import(&kit), BRC_EINVAL);
        exchange_stop(&kit);
    }
}

/* A size in a heap is changed in each of its bytes, or in `make test` in some, which are others
 * from one size to the next: libhdf5 may find that, read on, or crash. */
static void flip_size(exchange_kit *kit, const brc_buf *whole, size_t at)
{
    static const uint8_t flips[] = { 0x01, 0x80, 0x10, 0xff };
    const size_t step = effort_step(4, 4);
    for (size_t i = at + at / 8 % step; i < at + 8; i += step) {
        uint8_t flip = flips[(i - at) % sizeof(flips)];
        whole->data[i] ^= flip;
        put_bytes(kit, whole->data, whole->len);
        try_both(kit, NC_NETCDF4, "a heap's size at byte", i);
        whole->data[i] ^= flip;
    }
}

/* Where the references to dimensions lie: libhdf5 follows the sizes in it. */
TEST(damaged_heaps)
{
    exchange_kit kit;
    size_t objects = 0;

    exchange_start(&kit);
    const char *source = exchange_path(&kit, "heaps.nc");
    netcdf_write_atomics(source, NC_NETCDF4, 2);
    brc_buf whole = exchange_read(source);
    size_t at = 0;
    while (memcmp(whole.data + at, "GCOL", 4) != 0)
        ck_assert_uint_lt(++at, whole.len - 4);
    flip_size(&kit, &whole, at + 8);
    for (at += 16;; at += 16 + 8, objects++) { /* each a reference, of eight bytes */
        flip_size(&kit, &whole, at + 8);
        if (whole.data[at] == 0)
            break;
    }
    ck_assert_uint_gt(objects, 3);
    put_bytes(&kit, whole.data, whole.len);
    ck_assert_int_eq(try_import(&kit), BRC_OK);
    brc_buf_dispose(&whole);
    exchange_stop(&kit);
}

enum { LINK_OUT, DATA_OUT, VIRTUAL_OUT, TWO_NAMES, SOFT_GROUP, NOWHERE, N_LINKS };

/* Adds something to a NetCDF-4 file that NetCDF would not. */
static void add_link(const char *path, int what)
{
    hsize_t one = 1, size[1] = { 4 };
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, size, NULL), plist = H5Pcreate(H5P_DATASET_CREATE), made = -1;
    ck_assert(file >= 0 && space >= 0 && plist >= 0);
    switch (what) {
    case LINK_OUT:
        ck_assert_int_ge(
            H5Lcreate_external("/etc/passwd", "/", file, "out", H5P_DEFAULT, H5P_DEFAULT), 0);
        break;
    case DATA_OUT:
        ck_assert_int_ge(H5Pset_external(plist, "/etc/passwd", 0, 4), 0);
        made = H5Dcreate2(file, "out", H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT);
        break;
    case VIRTUAL_OUT:
        ck_assert_int_ge(H5Pset_virtual(plist, space, "/etc/passwd", "x", space), 0);
        made = H5Dcreate2(file, "out", H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT);
        break;
    case TWO_NAMES:
        made = H5Gcreate2(file, "out", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        ck_assert_int_ge(H5Lcreate_hard(file, "/", made, "up", H5P_DEFAULT, H5P_DEFAULT), 0);
        break;
    case SOFT_GROUP:
        ck_assert_int_ge(H5Lcreate_soft("/", file, "out", H5P_DEFAULT, H5P_DEFAULT), 0);
        break;
    default:
        ck_assert_int_ge(H5Lcreate_soft("/no/where", file, "out", H5P_DEFAULT, H5P_DEFAULT), 0);
    }
    (void)one;
    if (made >= 0)
        H5Oclose(made);
    H5Pclose(plist);
    H5Sclose(space);
    H5Fclose(file);
}

LOOP(links_out_of_the_file, 0, N_LINKS)
{
    static const char *const says[N_LINKS] = { "/etc/passwd, which may not be read",
                                               "raw file /etc/passwd, which may not be read",
                                               "file /etc/passwd, which may not be read",
                                               "leads back to a group around it",
                                               "leads back to a group around it",
                                               "links to an object that this file does not have" };
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    const char *const out[] = { "/out" };
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "links.nc");
    netcdf_write_atomics(source, NC_NETCDF4, 1);
    add_link(source, _i);
    netcdf_import_says(&kit, source, BRC_EUNSUPPORTED, says[_i]);
    netcdf_import_says(&kit, source, BRC_EUNSUPPORTED, _i == TWO_NAMES ? "up" : "/out");
    opts.exclude = out;
    opts.nexclude = 1;
    ck_assert_int_eq(brc_import(kit.session, source, "/in", &opts, &kit.err), BRC_OK);
    netcdf_check_bytes(&kit, "/in/byte1", netcdf_atomics[0].bytes, 3);
    exchange_stop(&kit);
}

/* ---- real files -------------------------------------------------- */

/* ---- elements that stay in the file ---------------------------------------------------- */

enum { STAY_ROWS = 90, STAY_COLUMNS = 200, STAY_ALL = STAY_ROWS * STAY_COLUMNS };

static int define_stay(int nc, const char *name, const int *dims, int chunked)
{
    size_t chunk[2] = { 40, STAY_COLUMNS };
    int var;
    NC(nc_def_var(nc, name, NC_INT, 2, dims, &var));
    if (chunked)
        NC(nc_def_var_chunking(nc, var, NC_CHUNKED, chunk));
    return var;
}

/* A variable of a fixed shape, one along an unlimited dimension, and one along that too of which
 * less was written; of NetCDF-4 one with a filter in the other byte order, and one with gaps. */
static void write_stay(const char *path, int mode, const int *values)
{
    int nc, dims[2], fixed[2], has_chunks = (mode & NC_NETCDF4) != 0;
    size_t start[2] = { 0, 0 }, count[2] = { STAY_ROWS, STAY_COLUMNS };
    NC(nc_create(path, mode, &nc));
    NC(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    NC(nc_def_dim(nc, "x", STAY_COLUMNS, &dims[1]));
    NC(nc_def_dim(nc, "y", STAY_ROWS, &fixed[0]));
    fixed[1] = dims[1];
    int whole = define_stay(nc, "whole", fixed, 0);
    int rows = define_stay(nc, "rows", dims, has_chunks);
    int fewer = define_stay(nc, "fewer", dims, has_chunks), z = -1, gaps = -1;
    if (has_chunks) {
        z = define_stay(nc, "z", fixed, 1);
        NC(nc_def_var_deflate(nc, z, 1, 1, 1));
        NC(nc_def_var_endian(nc, z, NC_ENDIAN_BIG));
        gaps = define_stay(nc, "gaps", fixed, 1);
        NC(nc_def_var_fill(nc, gaps, NC_FILL, &values[7]));
    }
    NC(nc_enddef(nc));
    NC(nc_put_vara_int(nc, rows, start, count, values));
    NC(nc_put_vara_int(nc, whole, start, count, values));
    if (z >= 0)
        NC(nc_put_vara_int(nc, z, start, count, values));
    count[0] = 50;
    NC(nc_put_vara_int(nc, fewer, start, count, values));
    count[0] = 40;
    if (gaps >= 0)
        NC(nc_put_vara_int(nc, gaps, start, count, values));
    NC(nc_close(nc));
}

/* The imported elements are those that netCDF-C reads. */
static void check_stay(exchange_kit *kit, const char *path)
{
    int nc, n;
    int *values = malloc(STAY_ALL * sizeof(int));
    NC(nc_open(path, NC_NOWRITE, &nc));
    NC(nc_inq_nvars(nc, &n));
    for (int var = 0; var < n; var++) {
        char name[NC_MAX_NAME + 1], node[NC_MAX_NAME + 5];
        NC(nc_inq_varname(nc, var, name));
        NC(nc_get_var_int(nc, var, values));
        snprintf(node, sizeof(node), "/in/%s", name);
        netcdf_check_bytes(kit, node, values, STAY_ALL * sizeof(int));
    }
    NC(nc_close(nc));
    free(values);
}

CASE("real", .timeout = 120);

LOOP(elements_stay_in_the_file, 0, NETCDF_KINDS)
{
    int *values = malloc(STAY_ALL * sizeof(int));
    uint32_t mixed = 1;
    size_t all;
    exchange_kit kit;
    exchange_start(&kit);
    for (size_t i = 0; i < STAY_ALL; i++)
        values[i] = (int)(mixed = mixed * 1664525 + 1013904223);
    const char *path = exchange_path(&kit, "stay.nc");
    write_stay(path, netcdf_kinds[_i].mode, values);
    /* of NetCDF-4 each chunk, but for those of the variable that is shorter than its dimension:
     * what is behind its end no chunk says */
    int is_netcdf4 = (netcdf_kinds[_i].mode & NC_NETCDF4) != 0;
    ck_assert_uint_eq(converter_refers(is_netcdf4 ? "hdf5" : "netcdf", path, &all),
                      is_netcdf4 ? 1 + 3 + 3 + 1 : 3);
    ck_assert_uint_eq(all, is_netcdf4 ? 1 + 3 + 3 + 1 + 3 : 3);
    netcdf_import_ok(&kit, path, "/in");
    check_stay(&kit, path);
    free(values);
    exchange_stop(&kit);
}

LOOP(real_files, 0, 2)
{
    static const char *const names[] = { "eraint_uvz.nc", "basin_mask.nc" };
    static const char *const formats[] = { "netcdf3", "netcdf" };
    const char *folder = exchange_data();
    exchange_kit kit;
    char source[1024], name[NC_MAX_NAME + 1];
    int a, b, n, other;

    if (!folder)
        return;
    exchange_start(&kit);
    snprintf(source, sizeof(source), "%s/%s", folder, names[_i]);
    netcdf_import_ok(&kit, source, "/");
    NC(nc_open(source, NC_NOWRITE, &a));
    NC(nc_open(netcdf_export_ok(&kit, "/", "out.nc", formats[_i]), NC_NOWRITE, &b));
    NC(nc_inq_nvars(a, &n));
    ck_assert_int_gt(n, 3);
    for (int i = 0; i < n; i++) {
        int natts, natts_b, rank, ids[8];
        size_t len, size, total = 1;
        nc_type type, type_b;
        NC(nc_inq_var(a, i, name, &type, &rank, ids, &natts));
        NC(nc_inq_varid(b, name, &other));
        NC(nc_inq_var(b, other, NULL, &type_b, NULL, NULL, &natts_b));
        ck_assert_int_eq(type, type_b);
        ck_assert_int_eq(natts, natts_b);
        for (int k = 0; k < rank; k++) {
            NC(nc_inq_dimlen(a, ids[k], &len));
            total *= len;
        }
        NC(nc_inq_type(a, type, NULL, &size));
        uint8_t *x = calloc(total, size), *y = calloc(total, size);
        NC(nc_get_var(a, i, x));
        NC(nc_get_var(b, other, y));
        ck_assert_mem_eq(x, y, total * size);
        free(x);
        free(y);
    }
    NC(nc_close(a));
    NC(nc_close(b));
    exchange_stop(&kit);
}
