/* See hdf5_ragged_kit.h. */
#include "hdf5_ragged_kit.h"

const int32_t hdf5_numbers[12] = { 1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

static hid_t text_type(void)
{
    hid_t type = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(type, H5T_VARIABLE));
    H5(H5Tset_cset(type, H5T_CSET_UTF8));
    return type;
}

hid_t hdf5_int_lists(void)
{
    return H5(H5Tvlen_create(H5T_STD_I32LE));
}

/* ---- lists -------------------------------- */

const hvl_t hdf5_lists[4] = { HDF5_NUMBERS(0, 3), HDF5_NUMBERS(0, 0), HDF5_NUMBERS(4, 1),
                              HDF5_NUMBERS(5, 2) };

void hdf5_put_lists(hid_t file)
{
    hid_t list = hdf5_int_lists();
    const int64_t seven = 7;
    hdf5_put(file, "l", list, 4, list, hdf5_lists);
    hid_t set = H5(H5Dopen2(file, "l", H5P_DEFAULT));
    hdf5_put_attribute(set, "units", H5T_STD_I64LE, 0, NULL, H5T_NATIVE_INT64, &seven);
    hdf5_put_attribute(set, "more", list, 1, (hsize_t[]){ 2 }, list, hdf5_lists);
    H5(H5Dclose(set));
    H5(H5Tclose(list));
}

void hdf5_put_scalar_list(hid_t file)
{
    hid_t list = hdf5_int_lists();
    H5(H5Dclose(hdf5_new_dataset(file, "l", list, 0, NULL, H5P_DEFAULT, list, hdf5_lists)));
    H5(H5Tclose(list));
}

void hdf5_put_matrix_of_lists(hid_t file)
{
    static const hsize_t shape[] = { 2, 2 }, chunk[] = { 1, 2 };
    hid_t list = H5(H5Tvlen_create(H5T_IEEE_F64LE)), memory = hdf5_int_lists();
    hid_t plist = hdf5_chunked(2, chunk);
    H5(H5Dclose(hdf5_new_dataset(file, "m", list, 2, shape, plist, memory, hdf5_lists)));
    H5(H5Pclose(plist));
    H5(H5Tclose(list));
    H5(H5Tclose(memory));
}

/* Puts datasets of no list, of empty lists only, of elements that were never written, and with a
 * null dataspace. */
