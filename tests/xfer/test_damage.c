/* Damaged files of the formats that converters read: HDF5 and NetCDF, cut off and with bytes
 * changed. Whatever the format's library makes of them, an import is good or one error, it
 * leaves nothing behind, and the repository is whole. What was imported has the elements that
 * the library itself reads of the damaged file. `make flips` tries as many as one likes; with
 * FORK=1 converters are forked and not started, for a million. */
#include <errno.h>
#include <fcntl.h>
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/convert/hdf5/hdf5_driver.h"
#include "../../src/convert/netcdf/netcdf_driver.h"
#include "../../src/xfer/foreign/protocol.h"
#include "../../src/xfer/stream/stream_in.h"
#include "../kit/converters.h"
#include "../kit/effort.h"
#include "../kit/folder.h"
#include "../kit/fsck_kit.h"
#include "../kit/hdf5_ragged_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/reread.h"
#include "../kit/sanitized.h"
#include "../kit/suite.h"

TEST_SUITE(damage);

/* ---- whole files ----------------------------------------------- */

/* A little of everything; an enum too, but not in the old format: the library trips over
 * damaged ones while it opens the dataset. */
static void write_hdf5(exchange_kit *kit, const char *name, int old)
{
    static const hsize_t shape[] = { 5, 8 }, chunk[] = { 2, 4 }, three = 3, one = 1;
    static const float scale[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const char *texts[] = { "a", "bb", "ccc" };
    int16_t values[40];
    for (int i = 0; i < 40; i++)
        values[i] = (int16_t)(i * 3);
    hid_t file = hdf5_new_file(kit, name, old), plist = hdf5_chunked(2, chunk);
    hid_t text = H5(H5Tcopy(H5T_C_S1)), record = H5(H5Tcreate(H5T_COMPOUND, 6));
    hid_t type = H5(H5Tenum_create(H5T_NATIVE_INT8));
    int8_t value = 1;
    H5(H5Tset_size(text, H5T_VARIABLE));
    H5(H5Tinsert(record, "a", 0, H5T_STD_I16LE));
    H5(H5Tinsert(record, "b", 2, H5T_IEEE_F32LE));
    H5(H5Tenum_insert(type, "ONE", &value));
    H5(H5Pset_shuffle(plist));
    H5(H5Pset_deflate(plist, 6));
    hdf5_put_attribute(file, "t", text, 0, NULL, text, texts);
    hdf5_put_attribute(file, "r", record, 0, NULL, record, "\1\2\0\0\0");
    H5(H5Gclose(H5(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    hid_t a =
        hdf5_new_dataset(file, "g/a", H5T_STD_I16BE, 2, shape, plist, H5T_NATIVE_INT16, values);
    hid_t s = hdf5_new_dataset(file, "g/s", H5T_IEEE_F32LE, 1, shape + 1, H5P_DEFAULT,
                               H5T_NATIVE_FLOAT, scale);
    hdf5_put(file, "g/t", text, three, text, texts);
    if (!old)
        hdf5_put(file, "g/e", type, one, type, &value);
    H5(H5DSset_scale(s, "s"));
    H5(H5DSattach_scale(a, s, 1));
    H5(H5DSset_label(a, 0, "rows"));
    H5(H5Lcreate_soft("/g/s", file, "g/soft", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Dclose(a));
    H5(H5Dclose(s));
    H5(H5Tclose(text));
    H5(H5Tclose(record));
    H5(H5Tclose(type));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
}

/* Lists, lists of lists, and compounds with texts and lists. */
static void write_lists(exchange_kit *kit, const char *name, int old)
{
    hid_t file = hdf5_new_file(kit, name, old);
    hdf5_put_lists(file);
    hdf5_put_nested_lists(file);
    hdf5_put_lists_of_texts(file);
    hdf5_put_people(file);
    H5(H5Fclose(file));
}

static void write_classic(exchange_kit *kit, const char *name, int mode)
{
    netcdf_write_small(exchange_path(kit, name), mode);
}

/* The features that NetCDF-4 adds: groups, texts, filters. */
static void write_netcdf4(exchange_kit *kit, const char *name, int mode)
{
    const char *path = exchange_path(kit, name), *texts[] = { "a", "", "ccc" };
    const size_t chunk[] = { 2 };
    const int data[3] = { 7, -7, 70 };
    int nc, group, x, var;
    netcdf_write_small(path, mode);
    NC(nc_open(path, NC_WRITE, &nc));
    NC(nc_inq_dimid(nc, "x", &x));
    NC(nc_def_grp(nc, "g", &group));
    NC(nc_def_var(group, "texts", NC_STRING, 1, &x, &var));
    NC(nc_put_var_string(group, var, texts));
    NC(nc_def_var(group, "packed", NC_INT, 1, &x, &var));
    NC(nc_def_var_chunking(group, var, NC_CHUNKED, chunk));
    NC(nc_def_var_deflate(group, var, 1, 1, 6));
    NC(nc_put_var_int(group, var, data));
    NC(nc_put_att_string(group, var, "words", 2, texts));
    NC(nc_close(nc));
}

static const struct {
    const char *name, *file;
    void (*write)(exchange_kit *kit, const char *name, int mode);
    int mode;
} kinds[] = {
    { "HDF5, new format", "bad.h5", write_hdf5, 0 },
    { "HDF5, old format", "bad.h5", write_hdf5, 1 },
    { "HDF5, lists", "bad.h5", write_lists, 0 },
    { "NetCDF-4", "bad.nc", write_netcdf4, NC_NETCDF4 },
    { "NetCDF classic", "bad.nc", write_classic, 0 },
    { "NetCDF 64-bit offset", "bad.nc", write_classic, NC_64BIT_OFFSET },
    { "NetCDF 64-bit data", "bad.nc", write_classic, NC_64BIT_DATA },
};
#define N_KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))
#define N_HDF5 3     /* the first ones */
#define N_BY_HDF5 4  /* the converter of HDF5 reads those, and NetCDF-4 */

/* ---- importing ------------------------------------------------- */

#define BATCH 2000 /* files in one repository */
#define SECONDS (KIT_SANITIZED ? 5 : 1) /* of processor time for one of them */

typedef struct trial {
    exchange_kit kit;
    int kind, is_forked;
    brc_buf whole, bytes;
    reread *seen; /* what the library reads of the last file */
    uint64_t tried, imported, refused, crashed, endless, compared;
} trial;

/* The converters, under a limit of processor time: a library finds no end in some files, and
 * the minutes that they have otherwise would be all that thousands of them take. */
static void limit_converters(exchange_kit *kit)
{
    static const char *const names[] = { "hdf5", "netcdf" };
    char script[5000], name[16];
    for (int i = 0; i < 2; i++) {
        int n = snprintf(script, sizeof(script), "#!/bin/sh\nulimit -t %d\nexec '%s/%s' \"$@\"\n",
                         SECONDS, converters_folder(), names[i]);
        ck_assert(n > 0 && (size_t)n < sizeof(script));
        snprintf(name, sizeof(name), "bin/%s", names[i]);
        ck_assert_int_eq(chmod(exchange_text(kit, name, script), 0700), 0);
    }
}

static void open_with_limited_converters(trial *t)
{
    exchange_folder_in(&t->kit, FOLDER_FAST);
    limit_converters(&t->kit);
    exchange_open(&t->kit, exchange_path(&t->kit, "bin"));
}

/* Checks with fsck after all imports, good and failed. */
static void close_repository(trial *t)
{
    int rc = brc_fsck(t->kit.repo, 0, fsck_finds_nothing, NULL, NULL, NULL, &t->kit.err);
    ck_assert_msg(rc == BRC_OK, "fsck: %d, %s", rc, t->kit.err.message);
    exchange_stop(&t->kit);
}

static void start_trial(trial *t, int kind)
{
    memset(t, 0, sizeof(*t));
    t->kind = kind;
    t->seen = reread_new();
    /* a process whose parent is gone becomes this one's child: so none can hide */
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    open_with_limited_converters(t);
    kinds[kind].write(&t->kit, "whole", kinds[kind].mode);
    t->whole = exchange_read(exchange_path(&t->kit, "whole"));
}

static void stop_trial(trial *t)
{
    close_repository(t);
    reread_free(t->seen);
    brc_buf_dispose(&t->whole);
    brc_buf_dispose(&t->bytes);
}

static int is_expected(int rc)
{
    return rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT ||
           rc == BRC_EIO || rc == BRC_ENOMEM || rc == BRC_EEXISTS;
}

static void count_ending(trial *t, int rc)
{
    const char *says = t->kit.err.message;
    t->tried++;
    if (rc == BRC_OK)
        t->imported++;
    else if (strstr(says, "SIGXCPU"))
        t->endless++;
    else if (strstr(says, "crashed") || strstr(says, "SIGKILL"))
        t->crashed++;
    else
        t->refused++;
}

/* A sanitizer's process that crashes has one of its own, to read symbols, which ends a little
 * after it: it gets five seconds. */
static int no_process_is_left(void)
{
    for (int i = 0; i < 500; i++) {
        pid_t ended = waitpid(-1, NULL, WNOHANG);
        if (ended == -1)
            return errno == ECHILD;
        if (ended == 0)
            nanosleep(&(struct timespec){ 0, 10 * 1000000 }, NULL);
    }
    return 0;
}

/* ---- without starting a program ---------------------------------- */

/* The signal that ended the child (a reader that went is none), or 0; its exit status. */
static int wait_for(pid_t child, int *status)
{
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    *status = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    return WIFSIGNALED(how) && WTERMSIG(how) != SIGPIPE ? WTERMSIG(how) : 0;
}

/* All converters where BRECCIA_FORK says so; in `make test` seven of eight. */
static int forks_next(const trial *t)
{
    if (getenv("BRECCIA_FORK") != NULL)
        return 1;
    return !effort_is_long() && getenv("BRECCIA_FLIPS") == NULL && t->tried % 8 > 0;
}

/* A child takes some milliseconds, or has no end. RLIMIT_CPU counts whole seconds, which would be
 * much of the time that many flips take, so a timer ends what needs longer without system calls. */
static void limit_child(void)
{
    const struct rlimit cpu = { SECONDS, SECONDS };
    const struct itimerval soon = { .it_value = { KIT_SANITIZED ? SECONDS : 0, 300000 } };
    if (setrlimit(RLIMIT_CPU, &cpu) < 0 || setitimer(ITIMER_VIRTUAL, &soon, NULL) < 0)
        _exit(1);
}

static void reread_file(trial *t, const char *file)
{
    if (t->kind < N_HDF5)
        reread_hdf5(t->seen, file);
    else
        reread_netcdf(t->seen, file);
}

/* Then reads the file again: the parent looks at how that ends only if the status is not here. */
static _Noreturn void convert_in_child(trial *t, const brc_driver *driver, const char *file,
                                       int stream)
{
    char format[] = "converter", verb[] = "import", name[512];
    char *args[] = { format, verb, name, NULL };
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    snprintf(name, sizeof(name), "%s", file);
    if (nowhere < 0 || dup2(stream, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0)
        _exit(1);
    limit_child();
    int status = brc_convert_main(3, args, driver);
    t->seen->status = status;
    close(STDOUT_FILENO);
    if (status == BRC_STATUS_GOOD)
        reread_file(t, file);
    _exit(status);
}

static void reread_in_child(trial *t, const char *file)
{
    int status;
    reread_clear(t->seen);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        limit_child();
        reread_file(t, file);
        _exit(0);
    }
    (void)wait_for(child, &status);
}

static void compare_elements(trial *t, const char *file)
{
    char what[64];
    if (!t->is_forked)
        reread_in_child(t, file);
    snprintf(what, sizeof(what), "%s, file %llu", kinds[t->kind].name,
             (unsigned long long)t->tried);
    t->compared += reread_compare(t->seen, &t->kit, "/bad", what);
}

static int take_stream(trial *t, int stream, const char *file)
{
    const brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    const brc_stream_opts how = { .xfer = &opts, .file = file, .name = file };
    brc_error *err = &t->kit.err;
    brc_tar_in *tar;
    brc_stream *in;
    int rc = brc_tar_in_open_fd(&tar, stream, file, err);
    if (rc < 0)
        return rc;
    rc = brc_stream_open(&in, t->kit.session, tar, &how, err);
    if (rc == BRC_OK) {
        rc = brc_stream_import(in, "/bad", err);
        brc_stream_free(in);
    }
    brc_tar_in_free(tar);
    return rc;
}

/* Imports as brc_import() does, with a converter that was forked here with its libraries loaded:
 * that takes a tenth of the time, since starting a program is most of it. */
static int import_forked(trial *t, const brc_driver *driver, const char *file)
{
    brc_error *err = &t->kit.err;
    int ends[2], status;
    ck_assert_int_eq(brc_begin(t->kit.repo, err), BRC_OK);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    reread_clear(t->seen);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        convert_in_child(t, driver, file, ends[1]);
    close(ends[1]);
    int rc = take_stream(t, ends[0], file);
    close(ends[0]);
    int signal = wait_for(child, &status);
    if (t->seen->status >= 0) {
        signal = 0;
        status = t->seen->status;
    }
    if (signal == SIGVTALRM || signal == SIGXCPU || signal == SIGKILL)
        rc = brc_fail(err, BRC_EINVAL, "SIGXCPU");
    else if (signal)
        rc = brc_fail(err, BRC_EINVAL, "the converter crashed");
    else if (status != BRC_STATUS_GOOD && status >= 0)
        rc = brc_fail(err, BRC_EINVAL, "status %d", status);
    ck_assert_int_eq(brc_end(t->kit.repo, rc == BRC_OK ? BRC_END_KEEP : 0, NULL), BRC_OK);
    if (rc == BRC_ECORRUPT) /* as brc_import() says it of a converter's file */
        rc = err->code = BRC_EINVAL;
    return rc;
}

static int import_file(trial *t, const char *file)
{
    t->is_forked = forks_next(t);
    if (!t->is_forked)
        return brc_import(t->kit.session, file, "/bad", NULL, &t->kit.err);
    return import_forked(t, t->kind < N_BY_HDF5 ? &brc_hdf5_driver : &brc_netcdf_driver, file);
}

/* A good import, or one error of one line; then no process is there, and nothing of the file. */
static int import_bytes(trial *t, const char *what, uint64_t at)
{
    exchange_kit *kit = &t->kit;
    const char *file = exchange_path(kit, kinds[t->kind].file), *says = kit->err.message;
    unsigned long long number = at;
    int clean = 0;

    if (t->tried > 0 && t->tried % BATCH == 0) {
        close_repository(t);
        open_with_limited_converters(t);
        file = exchange_path(kit, kinds[t->kind].file);
    }
    alarm(60);
    ck_assert_int_eq(brc_file_write(file, t->bytes.data, t->bytes.len, NULL), BRC_OK);
    int rc = import_file(t, file);
    ck_assert_msg(is_expected(rc), "%s %llu: %d, %s", what, number, rc, says);
    ck_assert_msg(rc == BRC_OK || (says[0] && !strchr(says, '\n')), "%s %llu: \"%s\"", what, number,
                  says);
    ck_assert_msg(no_process_is_left(), "%s %llu: a process is left", what, number);
    count_ending(t, rc);
    if (rc == BRC_OK) {
        compare_elements(t, file);
        ck_assert_int_eq(brc_node_remove(kit->session, "/bad", NULL), BRC_OK);
    }
    ck_assert_int_eq(brc_session_clean(&clean, kit->session, NULL), BRC_OK);
    ck_assert_msg(clean, "%s %llu: something came in", what, number);
    ck_assert_int_eq(unlink(file), 0);
    return rc;
}

static void take_bytes(trial *t, size_t len)
{
    t->bytes.len = 0;
    ck_assert_int_eq(brc_buf_append(&t->bytes, t->whole.data, len, NULL), BRC_OK);
}

/* ---- what is damaged ------------------------------------------- */

CASE("cuts", .timeout = 600);

/* This test cuts HDF5 files; the suite netcdf_files cuts NetCDF files. Files of lists differ from
 * the others only in their heaps, so they are cut in fewer places. */
LOOP(cut_off, 0, N_HDF5)
{
    trial t;
    start_trial(&t, _i);
    const size_t step = (kinds[_i].write == write_lists ? 64 : 8) * effort_step(4, 4);
    for (size_t len = 0; len < t.whole.len; len += step) {
        take_bytes(&t, len);
        int rc = import_bytes(&t, "cut at", len);
        ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "cut at %zu: %d", len, rc);
    }
    stop_trial(&t);
}

#define FLIPS 40 /* of each kind, where `make flips` does not say how many; 160 in the long form */

/* splitmix64: the n-th number behind a seed. */
static uint64_t random_number(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The i-th damage, which is the same whoever else does the others: every byte changed in four
 * ways in its turn, spread over the file where there are fewer flips than bytes; behind those,
 * up to four bytes anywhere. */
static void damage_bytes(trial *t, uint64_t i, uint64_t flips, uint64_t seed)
{
    static const uint8_t ways[] = { 0xff, 0x01, 0x80, 0x10 };
    uint64_t len = t->whole.len, way = i / len;
    take_bytes(t, t->whole.len);
    if (way < 4) {
        t->bytes.data[flips < len ? i * len / flips : i % len] ^= ways[way];
        return;
    }
    for (uint64_t n = 0; n <= i % 4; n++) {
        uint64_t r = random_number(seed, i * 4 + n);
        t->bytes.data[(r >> 8) % len] = (uint8_t)r;
    }
}

CASE("flips", .timeout = getenv("BRECCIA_FLIPS") ? 0 : 600);

/* `make flips` may share the flips of one seed among several processes (part of parts), and do
 * only the kinds with BRECCIA_KIND in their names. */
LOOP(flipped, 0, N_KINDS)
{
    trial t;
    uint64_t flips = effort_number("BRECCIA_FLIPS", effort_is_long() ? 4 * FLIPS : FLIPS);
    uint64_t seed = effort_number("BRECCIA_SEED", 1);
    uint64_t parts = effort_number("BRECCIA_PARTS", 1);
    const char *kind = getenv("BRECCIA_KIND");
    if (kind && !strstr(kinds[_i].name, kind))
        return;
    start_trial(&t, _i);
    for (uint64_t i = effort_number("BRECCIA_PART", 0); i < flips; i += parts) {
        damage_bytes(&t, i, flips, seed);
        (void)import_bytes(&t, "flip", i);
    }
    ck_assert_uint_eq(t.tried, t.imported + t.refused + t.crashed + t.endless);
    if (t.tried >= FLIPS) { /* the rig itself works */
        ck_assert_uint_gt(t.imported, 0);
        ck_assert_uint_gt(t.refused, 0);
        ck_assert_uint_gt(t.compared, t.imported);
    }
    if (getenv("BRECCIA_FLIPS"))
        fprintf(stderr,
                "%s, %zu bytes: %llu flips: %llu imported (%llu arrays compared), %llu refused, "
                "%llu crashes and %llu loops of converters held\n",
                kinds[_i].name, t.whole.len, (unsigned long long)t.tried,
                (unsigned long long)t.imported, (unsigned long long)t.compared,
                (unsigned long long)t.refused, (unsigned long long)t.crashed,
                (unsigned long long)t.endless);
    stop_trial(&t);
}

CASE("cuts");

/* The layout of three texts has their address, and says that they take no bytes: the library reads
 * them all the same (found by `make flips`). */
TEST(texts_that_take_no_bytes_by_their_layout)
{
    static const uint8_t size[] = { 48, 0, 0, 0, 0, 0, 0, 0 }, contiguous[] = { 3, 1 };
    trial t;
    int found = 0;
    start_trial(&t, 1);
    for (size_t i = 10; i + sizeof(size) <= t.whole.len; i++)
        if (memcmp(t.whole.data + i, size, sizeof(size)) == 0 &&
            memcmp(t.whole.data + i - 10, contiguous, sizeof(contiguous)) == 0) {
            t.whole.data[i] = 0;
            found++;
        }
    ck_assert_int_eq(found, 1);
    take_bytes(&t, t.whole.len);
    ck_assert_int_eq(import_bytes(&t, "size", 0), BRC_OK); /* and has compared the elements */
    ck_assert_uint_eq(t.compared, 3);
    stop_trial(&t);
}

/* A chunk of 2 x 4 becomes one of 0x1e000002 x 4: the library takes what is behind the decoded
 * bytes in memory for elements. */
TEST(chunks_longer_than_the_dataset)
{
    static const uint8_t dims[] = { 2, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0 }; /* and the item's size */
    trial t;
    start_trial(&t, 1);
    uint8_t *at = memmem(t.whole.data, t.whole.len, dims, sizeof(dims));
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_null(memmem(at + 1, t.whole.len - (size_t)(at + 1 - t.whole.data), dims,
                              sizeof(dims)));
    at[3] = 0x1e;
    take_bytes(&t, t.whole.len);
    ck_assert_int_eq(import_bytes(&t, "chunk", 0), BRC_EINVAL);
    if (!t.is_forked) /* else the message is not passed on */
        ck_assert_ptr_nonnull(strstr(t.kit.err.message, "/g/a: its chunks are longer than"));
    stop_trial(&t);
}
