/* The corpus's HDF5 files: see corpus.h. Committed types, references, fields that are arrays and
 * lists in attributes are in tests/xfer/test_hdf5_corpus.c, which compares whole files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "hdf5_kit.h"

static const int32_t counted[] = {1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static hid_t group_in(hid_t in, const char *name)
{
    return H5(H5Gcreate2(in, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static void put_scalar(hid_t in, const char *name, hid_t type, hid_t memory, const void *data)
{
    H5(H5Dclose(hdf5_new_dataset(in, name, type, 0, NULL, H5P_DEFAULT, memory, data)));
}

/* ---- types -------------------------------- */

static void put_integers(hid_t file)
{
    static const int64_t low[] = {-128, 127}, wide[] = {INT64_MIN, INT64_MAX};
    static const uint64_t most[] = {0, UINT64_MAX};
    hdf5_put(file, "i1", H5T_STD_I8LE, 2, H5T_NATIVE_INT64, low);
    hdf5_put(file, "i2", H5T_STD_I16LE, 2, H5T_NATIVE_INT64, low);
    hdf5_put(file, "i4", H5T_STD_I32LE, 2, H5T_NATIVE_INT64, low);
    hdf5_put(file, "i8", H5T_STD_I64LE, 2, H5T_NATIVE_INT64, wide);
    hdf5_put(file, "u1", H5T_STD_U8LE, 2, H5T_NATIVE_UINT8, "\0\xff");
    hdf5_put(file, "u2", H5T_STD_U16LE, 2, H5T_NATIVE_UINT16, "\0\0\xff\xff");
    hdf5_put(file, "u4", H5T_STD_U32LE, 2, H5T_NATIVE_UINT32, "\0\0\0\0\xff\xff\xff\xff");
    hdf5_put(file, "u8", H5T_STD_U64LE, 2, H5T_NATIVE_UINT64, most);
}

static void put_big_endian(hid_t file)
{
    static const double halves[] = {0.5, -2.25};
    static const uint64_t most[] = {1, UINT64_MAX};
    hdf5_put(file, "i2", H5T_STD_I16BE, 3, H5T_NATIVE_INT32, counted);
    hdf5_put(file, "i4", H5T_STD_I32BE, 3, H5T_NATIVE_INT32, counted);
    hdf5_put(file, "u8", H5T_STD_U64BE, 2, H5T_NATIVE_UINT64, most);
    hdf5_put(file, "f4", H5T_IEEE_F32BE, 2, H5T_NATIVE_DOUBLE, halves);
    hdf5_put(file, "f8", H5T_IEEE_F64BE, 2, H5T_NATIVE_DOUBLE, halves);
    hdf5_put_attribute(file, "n", H5T_STD_I16BE, 1, (hsize_t[]){2}, H5T_NATIVE_INT32, counted);
}

static hid_t half_type(void)
{
    hid_t type = H5(H5Tcopy(H5T_IEEE_F32LE));
    H5(H5Tset_fields(type, 15, 10, 5, 0, 10));
    H5(H5Tset_size(type, 2));
    H5(H5Tset_ebias(type, 15));
    return type;
}

static void put_floats(hid_t file)
{
    const double odd[] = {1.5, -0.0, NAN, INFINITY, -INFINITY};
    hid_t half = half_type();
    hdf5_put(file, "f2", half, 5, half, "\0\x3e\0\x80\0\x7e\0\x7c\0\xfc");
    hdf5_put(file, "f4", H5T_IEEE_F32LE, 5, H5T_NATIVE_DOUBLE, odd);
    hdf5_put(file, "f8", H5T_IEEE_F64LE, 5, H5T_NATIVE_DOUBLE, odd);
    H5(H5Tclose(half));
}

static void put_complex(hid_t file)
{
    static const double z[] = {1, 2, -0.5, 4};
    hid_t type = H5(H5Tcreate(H5T_COMPOUND, 16));
    H5(H5Tinsert(type, "r", 0, H5T_IEEE_F64LE));
    H5(H5Tinsert(type, "i", 8, H5T_IEEE_F64LE));
    hdf5_put(file, "z", type, 2, type, z);
    H5(H5Tclose(type));
}

