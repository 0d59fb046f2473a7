/* The table of libhdf5's functions, its errors and files, see hdf5_lib.h. */
#include "hdf5_lib.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/buf.h"
#include "late_libs.h"

/* ---- loading -------------------------------- */

typedef struct hdf5_symbol {
    const char *name;
    size_t offset; /* in brc_hdf5 */
} hdf5_symbol;

#define TEXT_OF(name) #name
#define SYMBOL(name) { TEXT_OF(name), offsetof(brc_hdf5, name) },

static const hdf5_symbol call_symbols[] = { BRC_HDF5_CALLS(SYMBOL) };
static const hdf5_symbol hl_symbols[] = { BRC_HDF5_HL_CALLS(SYMBOL) };
static const hdf5_symbol id_symbols[] = { BRC_HDF5_IDS(SYMBOL) };

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* A pointer to a function is as long as one to data, here as in dlsym(). */
static int load_calls(brc_hdf5 *lib, const char *soname, const hdf5_symbol *symbols, size_t n,
                      brc_error *err)
{
    void *handle, *address;
    BRC_TRY(brc_late_library(&handle, soname, "HDF5", err));
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_late_symbol(&address, handle, soname, symbols[i].name, err));
        memcpy((char *)lib + symbols[i].offset, &address, sizeof(address));
    }
    return BRC_OK;
}

/* After H5open(), which sets them. */
static int load_ids(brc_hdf5 *lib, brc_error *err)
{
    void *handle, *address;
    BRC_TRY(brc_late_library(&handle, BRC_SONAME_HDF5, "HDF5", err));
    for (size_t i = 0; i < COUNT_OF(id_symbols); i++) {
        BRC_TRY(brc_late_symbol(&address, handle, BRC_SONAME_HDF5, id_symbols[i].name, err));
        memcpy((char *)lib + id_symbols[i].offset, address, sizeof(hid_t));
    }
    return BRC_OK;
}

int brc_hdf5_start(brc_hdf5 *out, int writing, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(load_calls(out, BRC_SONAME_HDF5, call_symbols, COUNT_OF(call_symbols), err));
    if (writing)
        BRC_TRY(load_calls(out, BRC_SONAME_HDF5_HL, hl_symbols, COUNT_OF(hl_symbols), err));
    if (out->H5open() < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "the HDF5 library cannot be started");
    BRC_TRY(load_ids(out, err));
    if (out->H5Eget_auto2(H5E_DEFAULT, &out->print, &out->print_ctx) < 0 ||
        out->H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return brc_fail(err, BRC_EINTERNAL, "the HDF5 library does not take calls");
    out->started = 1;
    return BRC_OK;
}

void brc_hdf5_stop(brc_hdf5 *lib)
{
    if (lib->started)
        (void)lib->H5Eset_auto2(H5E_DEFAULT, lib->print, lib->print_ctx);
    lib->started = 0;
}

void brc_hdf5_close(const brc_hdf5 *lib, hid_t id)
{
    if (id >= 0)
        (void)lib->H5Idec_ref(id);
}

/* ---- errors -------------------------------- */

/* Called with the innermost error first. */
static herr_t take_reason(unsigned n, const H5E_error2_t *error, void *ctx)
{
    const char **reason = ctx;
    if (n == 0)
        *reason = error->desc;
    return 0;
}

int brc_hdf5_fail(const brc_hdf5 *lib, brc_error *err, int code, const char *format, ...)
{
    brc_error own = BRC_ERROR_INIT;
    const char *reason = NULL;
    char text[sizeof(own.message)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)lib->H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &reason);
    if (reason && *reason)
        return brc_fail(err, code, "%s (%s)", text, reason);
    return brc_fail(err, code, "%s", text);
}

/* ---- files -------------------------------- */

/* No link leads out of the file. */
static herr_t refuse_external(const char *parent_file, const char *parent_group,
                              const char *child_file, const char *child_object,
                              unsigned *access_flags, hid_t access, void *ctx)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object;
    (void)access_flags, (void)access, (void)ctx;
    return -1;
}

int brc_hdf5_open_file(const brc_hdf5 *lib, hid_t *file, hid_t *links, const char *path,
                       brc_error *err)
{
    int rc = BRC_OK;
    *file = *links = BRC_HDF5_NONE;
    hid_t access = lib->H5Pcreate(lib->H5P_CLS_FILE_ACCESS_ID_g);
    *links = lib->H5Pcreate(lib->H5P_CLS_LINK_ACCESS_ID_g);
    if (access < 0 || *links < 0 || lib->H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
        lib->H5Pset_elink_cb(*links, refuse_external, NULL) < 0)
        rc = brc_hdf5_fail(lib, err, BRC_ENOMEM, "%s: cannot prepare to open it", path);
    else
        *file = lib->H5Fopen(path, BRC_HDF5_READ_ONLY, access);
    if (rc == BRC_OK && *file < 0)
        rc = brc_hdf5_fail(lib, err, BRC_EINVAL, "%s cannot be opened as HDF5", path);
    brc_hdf5_close(lib, access);
    if (rc < 0) {
        brc_hdf5_close(lib, *links);
        *links = BRC_HDF5_NONE;
    }
    return rc;
}

int brc_hdf5_label(char **out, const char *file, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&text, err, "%s: %s", file, path));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}
