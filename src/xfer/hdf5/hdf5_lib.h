/*
 * libhdf5, opened when a file needs it: its functions in a table, which belongs to
 * one import or export. The names are those of the library, so that calls read as
 * its documentation does: lib->H5Dread(...).
 *
 * The interface of 1.10 is asked for, which newer versions of the library keep.
 *
 * While the table is open the library prints no errors for this thread; what it
 * printed before is put back at the end. Only the caller's thread calls it.
 */
#ifndef BRC_XFER_HDF5_LIB_H
#define BRC_XFER_HDF5_LIB_H

#define H5_USE_110_API 1
#include <hdf5.h>
#include <hdf5_hl.h>

#include "../container/container.h"

#define BRC_HDF5_CALLS(X)                                                                                     \
    X(H5open) X(H5free_memory) X(H5Eget_auto2) X(H5Eset_auto2) X(H5Ewalk2) X(H5Idec_ref) X(H5Iget_type)       \
    X(H5Iget_name) X(H5Fopen) X(H5Fcreate) X(H5Fclose) X(H5Fflush) X(H5Fget_create_plist) X(H5Gcreate2) X(H5Literate) X(H5Lexists)   \
    X(H5Oopen) X(H5Oget_info1) X(H5Aopen) X(H5Aexists) X(H5Aiterate2) X(H5Aget_space) X(H5Aget_type) X(H5Aread) \
    X(H5Acreate2) X(H5Awrite) X(H5Dcreate2) X(H5Dopen2) X(H5Dget_space) X(H5Dget_type) X(H5Dget_create_plist) \
    X(H5Dread) X(H5Dwrite) X(H5Dclose) X(H5Dvlen_reclaim) X(H5Dget_storage_size) X(H5Dget_num_chunks)         \
    X(H5Dget_chunk_info) X(H5Dget_chunk_storage_size) X(H5Dread_chunk) X(H5Screate) X(H5Screate_simple) X(H5Scopy)             \
    X(H5Sget_simple_extent_type) X(H5Sget_simple_extent_ndims) X(H5Sget_simple_extent_dims)                   \
    X(H5Sselect_hyperslab) X(H5Pcreate) X(H5Pget_layout) X(H5Pget_chunk) X(H5Pset_chunk)                      \
    X(H5Pget_external_count) X(H5Pget_nfilters) X(H5Pget_filter2) X(H5Pset_shuffle) X(H5Pset_deflate)         \
    X(H5Pfill_value_defined) X(H5Pget_fill_value) X(H5Pset_fill_value) X(H5Pset_fill_time)                    \
    X(H5Pset_obj_track_times) X(H5Pset_libver_bounds) X(H5Pset_fclose_degree) X(H5Pset_elink_cb)              \
    X(H5Pset_chunk_cache) X(H5Pset_char_encoding) X(H5Zfilter_avail)               \
    X(H5Tget_class) X(H5Tget_size) X(H5Tget_order) X(H5Tget_precision) X(H5Tget_offset) X(H5Tget_sign)        \
    X(H5Tget_fields) X(H5Tget_ebias) X(H5Tget_norm) X(H5Tget_super) X(H5Tget_nmembers) X(H5Tget_member_name)  \
    X(H5Tget_member_type) X(H5Tget_member_value) X(H5Tget_member_offset) X(H5Tget_strpad) X(H5Tget_cset) X(H5Tis_variable_str)        \
    X(H5Tget_tag) X(H5Tget_array_ndims) X(H5Tget_array_dims2) X(H5Tcopy) X(H5Tcreate) X(H5Tinsert)            \
    X(H5Tenum_create) X(H5Tenum_insert) X(H5Tvlen_create) X(H5Tarray_create2) X(H5Tset_size) X(H5Tset_order)  \
    X(H5Tset_precision) X(H5Tset_fields) X(H5Tset_ebias) X(H5Tset_strpad) X(H5Tset_cset) X(H5Tset_tag)        \
    X(H5Tequal) X(H5Tconvert) X(H5Tcommit2) X(H5Rdereference2) X(H5Tregister) X(H5Tunregister) X(H5Pget_sizes) X(H5Pget_userblock)