static void put_enums(hid_t file)
{
    static const char *const names[] = {"FALSE", "TRUE"};
    hid_t colour = H5(H5Tenum_create(H5T_STD_I16LE)), truth = H5(H5Tenum_create(H5T_STD_I8LE));
    for (int8_t i = 0; i < 2; i++) {
        const int16_t value = (int16_t)(100 * i - 50);
        H5(H5Tenum_insert(colour, i ? "BLUE" : "R\xc3\xb6t", &value));
        H5(H5Tenum_insert(truth, names[i], &i));
    }
    hdf5_put(file, "colour", colour, 3, colour, (int16_t[]){50, -50, 50});
    hdf5_put(file, "truth", truth, 3, truth, "\1\0\1");
    hdf5_put_attribute(file, "sure", truth, 0, NULL, truth, "\1");
    H5(H5Tclose(colour));
    H5(H5Tclose(truth));
}

static void put_opaque(hid_t file)
{
    hid_t type = H5(H5Tcreate(H5T_OPAQUE, 3));
    H5(H5Tset_tag(type, "three bytes"));
    hdf5_put(file, "o", type, 2, type, "\1\2\3\xff\0\x80");
    hdf5_put(file, "bits8", H5T_STD_B8LE, 2, H5T_STD_B8LE, "\x0f\xf0");
    hdf5_put(file, "bits32", H5T_STD_B32BE, 2, H5T_STD_B32BE, "\1\2\3\4\xff\0\0\1");
    H5(H5Tclose(type));
}

static void put_compounds(hid_t file)
{
    hid_t inner = H5(H5Tcreate(H5T_COMPOUND, 3)), outer = H5(H5Tcreate(H5T_COMPOUND, 20));
    H5(H5Tinsert(inner, "u", 0, H5T_STD_U8LE));
    H5(H5Tinsert(inner, "v", 1, H5T_STD_I16LE));
    H5(H5Tinsert(outer, "n", 0, H5T_STD_I32LE)); /* with gaps */
    H5(H5Tinsert(outer, "x", 8, H5T_IEEE_F64LE));
    H5(H5Tinsert(outer, "in", 16, inner));
    hdf5_put(file, "rows", outer, 2, outer,
             "\1\0\0\0....\0\0\0\0\0\0\xf8\x3f\7\2\1.\2\0\0\0....\0\0\0\0\0\0\0\xc0\xff\xff\xff.");
    H5(H5Tclose(outer));
    H5(H5Tclose(inner));
}

static void put_mixed_orders(hid_t file)
{
    hid_t type = H5(H5Tcreate(H5T_COMPOUND, 6));
    H5(H5Tinsert(type, "little", 0, H5T_STD_I16LE));
    H5(H5Tinsert(type, "big", 2, H5T_STD_I32BE));
    hdf5_put(file, "rows", type, 2, type, "\1\2\0\0\1\2\xff\xff\xff\xff\xff\xfe");
    H5(H5Tclose(type));
}

/* ---- text -------------------------------- */

static hid_t text_of(size_t size, H5T_str_t pad, H5T_cset_t set)
{
    hid_t type = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(type, size));
    H5(H5Tset_strpad(type, pad));
    H5(H5Tset_cset(type, set));
    return type;
}

static void put_fixed_texts(hid_t file)
{
    static const H5T_str_t pads[] = {H5T_STR_NULLTERM, H5T_STR_NULLPAD, H5T_STR_SPACEPAD};
    static const char *const names[] = {"term", "null", "space"};
    static const char *const texts[] = {"ab\0\0cde\0", "ab\0\0abcd", "ab  abcd"};
    for (int i = 0; i < 3; i++) {
        hid_t type = text_of(4, pads[i], H5T_CSET_ASCII);
        hdf5_put(file, names[i], type, 2, type, texts[i]);
        H5(H5Tclose(type));
    }
    hid_t wide = text_of(5, H5T_STR_NULLPAD, H5T_CSET_UTF8);
    hdf5_put(file, "wide", wide, 2, wide, "h\xc3\xa9\0\0\xe2\x82\xac.\0");
    H5(H5Tclose(wide));
}

