/* Datasets of lists of variable length, and of compounds with texts, lists or references: each of these
 * functions puts some of one kind into a file. */
#ifndef BRC_TESTS_HDF5_RAGGED_KIT_H
#define BRC_TESTS_HDF5_RAGGED_KIT_H

#include "hdf5_kit.h"

extern const int32_t hdf5_numbers[12];
/* A list of n of them. */
#define HDF5_NUMBERS(from, n) { n, (void *)(uintptr_t)(hdf5_numbers + (from)) }
hid_t hdf5_int_lists(void); /* the type */
extern const hvl_t hdf5_lists[4];

typedef struct hdf5_person {
    int32_t n;
    char *name;
    hvl_t list;
    double x[2];
    char code[4];
} hdf5_person;
hid_t hdf5_person_type(void);
extern const hdf5_person hdf5_people[4];

void hdf5_put_lists(hid_t file);
void hdf5_put_scalar_list(hid_t file);
void hdf5_put_matrix_of_lists(hid_t file);
void hdf5_put_empty_lists(hid_t file);
void hdf5_put_growing_lists(hid_t file);
void hdf5_put_many_lists(hid_t file);
void hdf5_put_nested_lists(hid_t file);
void hdf5_put_lists_of_texts(hid_t file);
void hdf5_put_lists_of_compounds(hid_t file);
void hdf5_put_arrays_and_lists(hid_t file);
void hdf5_put_lists_of_others(hid_t file);
void hdf5_put_people(hid_t file);
void hdf5_put_lists_of_people(hid_t file);
void hdf5_put_committed_rows(hid_t file);
void hdf5_put_scaled_lists(hid_t file);
void hdf5_put_filled_rows(hid_t file);

#endif