void hdf5_put_empty_lists(hid_t file)
{
    static const hsize_t none = 0, three = 3, most[] = { H5S_UNLIMITED }, two = 2;
    static const hvl_t empty[3];
    hid_t list = hdf5_int_lists(), plist = hdf5_chunked(1, &two);
    hid_t space = H5(H5Screate_simple(1, &none, most)), null = H5(H5Screate(H5S_NULL));
    H5(H5Dclose(H5(H5Dcreate2(file, "none", list, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Dclose(H5(H5Dcreate2(file, "null", list, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    hdf5_put(file, "empty", list, 3, list, empty);
    H5(H5Dclose(hdf5_new_dataset(file, "fresh", list, 1, &three, plist, list, NULL)));
    H5(H5Sclose(space));
    H5(H5Sclose(null));
    H5(H5Pclose(plist));
    H5(H5Tclose(list));
}

void hdf5_put_growing_lists(hid_t file)
{
    static const hsize_t four = 4, most[] = { H5S_UNLIMITED }, three = 3;
    hid_t list = hdf5_int_lists(), plist = hdf5_chunked(1, &three);
    hid_t space = H5(H5Screate_simple(1, &four, most));
    hid_t set = H5(H5Dcreate2(file, "l", list, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    H5(H5Dwrite(set, list, H5S_ALL, H5S_ALL, H5P_DEFAULT, hdf5_lists));
    H5(H5Dclose(set));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
    H5(H5Tclose(list));
}

/* So many datasets that what is known of them moves. */
void hdf5_put_many_lists(hid_t file)
{
    hid_t list = hdf5_int_lists(), type = hdf5_person_type();
    for (int i = 0; i < 60; i++) {
        char name[16];
        snprintf(name, sizeof(name), "d%02d", i);
        if (i % 2)
            hdf5_put(file, name, list, 4, list, hdf5_lists);
        else
            hdf5_put(file, name, type, 4, type, hdf5_people);
    }
    H5(H5Tclose(type));
    H5(H5Tclose(list));
}

void hdf5_put_nested_lists(hid_t file)
{
    static const hvl_t rows[] = { { 2, (void *)(uintptr_t)hdf5_lists },
                                  { 0, NULL },
                                  { 2, (void *)(uintptr_t)(hdf5_lists + 2) } };
    hid_t list = hdf5_int_lists(), lists = H5(H5Tvlen_create(list));
    hdf5_put(file, "n", lists, 3, lists, rows);
    H5(H5Tclose(lists));
    H5(H5Tclose(list));
}

void hdf5_put_lists_of_texts(hid_t file)
{
    static char *const words[] = { (char *)"a", (char *)"", (char *)"h\xc3\xa9" };
    static const hvl_t rows[] = { { 1, (void *)(uintptr_t)words },
                                  { 0, NULL },
                                  { 2, (void *)(uintptr_t)(words + 1) } };
    hid_t text = text_type(), list = H5(H5Tvlen_create(text));
    hdf5_put(file, "t", list, 3, list, rows);
    H5(H5Tclose(list));
    H5(H5Tclose(text));
}

typedef struct point {
    int32_t n;
    double x;
} point;

/* Compounds that are one data type stay so. */
void hdf5_put_lists_of_compounds(hid_t file)
{
    static const point points[] = { { 1, 0.5 }, { 2, 1.5 }, { 3, -2 } };
    static const hvl_t rows[] = { { 2, (void *)(uintptr_t)points },
                                  { 1, (void *)(uintptr_t)(points + 2) } };
    hid_t type = H5(H5Tcreate(H5T_COMPOUND, 12)),
          memory = H5(H5Tcreate(H5T_COMPOUND, sizeof(point)));
    H5(H5Tinsert(type, "n", 0, H5T_STD_I32LE));
    H5(H5Tinsert(type, "x", 4, H5T_IEEE_F64LE));
    H5(H5Tinsert(memory, "n", HOFFSET(point, n), H5T_NATIVE_INT32));
    H5(H5Tinsert(memory, "x", HOFFSET(point, x), H5T_NATIVE_DOUBLE));
    hid_t list = H5(H5Tvlen_create(type)), in_memory = H5(H5Tvlen_create(memory));
    hdf5_put(file, "p", list, 2, in_memory, rows);
    H5(H5Tclose(list));
    H5(H5Tclose(in_memory));
    H5(H5Tclose(type));
    H5(H5Tclose(memory));
}

/* An array type of lists, and lists of arrays. */
void hdf5_put_arrays_and_lists(hid_t file)
{
    static const hsize_t two = 2;
    static const hvl_t pairs[] = { HDF5_NUMBERS(0, 2), HDF5_NUMBERS(6, 1) };
    hid_t list = hdf5_int_lists(), array = H5(H5Tarray_create2(list, 1, &two));
    hid_t pair = H5(H5Tarray_create2(H5T_STD_I32LE, 1, &two)), of_pairs = H5(H5Tvlen_create(pair));
    hdf5_put(file, "a", array, 2, array, hdf5_lists);
    hdf5_put(file, "p", of_pairs, 2, of_pairs, pairs);
    H5(H5Tclose(of_pairs));
    H5(H5Tclose(pair));
    H5(H5Tclose(array));
    H5(H5Tclose(list));
}

/* An enum, and references. */
void hdf5_put_lists_of_others(hid_t file)
{
    static const int8_t values[] = { 1, 0, 1 };
    static const hvl_t flags[] = { { 3, (void *)(uintptr_t)values } };
    hid_t type = H5(H5Tenum_create(H5T_STD_I8LE)), refs = H5(H5Tvlen_create(H5T_STD_REF_OBJ));
    hobj_ref_t to[2] = { 0 };
    H5(H5Tenum_insert(type, "OFF", (int8_t[]){ 0 }));
    H5(H5Tenum_insert(type, "ON", (int8_t[]){ 1 }));
    hid_t list = H5(H5Tvlen_create(type));
    hdf5_put(file, "flags", list, 1, list, flags);
    H5(H5Rcreate(&to[1], file, "flags", H5R_OBJECT, -1));
    hvl_t row = { 2, to };
    hdf5_put(file, "refs", refs, 1, refs, &row);
    H5(H5Tclose(refs));
    H5(H5Tclose(list));
    H5(H5Tclose(type));
}

/* ---- compounds -------------------------------- */

hid_t hdf5_person_type(void)
{
    static const hsize_t two = 2;
    hid_t type = H5(H5Tcreate(H5T_COMPOUND, sizeof(hdf5_person))), text = text_type();
    hid_t list = hdf5_int_lists(), pair = H5(H5Tarray_create2(H5T_IEEE_F64LE, 1, &two));
    hid_t code = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(code, 4));
    H5(H5Tset_strpad(code, H5T_STR_NULLPAD));
    H5(H5Tinsert(type, "n", HOFFSET(hdf5_person, n), H5T_STD_I32LE));
    H5(H5Tinsert(type, "name", HOFFSET(hdf5_person, name), text));
    H5(H5Tinsert(type, "list", HOFFSET(hdf5_person, list), list));
    H5(H5Tinsert(type, "x", HOFFSET(hdf5_person, x), pair));
    H5(H5Tinsert(type, "code", HOFFSET(hdf5_person, code), code));
    H5(H5Tclose(text));
    H5(H5Tclose(list));
    H5(H5Tclose(pair));
    H5(H5Tclose(code));
    return type;
}

const hdf5_person hdf5_people[4] = {
    { 1, (char *)"h\xc3\xa9", HDF5_NUMBERS(0, 2), { 0.5, 1 }, "ab" },
    { 2, NULL, HDF5_NUMBERS(0, 0), { 2, 3 }, "" },
    { 3, (char *)"xyz", HDF5_NUMBERS(5, 3), { 4, 5 }, "wxyz" },
    { 4, (char *)"", HDF5_NUMBERS(1, 1), { 6, 7 }, "c" },
};

/* With room between the fields, and behind them. */
void hdf5_put_people(hid_t file)
{
    static const hsize_t shape[] = { 2, 2 }, chunk[] = { 2, 1 };
    hid_t type = hdf5_person_type(), plist = hdf5_chunked(2, chunk);
    hdf5_put(file, "p", type, 4, type, hdf5_people);
    H5(H5Dclose(hdf5_new_dataset(file, "m", type, 2, shape, plist, type, hdf5_people)));
    H5(H5Dclose(hdf5_new_dataset(file, "s", type, 0, NULL, H5P_DEFAULT, type, hdf5_people)));
    H5(H5Pclose(plist));
    H5(H5Tclose(type));
}

void hdf5_put_lists_of_people(hid_t file)
{
    static const hvl_t rows[] = { { 3, (void *)(uintptr_t)hdf5_people },
                                  { 0, NULL },
                                  { 1, (void *)(uintptr_t)(hdf5_people + 3) } };
    hid_t type = hdf5_person_type(), list = H5(H5Tvlen_create(type));
    hdf5_put(file, "l", list, 3, list, rows);
    H5(H5Tclose(list));
    H5(H5Tclose(type));
}

/* A committed type, references, and a compound in a compound, with names that no node has. */
void hdf5_put_committed_rows(hid_t file)
{
    struct row {
        hobj_ref_t to;
        struct {
            char *text;
            int64_t n;
        } in;
    } rows[2] = { { 0, { (char *)"a", 5 } }, { 0, { (char *)"bc", 6 } } };
    hid_t text = text_type(), type = H5(H5Tcreate(H5T_COMPOUND, sizeof(rows[0])));
    hid_t inner = H5(H5Tcreate(H5T_COMPOUND, sizeof(rows[0].in)));
    hid_t group = H5(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Rcreate(&rows[1].to, file, "g", H5R_OBJECT, -1));
    H5(H5Tinsert(inner, "a/b", HOFFSET(struct row, in.text) - HOFFSET(struct row, in), text));
    H5(H5Tinsert(inner, "__n", HOFFSET(struct row, in.n) - HOFFSET(struct row, in), H5T_STD_I64LE));
    H5(H5Tinsert(type, "to", HOFFSET(struct row, to), H5T_STD_REF_OBJ));
    H5(H5Tinsert(type, "zarr.json", HOFFSET(struct row, in), inner));
    H5(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hdf5_put(group, "r", type, 2, type, rows);
    H5(H5Gclose(group));
    H5(H5Tclose(inner));
    H5(H5Tclose(type));
    H5(H5Tclose(text));
}

/* The names of its axes come from scales, and lead to them again. */
void hdf5_put_scaled_lists(hid_t file)
{
    static const hsize_t four = 4;
    hid_t list = hdf5_int_lists(), type = hdf5_person_type();
    hid_t x = hdf5_new_dataset(file, "x", H5T_STD_I32LE, 1, &four, H5P_DEFAULT, H5T_NATIVE_INT32,
                               hdf5_numbers);
    hid_t l = hdf5_new_dataset(file, "l", list, 1, &four, H5P_DEFAULT, list, hdf5_lists);
    hid_t p = hdf5_new_dataset(file, "p", type, 1, &four, H5P_DEFAULT, type, hdf5_people);
    H5(H5DSset_scale(x, "x"));
    H5(H5DSattach_scale(l, x, 0));
    H5(H5DSattach_scale(p, x, 0));
    H5(H5Dclose(p));
    H5(H5Dclose(l));
    H5(H5Dclose(x));
    H5(H5Tclose(type));
    H5(H5Tclose(list));
}

/* A fill value with a text, and chunks that nobody wrote. */
void hdf5_put_filled_rows(hid_t file)
{
    struct row {
        int32_t n;
        char *text;
    } fill = { 7, (char *)"none" }, rows[] = { { 1, (char *)"a" }, { 2, (char *)"b" } };
    static const hsize_t six = 6, two = 2, start = 2;
    hid_t text = text_type(), type = H5(H5Tcreate(H5T_COMPOUND, sizeof(fill)));
    hid_t plist = hdf5_chunked(1, &two), space = H5(H5Screate_simple(1, &six, NULL));
    hid_t memory = H5(H5Screate_simple(1, &two, NULL));
    H5(H5Tinsert(type, "n", 0, H5T_STD_I32LE));
    H5(H5Tinsert(type, "text", HOFFSET(struct row, text), text));
    H5(H5Pset_fill_value(plist, type, &fill));
    hid_t set = H5(H5Dcreate2(file, "r", type, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &two, NULL));
    H5(H5Dwrite(set, type, memory, space, H5P_DEFAULT, rows));
    H5(H5Dclose(set));
    H5(H5Sclose(memory));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
    H5(H5Tclose(type));
    H5(H5Tclose(text));
}