static void put_free_texts(hid_t file)
{
    const char *words[] = {"", "h\xc3\xa9llo", "a\nb"}, *plain[] = {"x", "yz"};
    hid_t utf8 = text_of(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_UTF8);
    hid_t ascii = text_of(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_ASCII);
    hdf5_put(file, "utf8", utf8, 3, utf8, words);
    hdf5_put(file, "ascii", ascii, 2, ascii, plain);
    put_scalar(file, "one", utf8, utf8, words + 1);
    hdf5_put_attribute(file, "title", utf8, 0, NULL, utf8, words + 1);
    hdf5_put_attribute(file, "list", ascii, 1, (hsize_t[]){2}, ascii, plain);
    H5(H5Tclose(utf8));
    H5(H5Tclose(ascii));
}

/* ---- spaces and layouts -------------------------------- */

static void put_spaces(hid_t file)
{
    static const hsize_t none[] = {2, 0, 3}, now[] = {2, 2}, most[] = {H5S_UNLIMITED, 2};
    static const hsize_t chunk[] = {2, 2};
    hid_t plist = hdf5_chunked(2, chunk), space = H5(H5Screate_simple(2, now, most));
    put_scalar(file, "scalar", H5T_STD_I32LE, H5T_NATIVE_INT32, counted + 2);
    H5(H5Dclose(hdf5_new_dataset(file, "nothing", H5T_STD_I32LE, 3, none, H5P_DEFAULT,
                                 H5T_NATIVE_INT32, NULL)));
    hid_t set = H5(H5Dcreate2(file, "grows", H5T_STD_I32LE, space, H5P_DEFAULT, plist,
                              H5P_DEFAULT));
    H5(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, counted));
    H5(H5Dclose(set));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
    hdf5_put_attribute(file, "empty", H5T_STD_I32LE, -1, NULL, H5T_NATIVE_INT32, NULL);
}

static void put_null_space(hid_t file)
{
    hid_t space = H5(H5Screate(H5S_NULL));
    H5(H5Dclose(H5(H5Dcreate2(file, "null", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                              H5P_DEFAULT))));
    H5(H5Sclose(space));
    hdf5_put(file, "a", H5T_STD_I32LE, 2, H5T_NATIVE_INT32, counted);
}

static void put_layouts(hid_t file)
{
    static const hsize_t shape[] = {3, 4}, chunk[] = {2, 3};
    static const H5D_layout_t layouts[] = {H5D_COMPACT, H5D_CONTIGUOUS, H5D_CHUNKED};
    static const char *const names[] = {"compact", "contiguous", "chunked"};
    for (int i = 0; i < 3; i++) {
        hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE));
        H5(H5Pset_layout(plist, layouts[i]));
        if (layouts[i] == H5D_CHUNKED)
            H5(H5Pset_chunk(plist, 2, chunk));
        H5(H5Dclose(hdf5_new_dataset(file, names[i], H5T_STD_I32LE, 2, shape, plist,
                                     H5T_NATIVE_INT32, counted)));
        H5(H5Pclose(plist));
    }
}

/* One chunk of four is there; the rest, and what was never written, is the fill value. */
static void put_fill_values(hid_t file)
{
    static const hsize_t shape[] = {4}, chunk[] = {1};
    static const double nan_fill[] = {NAN};
    static const int32_t fill = -9;
    const hid_t lists[] = {hdf5_chunked(1, chunk), hdf5_chunked(1, chunk)};
    H5(H5Pset_fill_value(lists[0], H5T_NATIVE_INT32, &fill));
    H5(H5Pset_fill_value(lists[1], H5T_NATIVE_DOUBLE, nan_fill));
    hid_t set = hdf5_new_dataset(file, "i", H5T_STD_I32LE, 1, shape, lists[0], H5T_NATIVE_INT32,
                                 NULL);
    hid_t space = H5(H5Dget_space(set)), one = H5(H5Screate(H5S_SCALAR));
    H5(H5Sselect_elements(space, H5S_SELECT_SET, 1, (hsize_t[]){2}));
    H5(H5Dwrite(set, H5T_NATIVE_INT32, one, space, H5P_DEFAULT, counted));
    H5(H5Sclose(one));
    H5(H5Sclose(space));
    H5(H5Dclose(set));
    H5(H5Dclose(hdf5_new_dataset(file, "x", H5T_IEEE_F64LE, 1, shape, lists[1], H5T_NATIVE_DOUBLE,
                                 NULL)));
    H5(H5Dclose(hdf5_new_dataset(file, "zero", H5T_STD_I32LE, 1, shape, H5P_DEFAULT,
                                 H5T_NATIVE_INT32, NULL)));
    H5(H5Pclose(lists[0]));
    H5(H5Pclose(lists[1]));
}

