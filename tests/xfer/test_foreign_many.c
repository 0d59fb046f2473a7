/* NetCDF and HDF5 files that come in at once, each into a repository of its own: from four
 * threads of one program, and from four programs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/converters.h"
#include "../kit/hdf5_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(foreign_many);

#define IMPORTERS 4
#define TIMES 5
#define ELEMENTS 20000

/* One thread's import, and its result. */
typedef struct importer {
    const char *dir;
    int who;
    char says[600]; /* "": all is well */
} importer;

static int source_value(int file, int i)
{
    return file * 1000003 + i;
}

static void write_sources(exchange_kit *kit)
{
    int *data = calloc(ELEMENTS, sizeof(int));
    char name[16];
    for (int file = 0; file < IMPORTERS; file++) {
        hsize_t n = ELEMENTS;
        for (int i = 0; i < ELEMENTS; i++)
            data[i] = source_value(file, i);
        snprintf(name, sizeof(name), "%d.h5", file);
        hid_t h5 = hdf5_new_file(kit, name, 0);
        hdf5_put(h5, "v", H5T_NATIVE_INT, n, H5T_NATIVE_INT, data);
        H5Fclose(h5);
        for (int kind = 0; kind < 2; kind++) {
            int nc, dim, var;
            snprintf(name, sizeof(name), "%d.nc%s", file, kind ? "4" : "");
            NC(nc_create(exchange_path(kit, name), kind ? NC_NETCDF4 : 0, &nc));
            NC(nc_def_dim(nc, "x", ELEMENTS, &dim));
            NC(nc_def_var(nc, "v", NC_INT, 1, &dim, &var));
            NC(nc_enddef(nc));
            NC(nc_put_var_int(nc, var, data));
            NC(nc_close(nc));
        }
    }
    free(data);
}

static int check_values(brc_session *s, const char *path, int file, brc_error *err)
{
    int *data = calloc(ELEMENTS, sizeof(int)), right = 1;
    brc_array *a = NULL;
    int rc = brc_array_open(&a, s, path, err);
    if (rc == BRC_OK)
        rc = brc_array_read(a, NULL, data, ELEMENTS * sizeof(int), err);
    for (int i = 0; i < ELEMENTS && rc == BRC_OK; i++)
        right &= data[i] == source_value(file, i);
    brc_array_free(a);
    free(data);
    if (rc == BRC_OK && !right) {
        snprintf(err->message, sizeof(err->message), "%s has other values", path);
        rc = BRC_ECORRUPT;
    }
    return rc;
}

static int import_all(importer *self, brc_session *s, brc_error *err)
{
    static const char *const endings[] = { "nc", "h5", "nc4" };
    char source[300], path[64], array[80];
    int rc = BRC_OK;
    for (int round = 0; round < TIMES; round++)
        for (int file = 0; file < IMPORTERS; file++)
            for (int k = 0; k < 3 && rc == BRC_OK; k++) {
                int other = (file + self->who) % IMPORTERS;
                snprintf(source, sizeof(source), "%s/%d.%s", self->dir, other, endings[k]);
                snprintf(path, sizeof(path), "/r%d/%s%d", round, endings[k], other);
                snprintf(array, sizeof(array), "%s/v", path);
                rc = brc_import(s, source, path, NULL, err);
                if (rc == BRC_OK)
                    rc = check_values(s, array, other, err);
            }
    return rc;
}

static void *import_them(void *ctx)
{
    importer *self = ctx;
    breccia *repo = NULL;
    brc_session *s = NULL;
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    char file[300];

    snprintf(file, sizeof(file), "%s/r%d.brc", self->dir, self->who);
    opts.flags = BRC_OPEN_CREATE;
    opts.libexec = converters_folder();
    int rc = brc_open(&repo, file, &opts, &err);
    if (rc == BRC_OK)
        rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err);
    if (rc == BRC_OK)
        rc = import_all(self, s, &err);
    if (rc < 0)
        snprintf(self->says, sizeof(self->says), "%s", err.message);
    brc_session_free(s);
    brc_free(repo);
    return NULL;
}

CASE("many", .timeout = 300);

TEST(from_threads)
{
    pthread_t threads[IMPORTERS];
    importer importers[IMPORTERS];
    exchange_kit kit;
    exchange_folder_start(&kit);
    write_sources(&kit);
    for (int i = 0; i < IMPORTERS; i++) {
        importers[i] = (importer){ .dir = kit.dir, .who = i };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, import_them, &importers[i]), 0);
    }
    for (int i = 0; i < IMPORTERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < IMPORTERS; i++)
        ck_assert_str_eq(importers[i].says, "");
    exchange_stop(&kit);
}

TEST(from_processes)
{
    pid_t children[IMPORTERS];
    int status;
    exchange_kit kit;
    exchange_folder_start(&kit);
    write_sources(&kit);
    for (int i = 0; i < IMPORTERS; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] == 0) {
            importer self = { .dir = kit.dir, .who = i };
            import_them(&self);
            if (self.says[0])
                fprintf(stderr, "importer %d: %s\n", i, self.says);
            _exit(self.says[0] != 0);
        }
    }
    for (int i = 0; i < IMPORTERS; i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    exchange_stop(&kit);
}