/* Of the library's companion, for export alone. */
#define BRC_HDF5_HL_CALLS(X) X(H5DSset_scale) X(H5DSattach_scale) X(H5DSset_label)

/* Its predefined types and classes of property lists: variables, set by H5open(). */
#define BRC_HDF5_IDS(X)                                                                                       \
    X(H5T_NATIVE_INT8_g) X(H5T_NATIVE_INT16_g) X(H5T_NATIVE_INT32_g) X(H5T_NATIVE_INT64_g)                    \
    X(H5T_NATIVE_UINT8_g) X(H5T_NATIVE_UINT16_g) X(H5T_NATIVE_UINT32_g) X(H5T_NATIVE_UINT64_g)                \
    X(H5T_NATIVE_B8_g) X(H5T_NATIVE_B16_g) X(H5T_NATIVE_B32_g) X(H5T_NATIVE_B64_g)                            \
    X(H5T_IEEE_F32LE_g) X(H5T_IEEE_F64LE_g) X(H5T_C_S1_g) X(H5T_STD_REF_OBJ_g)                                \
    X(H5P_CLS_FILE_ACCESS_ID_g) X(H5P_CLS_FILE_CREATE_ID_g) X(H5P_CLS_GROUP_CREATE_ID_g)                      \
    X(H5P_CLS_DATASET_CREATE_ID_g) X(H5P_CLS_DATASET_ACCESS_ID_g) X(H5P_CLS_DATASET_XFER_ID_g)                \
    X(H5P_CLS_LINK_ACCESS_ID_g) X(H5P_CLS_LINK_CREATE_ID_g) X(H5P_CLS_ATTRIBUTE_CREATE_ID_g)

typedef struct brc_hdf5 {
#define BRC_HDF5_CALL(name) __typeof__(name) *name;
    BRC_HDF5_CALLS(BRC_HDF5_CALL)
    BRC_HDF5_HL_CALLS(BRC_HDF5_CALL)
#undef BRC_HDF5_CALL
#define BRC_HDF5_ID(name) hid_t name;
    BRC_HDF5_IDS(BRC_HDF5_ID)
#undef BRC_HDF5_ID
    H5E_auto2_t print; /* what was there before */
    void *print_ctx;
    int started;
} brc_hdf5;

#define BRC_HDF5_NONE ((hid_t)-1)
/* H5F_ACC_RDONLY and H5F_ACC_EXCL, which in the library's headers are calls as well. */
#define BRC_HDF5_READ_ONLY 0x0000u
#define BRC_HDF5_MUST_BE_NEW 0x0004u

/* Loads the library, for export (`writing`) with its companion. */
BRC_MUST_USE int brc_hdf5_start(brc_hdf5 *out, int writing, brc_error *err);
void brc_hdf5_stop(brc_hdf5 *lib);
/* Of any kind of id; BRC_HDF5_NONE is allowed. */
void brc_hdf5_close(const brc_hdf5 *lib, hid_t id);
/* Directly behind a call that failed: the sentence, and the library's reason in brackets. */
int brc_hdf5_fail(const brc_hdf5 *lib, brc_error *err, int code, const char *format, ...) BRC_PRINTF(4, 5);

/* A file to read, which does not lead to others: *links is the property list with which its
 * objects are opened. Both are ids to close. */
BRC_MUST_USE int brc_hdf5_open_file(const brc_hdf5 *lib, hid_t *file, hid_t *links, const char *path, brc_error *err);
/* What the library calls the node: what follows the file's name. */
BRC_MUST_USE int brc_hdf5_label(char **out, const char *file, const char *path, brc_error *err);

#endif