/* ---- filters -------------------------------- */

static void put_filtered(hid_t file, const char *name, hid_t type, hid_t plist)
{
    static const hsize_t shape[] = {3, 4};
    H5(H5Dclose(hdf5_new_dataset(file, name, type, 2, shape, plist, H5T_NATIVE_INT32, counted)));
    H5(H5Pclose(plist));
}

static const hsize_t filter_chunk[] = {2, 4};

static void put_deflate(hid_t file)
{
    hid_t plist = hdf5_chunked(2, filter_chunk);
    H5(H5Pset_deflate(plist, 6));
    put_filtered(file, "a", H5T_STD_I32LE, plist);
}

static void put_shuffle(hid_t file)
{
    hid_t plist = hdf5_chunked(2, filter_chunk);
    H5(H5Pset_shuffle(plist));
    H5(H5Pset_deflate(plist, 1));
    put_filtered(file, "a", H5T_STD_I64BE, plist);
}

static void put_fletcher32(hid_t file)
{
    hid_t plist = hdf5_chunked(2, filter_chunk);
    H5(H5Pset_fletcher32(plist));
    put_filtered(file, "a", H5T_STD_I16LE, plist);
    plist = hdf5_chunked(2, filter_chunk);
    H5(H5Pset_shuffle(plist));
    H5(H5Pset_deflate(plist, 9));
    H5(H5Pset_fletcher32(plist));
    put_filtered(file, "all", H5T_STD_I16LE, plist);
}

static void put_nbit(hid_t file)
{
    hid_t plist = hdf5_chunked(2, filter_chunk), type = H5(H5Tcopy(H5T_STD_I32LE));
    H5(H5Pset_nbit(plist));
    put_filtered(file, "a", type, plist);
    H5(H5Tclose(type));
}

static void put_scale_offset(hid_t file)
{
    hid_t plist = hdf5_chunked(2, filter_chunk);
    H5(H5Pset_scaleoffset(plist, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT));
    put_filtered(file, "a", H5T_STD_I32LE, plist);
}

static void put_szip(hid_t file)
{
    hid_t plist = hdf5_chunked(2, filter_chunk);
    H5(H5Pset_szip(plist, H5_SZIP_NN_OPTION_MASK, 8));
    put_filtered(file, "a", H5T_STD_I32LE, plist);
}

/* ---- links, names, attributes -------------------------------- */

static void put_hard_links(hid_t file)
{
    hid_t group = group_in(file, "g");
    hdf5_put(group, "a", H5T_STD_I32LE, 2, H5T_NATIVE_INT32, counted);
    H5(H5Lcreate_hard(group, "a", file, "again", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Gclose(group));
}

static void put_soft_links(hid_t file)
{
    hdf5_put(file, "a", H5T_STD_I32LE, 2, H5T_NATIVE_INT32, counted);
    H5(H5Lcreate_soft("/a", file, "soft", H5P_DEFAULT, H5P_DEFAULT));
}

/* Three files: "a" of the second is in the first, by a link and in a virtual dataset; the third
 * is raw. */
static void make_of_three(exchange_kit *kit, const char *name)
{
    static const hsize_t two = 2;
    hid_t other = hdf5_new_file(kit, "other.h5", 1), file = hdf5_new_file(kit, name, 0);
    hid_t space = H5(H5Screate_simple(1, &two, NULL)), plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    hdf5_put(other, "a", H5T_STD_I32LE, 2, H5T_NATIVE_INT32, counted);
    H5(H5Fclose(other));
    H5(H5Lcreate_external("other.h5", "/", file, "link", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Pset_virtual(plist, space, "other.h5", "a", space));
    H5(H5Dclose(hdf5_new_dataset(file, "virtual", H5T_STD_I32LE, 1, &two, plist, 0, NULL)));
    H5(H5Pclose(plist));
    plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    exchange_text(kit, "other.raw", "--abcd");
    H5(H5Pset_external(plist, "other.raw", 2, 4));
    H5(H5Dclose(hdf5_new_dataset(file, "raw", H5T_STD_U16BE, 1, &two, plist, 0, NULL)));
    H5(H5Pclose(plist));
    H5(H5Sclose(space));
    H5(H5Fclose(file));
}

static void put_names(hid_t file)
{
    hid_t group = group_in(file, "__categories");
    hdf5_put(group, "a b", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted);
    hdf5_put(group, "tab\there", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted + 1);
    hdf5_put(group, "...", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted + 2);
    hdf5_put(group, "50%", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted + 3);
    hdf5_put(group, "zarr.json", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted + 4);
    hdf5_put(group, "gr\xc3\xb6\xc3\x9f" "e", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted + 5);
    H5(H5Gclose(group));
}

static void put_attributes(hid_t file)
{
    static const double floats[] = {0.5, 1e300};
    static const uint64_t most = UINT64_MAX;
    hid_t fixed = text_of(4, H5T_STR_NULLPAD, H5T_CSET_ASCII);
    hdf5_put(file, "a", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted);
    hid_t set = H5(H5Dopen2(file, "a", H5P_DEFAULT));
    hdf5_put_attribute(set, "i1", H5T_STD_I8LE, 0, NULL, H5T_NATIVE_INT32, counted + 1);
    hdf5_put_attribute(set, "u8", H5T_STD_U64LE, 0, NULL, H5T_NATIVE_UINT64, &most);
    hdf5_put_attribute(set, "f8", H5T_IEEE_F64LE, 1, (hsize_t[]){2}, H5T_NATIVE_DOUBLE, floats);
    hdf5_put_attribute(set, "table", H5T_STD_I32LE, 2, (hsize_t[]){2, 2}, H5T_NATIVE_INT32,
                       counted);
    hdf5_put_attribute(set, "text", fixed, 0, NULL, fixed, "mm\0\0");
    H5(H5Dclose(set));
    H5(H5Tclose(fixed));
}

static void put_odd_attributes(hid_t file)
{
    const double odd[] = {NAN, INFINITY, -INFINITY, 0.5};
    hdf5_put(file, "a", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, counted);
    hdf5_put_attribute(file, "f8", H5T_IEEE_F64LE, 0, NULL, H5T_NATIVE_DOUBLE, odd);
    hdf5_put_attribute(file, "f4", H5T_IEEE_F32LE, 1, (hsize_t[]){4}, H5T_NATIVE_DOUBLE, odd);
}

static void put_deep_groups(hid_t file)
{
    hid_t at = group_in(file, "a");
    for (int i = 0; i < 12; i++) {
        hid_t next = group_in(at, "a");
        hdf5_put_attribute(next, "depth", H5T_STD_I32LE, 0, NULL, H5T_NATIVE_INT32, &counted[i]);
        H5(H5Gclose(at));
        at = next;
    }
    hdf5_put(at, "end", H5T_STD_I32LE, 2, H5T_NATIVE_INT32, counted);
    H5(H5Gclose(at));
}

/* So many links and attributes that they are stored as trees. */
static void put_dense(hid_t file)
{
    char name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "d%02d", i);
        const int32_t value = 1000 + i;
        hdf5_put(file, name, H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &value);
        hdf5_put_attribute(file, name, H5T_STD_I32LE, 0, NULL, H5T_NATIVE_INT32, &value);
    }
}

static void put_scales(hid_t file)
{
    static const hsize_t shape[] = {2, 3};
    hdf5_put(file, "y", H5T_STD_I32LE, 2, H5T_NATIVE_INT32, counted);
    hdf5_put(file, "x", H5T_STD_I32LE, 3, H5T_NATIVE_INT32, counted + 2);
    hid_t set = hdf5_new_dataset(file, "v", H5T_STD_I32LE, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT32,
                                 counted);
    static const char *const names[] = {"y", "x"};
    for (unsigned i = 0; i < 2; i++) {
        hid_t scale = H5(H5Dopen2(file, names[i], H5P_DEFAULT));
        H5(H5DSset_scale(scale, names[i]));
        H5(H5DSattach_scale(set, scale, i));
        H5(H5Dclose(scale));
    }
    H5(H5Dclose(set));
}

#define TWELVE "[1,-2,3,4,5,6,7,8,9,10,11,12]"
#define ODD "[1.5,-0.0,\"NaN\",\"Infinity\",\"-Infinity\"]"

static const corpus_entry entries[] = {
    {.cause = "HDF5: integers of each width", .file = "x.h5", .hdf5 = put_integers,
     .checks = {"/i1", "[-128,127]", "/i2", "[-128,127]", "/i4", "[-128,127]", "/i8",
                "[-9223372036854775808,9223372036854775807]", "/u1", "[0,255]", "/u2", "[0,65535]",
                "/u4", "[0,4294967295]", "/u8", "[0,18446744073709551615]"}},
    {.cause = "HDF5: big-endian numbers", .file = "x.h5", .hdf5 = put_big_endian,
     .checks = {"/i2", "[1,-2,3]", "/i4", "[1,-2,3]", "/u8", "[1,18446744073709551615]", "/f4",
                "[0.5,-2.25]", "/f8", "[0.5,-2.25]", "@n", "[1,-2]"}},
    {.cause = "HDF5: floats, not finite ones too", .file = "x.h5", .hdf5 = put_floats,
     .checks = {"/f2", ODD, "/f4", ODD, "/f8", ODD}},
    {.cause = "HDF5: complex numbers", .file = "x.h5", .hdf5 = put_complex,
     .checks = {"/z", "[[1.0,2.0],[-0.5,4.0]]"}},
    {.cause = "HDF5: enumerations and truth values", .file = "x.h5", .hdf5 = put_enums,
     .note = "/colour BLUE",
     .checks = {"/colour", "[50,-50,50]", "/truth", "[true,false,true]"}},
    {.cause = "HDF5: opaque bytes and bit fields", .file = "x.h5", .hdf5 = put_opaque,
     .note = "/o three bytes",
     .checks = {"/o", "[[1,2,3],[255,0,128]]", "/bits8", "[15,240]", "/bits32",
                "[16909060,4278190081]"}},
    {.cause = "HDF5: compounds in compounds, with gaps", .file = "x.h5", .hdf5 = put_compounds,
     .checks = {"/rows", "[{\"n\":1,\"x\":1.5,\"in\":{\"u\":7,\"v\":258}},"
                         "{\"n\":2,\"x\":-2.0,\"in\":{\"u\":255,\"v\":-1}}]"}},
    {.cause = "HDF5: fields of different byte order", .file = "x.h5", .hdf5 = put_mixed_orders,
     .checks = {"/rows", "[{\"little\":513,\"big\":258},{\"little\":-1,\"big\":-2}]"}},
    {.cause = "HDF5: text of fixed length, padded in each way", .file = "x.h5",
     .hdf5 = put_fixed_texts,
     .checks = {"/term", "[\"YWIAAA==\",\"Y2RlAA==\"]", "/null", "[\"YWIAAA==\",\"YWJjZA==\"]",
                "/space", "[\"YWIAAA==\",\"YWJjZA==\"]", "/wide", "[\"aMOpAAA=\",\"4oKsLgA=\"]"}},
    {.cause = "HDF5: text of variable length", .file = "x.h5", .hdf5 = put_free_texts,
     .checks = {"/utf8", "[\"\",\"h\xc3\xa9llo\",\"a\\nb\"]", "/ascii", "[\"x\",\"yz\"]", "/one",
                "[\"h\xc3\xa9llo\"]", "@title", "\"h\xc3\xa9llo\"", "@list", "[\"x\",\"yz\"]"}},
    {.cause = "HDF5: scalars, axes of no length, axes that grow", .file = "x.h5",
     .hdf5 = put_spaces,
     .checks = {"/scalar", "[3]", "/nothing", "[]", "/grows", "[1,-2,3,4]"}},
    {.cause = "HDF5: a dataset with a null space", .file = "x.h5", .hdf5 = put_null_space,
     .checks = {"/a", "[1,-2]", "/null", "[]"}},
    {.cause = "HDF5: compact, contiguous and chunked", .file = "x.h5", .hdf5 = put_layouts,
     .checks = {"/compact", TWELVE, "/contiguous", TWELVE, "/chunked", TWELVE}},
    {.cause = "HDF5: fill values", .file = "x.h5", .hdf5 = put_fill_values,
     .checks = {"/i", "[-9,-9,1,-9]", "/x", "[\"NaN\",\"NaN\",\"NaN\",\"NaN\"]", "/zero",
                "[0,0,0,0]"}},
    {.cause = "HDF5: deflate", .file = "x.h5", .hdf5 = put_deflate, .checks = {"/a", TWELVE}},
    {.cause = "HDF5: shuffle", .file = "x.h5", .hdf5 = put_shuffle, .checks = {"/a", TWELVE}},
    {.cause = "HDF5: checksums, and three filters", .file = "x.h5", .hdf5 = put_fletcher32,
     .checks = {"/a", TWELVE, "/all", TWELVE}},
    {.cause = "HDF5: n bits", .file = "x.h5", .hdf5 = put_nbit, .checks = {"/a", TWELVE}},
    {.cause = "HDF5: scale and offset", .file = "x.h5", .hdf5 = put_scale_offset,
     .checks = {"/a", TWELVE}},
    {.cause = "HDF5: szip", .file = "x.h5", .hdf5 = put_szip, .checks = {"/a", TWELVE}},
    {.cause = "HDF5: hard links", .file = "x.h5", .hdf5 = put_hard_links,
     .checks = {"/g/a", "[1,-2]", "/again", "[1,-2]"}},
    {.cause = "HDF5: soft links", .file = "x.h5", .hdf5 = put_soft_links,
     .checks = {"/a", "[1,-2]", "/soft", "[1,-2]"}},
    {.cause = "HDF5: an external link, a virtual dataset and raw files", .file = "x.h5",
     .other = make_of_three,
     .checks = {"/link/a", "[1,-2]", "/virtual", "[1,-2]", "/raw", "[24930,25444]"}},
    {.cause = "HDF5: names that Zarr does not allow", .file = "x.h5", .hdf5 = put_names,
     .checks = {"/%5F_categories/a b", "[1]", "/%5F_categories/tab%09here", "[-2]",
                "/%5F_categories/%2E..", "[3]", "/%5F_categories/50%", "[4]",
                "/%5F_categories/%7Aarr.json", "[5]",
                "/%5F_categories/gr\xc3\xb6\xc3\x9f" "e", "[6]"}},
    {.cause = "HDF5: attributes of each kind", .file = "x.h5", .hdf5 = put_attributes,
     .checks = {"/a", "[1]", "/a@i1", "-2", "/a@u8", "18446744073709551615", "/a@f8",
                "[0.5,1e+300]", "/a@table", "[[1,-2],[3,4]]", "/a@text", "\"mm\""}},
    {.cause = "HDF5: attributes that are not finite", .file = "x.h5", .hdf5 = put_odd_attributes,
     .checks = {"/a", "[1]", "@f8", "NaN", "@f4", "[NaN,Infinity,-Infinity,0.5]"}},
    {.cause = "HDF5: groups in groups", .file = "x.h5", .hdf5 = put_deep_groups,
     .checks = {"/a/a@depth", "1", "/a/a/a/a/a/a/a/a/a/a/a/a/a@depth", "12",
                "/a/a/a/a/a/a/a/a/a/a/a/a/a/end", "[1,-2]"}},
    {.cause = "HDF5: many links and attributes, as 1.8 stores them", .file = "x.h5", .mode = 1,
     .hdf5 = put_dense,
     .checks = {"/d00", "[1000]", "/d39", "[1039]", "@d00", "1000", "@d39", "1039"}},
    {.cause = "HDF5: dimension scales", .file = "x.h5", .hdf5 = put_scales,
     .note = "/v \"y\"",
     .checks = {"/y", "[1,-2]", "/x", "[3,4,5]", "/v", "[1,-2,3,4,5,6]"}},
};

corpus_table corpus_hdf5(void)
{
    return (corpus_table){entries, sizeof(entries) / sizeof(entries[0])};
}
