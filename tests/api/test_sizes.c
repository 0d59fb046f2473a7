/* Structures of the public interface between programs and libraries of different versions. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/sized.h"
#include "../../src/breccia_backend.h"
#include "../../src/breccia_buffer.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(sizes);

/* ---- the layout -------------------------------- */

/* A field that a later version appended would lie in bytes that an older caller never wrote, if
 * the last field of today were followed by padding. */
#define NO_TAIL(type, last) \
    { #type, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last), offsetof(type, size) }

static const struct {
    const char *name;
    size_t size, end, at;
} layouts[] = {
    NO_TAIL(brc_buf, reserved),        NO_TAIL(brc_error, message),
    NO_TAIL(brc_open_opts, prototype), NO_TAIL(brc_stats, delta_depth),
    NO_TAIL(brc_commit_opts, conflicts), NO_TAIL(brc_diff_opts, sel),
    NO_TAIL(brc_array_spec, compressors_json), NO_TAIL(brc_sel, step),
    NO_TAIL(brc_array_stats_opts, field),
    NO_TAIL(brc_buffer, stream),       NO_TAIL(brc_io, stats),
    NO_TAIL(brc_buffer_stats, there), NO_TAIL(brc_tensor_info, prototype),
    NO_TAIL(brc_tensor_opts, stats),   NO_TAIL(brc_block, own),
    NO_TAIL(brc_rows, stream),         NO_TAIL(brc_buffer_prototype, call_cost),
    NO_TAIL(brc_at, step),             NO_TAIL(brc_there, stream),
    NO_TAIL(brc_key_range, end),       NO_TAIL(brc_key_info, etag),
    NO_TAIL(brc_xfer_opts, reserved),    NO_TAIL(brc_box, count),
    NO_TAIL(brc_proto, reserved),      NO_TAIL(brc_dtype, inner),
    NO_TAIL(brc_dtype_ops, scan),      NO_TAIL(brc_dtype_spec, owner),
    NO_TAIL(brc_codec_spec, owner),    NO_TAIL(brc_codec_impl, why_not),
    NO_TAIL(brc_backend, look),     NO_TAIL(brc_stored, leaves),
    NO_TAIL(brc_kept, time_us),
    NO_TAIL(brc_backend_host, range), NO_TAIL(brc_server, reserved),
    NO_TAIL(brc_credentials, token), NO_TAIL(brc_gc_opts, keep),
    NO_TAIL(brc_gc_report, past_versions), NO_TAIL(brc_expire_opts, reserved),
    NO_TAIL(brc_expire_report, bytes), NO_TAIL(brc_du_report, outside),
    NO_TAIL(brc_merge_opts, reserved), NO_TAIL(brc_merge_result, draft),
    NO_TAIL(brc_open_state, left), NO_TAIL(brc_pick_opts, mainline),
    NO_TAIL(brc_pick_result, left), NO_TAIL(brc_bisect_result, skipped),
    NO_TAIL(brc_log_opts, sel), NO_TAIL(brc_repair_report, missing),
    NO_TAIL(brc_library, functions),
};

CASE("structures");

EACH(every_field_ends_where_the_next_may_begin, layouts)
{
    ck_assert_msg(layouts[_i].end == layouts[_i].size, "%s: %zu of %zu bytes", layouts[_i].name,
                  layouts[_i].end, layouts[_i].size);
    ck_assert_msg(layouts[_i].at == 0, "%s: size comes first", layouts[_i].name);
}

/* ---- what the caller gives -------------------------------- */

typedef struct today {
    size_t size;
    uint64_t one, two;
} today;
typedef struct tomorrow {
    today old;
    uint64_t three;
} tomorrow;

TEST(an_older_structure_has_zero_for_what_it_lacks)
{
    today own, given = { offsetof(today, two), 7, 8 };
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_sized_in(&own, sizeof(own), offsetof(today, two), &given, "today", &err),
                     BRC_OK);
    ck_assert_uint_eq(own.size, sizeof(own));
    ck_assert_uint_eq(own.one, 7);
    ck_assert_uint_eq(own.two, 0);
    ck_assert_int_eq(brc_sized_in(&own, sizeof(own), sizeof(own), NULL, "today", &err), BRC_OK);
    ck_assert_uint_eq(own.one, 0);
}

TEST(a_newer_structure_may_set_only_what_is_known)
{
    today own;
    tomorrow given = { { sizeof(given), 7, 8 }, 0 };
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_sized_in(&own, sizeof(own), sizeof(own), &given, "today", &err), BRC_OK);
    ck_assert_uint_eq(own.two, 8);
    given.three = UINT64_C(1) << 63;
    ck_assert_int_eq(brc_sized_in(&own, sizeof(own), sizeof(own), &given, "today", &err),
                     BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(err.message, "today") != NULL, "%s", err.message);
}

TEST(a_structure_that_is_filled_in_is_written_as_far_as_it_goes)
{
    const today own = { sizeof(own), 7, 8 };
    tomorrow given;
    memset(&given, 0x55, sizeof(given));
    given.old.size = offsetof(today, two);
    ck_assert_int_eq(brc_sized_out(&given, &own, sizeof(own), offsetof(today, two), "today", NULL),
                     BRC_OK);
    ck_assert_uint_eq(given.old.size, offsetof(today, two));
    ck_assert_uint_eq(given.old.one, 7);
    ck_assert_uint_eq(given.old.two, UINT64_C(0x5555555555555555));
    given.old.size = sizeof(given);
    ck_assert_int_eq(brc_sized_out(&given, &own, sizeof(own), sizeof(own), "today", NULL), BRC_OK);
    ck_assert_uint_eq(given.old.size, sizeof(given));
    ck_assert_uint_eq(given.old.two, 8);
    ck_assert_uint_eq(given.three, 0);
}

static const size_t wrong[] = { 0, 1, 4, 12, 17, (size_t)1 << 17, SIZE_MAX, SIZE_MAX - 7 };

EACH(a_size_of_no_version_is_refused, wrong)
{
    today own = { 0, 1, 2 };
    brc_error err = BRC_ERROR_INIT;
    own.size = wrong[_i];
    ck_assert_int_eq(brc_sized_check(wrong[_i], 16, "today", &err), BRC_EINVAL);
    today out;
    ck_assert_int_eq(brc_sized_in(&out, sizeof(out), 16, &own, "today", &err), BRC_EINVAL);
    ck_assert_int_eq(brc_sized_out(&own, &out, sizeof(out), 16, "today", &err), BRC_EINVAL);
    ck_assert_uint_eq(own.one, 1);
}

/* ---- the calls -------------------------------- */

/* A structure of this many bytes more, which a newer caller has. */
typedef union longer {
    brc_open_opts open;
    brc_commit_opts commit;
    brc_diff_opts diff;
    brc_array_spec spec;
    brc_xfer_opts xfer;
    brc_stats stats;
    brc_sel sel;
    brc_buffer buffer;
    brc_at at;
    brc_error error;
    brc_buf buf;
    size_t size;
    unsigned char bytes[2048];
} longer;

static scenario t;

static int give_open(longer *x)
{
    breccia *repo;
    int rc = brc_open(&repo, t.file, &x->open, &t.err);
    if (rc == BRC_OK)
        brc_free(repo);
    return rc;
}

static int give_commit(longer *x)
{
    static int32_t n = 100;
    brc_oid id;
    scenario_set_number(&t, "/a", 0, n++);
    x->commit.message = "it";
    return brc_session_commit(&id, t.session, &x->commit, &t.err);
}

static int give_diff(longer *x)
{
    brc_iter *it;
    int rc = brc_diff(&it, t.repo, NULL, NULL, &x->diff, &t.err);
    brc_iter_free(it);
    return rc;
}

static int give_spec(longer *x)
{
    static const uint64_t shape[1] = { 3 };
    brc_array *a;
    x->spec.ndim = 1;
    x->spec.shape = shape;
    x->spec.dtype = "int8";
    if (x->size < sizeof(brc_array_spec)) /* an older one lacks the type, and is the default */
        x->spec.dtype = NULL;
    int rc = brc_array_create(&a, t.session, "/new", &x->spec, &t.err);
    if (rc == BRC_OK) {
        brc_array_free(a);
        OK(&t, brc_node_remove(t.session, "/new", &t.err));
    }
    return rc;
}

static int give_xfer(longer *x)
{
    char dest[128];
    static int n;
    snprintf(dest, sizeof(dest), "%s/out%d.npy", t.dir, n++);
    return brc_export(t.session, "/a", dest, &x->xfer, &t.err);
}

static int give_stats(longer *x)
{
    return brc_stat(t.repo, &x->stats, &t.err);
}

static int give_sel(longer *x)
{
    int32_t got[8];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    int rc = brc_sel_parse(&x->sel, a, "[2:5]", &t.err);
    if (rc == BRC_OK) {
        ck_assert_uint_eq(brc_sel_count(&x->sel), 3);
        rc = brc_array_read(a, &x->sel, got, 12, &t.err);
        ck_assert(rc != BRC_OK || got[2] == 4);
    }
    brc_array_free(a);
    return rc;
}

static int give_buffer(longer *x)
{
    int32_t got[8];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    x->buffer.data = got;
    x->buffer.len = sizeof(got);
    brc_io io = { .size = sizeof(io), .array = a, .buffer = &x->buffer };
    int rc = brc_read(&io, 1, &t.err);
    ck_assert(rc != BRC_OK || got[7] == 7);
    brc_array_free(a);
    return rc;
}

static int give_at(longer *x)
{
    static const int64_t index[] = { 5, -8 };
    int32_t got[2];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    brc_buffer dst = { .size = sizeof(dst), .data = got, .len = sizeof(got) };
    x->at.ndim = 1;
    x->at.index[0] = index;
    x->at.count[0] = 2;
    int rc = io_take(a, &x->at, &dst, &t.err);
    ck_assert(rc != BRC_OK || (got[0] == 5 && got[1] == 0));
    brc_array_free(a);
    return rc;
}

static const struct {
    const char *name;
    int (*give)(longer *x);
    size_t size, least;
    int is_out; /* the library fills it in                                      */
} calls[] = {
    { "open", give_open, sizeof(brc_open_opts), offsetof(brc_open_opts, memory), 0 },
    { "commit", give_commit, sizeof(brc_commit_opts), offsetof(brc_commit_opts, author), 0 },
    { "diff", give_diff, sizeof(brc_diff_opts), offsetof(brc_diff_opts, flags), 0 },
    { "xfer", give_xfer, sizeof(brc_xfer_opts), offsetof(brc_xfer_opts, codecs_json), 0 },
    { "spec", give_spec, sizeof(brc_array_spec), 0, 0 },
    { "stats", give_stats, sizeof(brc_stats), offsetof(brc_stats, objects), 1 },
    { "sel", give_sel, sizeof(brc_sel), 0, 1 },
    { "buffer", give_buffer, sizeof(brc_buffer), offsetof(brc_buffer, device_id), 0 },
    { "at", give_at, sizeof(brc_at), 0, 0 },
};

static void sizes_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
}

static void sizes_teardown(void)
{
    scenario_stop(&t);
}

CASE("calls", .setup = sizes_setup, .teardown = sizes_teardown);

EACH(calls_take_structures_of_other_versions, calls)
{
    longer x;
    const size_t size = calls[_i].size, least = calls[_i].least;
    memset(&x, 0, sizeof(x));
    x.size = size;
    ck_assert_msg(calls[_i].give(&x) == BRC_OK, "%s", t.err.message);
    if (calls[_i].is_out)
        x.bytes[size + 3] = 1; /* what a newer caller may have there */
    x.size = size + 64;
    ck_assert_msg(calls[_i].give(&x) == BRC_OK, "%s", t.err.message);
    if (calls[_i].is_out)
        ck_assert_uint_eq(x.bytes[size + 3], 0);
    if (!calls[_i].is_out) {
        x.bytes[size + 63] = 1;
        FAILS(&t, BRC_EUNSUPPORTED, calls[_i].give(&x));
    }
    memset(&x, 0, sizeof(x));
    if (least > 0) { /* every version that has so much */
        memset(x.bytes + least, 0x55, sizeof(x) - least);
        x.size = least;
        ck_assert_msg(calls[_i].give(&x) == BRC_OK, "%s", t.err.message);
        for (size_t i = calls[_i].is_out ? least : size; i < sizeof(x); i++)
            ck_assert_uint_eq(x.bytes[i], 0x55);
    }
    memset(&x, 0, sizeof(x));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        x.size = wrong[i];
        FAILS(&t, BRC_EINVAL, calls[_i].give(&x));
    }
}

TEST(flags_that_are_not_known_are_refused)
{
    brc_open_opts open = BRC_OPEN_OPTS_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_diff_opts diff = BRC_DIFF_OPTS_INIT;
    brc_xfer_opts xfer = BRC_XFER_OPTS_INIT;
    breccia *repo;
    brc_oid id;
    brc_iter *it;
    open.flags = commit.flags = diff.flags = xfer.flags = UINT32_C(1) << 30;
    commit.message = "it";
    FAILS(&t, BRC_EINVAL, brc_open(&repo, t.file, &open, &t.err));
    FAILS(&t, BRC_EINVAL, brc_session_commit(&id, t.session, &commit, &t.err));
    FAILS(&t, BRC_EINVAL, brc_diff(&it, t.repo, NULL, NULL, &diff, &t.err));
    FAILS(&t, BRC_EINVAL, brc_export(t.session, "/a", "/nowhere/x.npy", &xfer, &t.err));
    FAILS(&t, BRC_EINVAL, brc_list(&it, t.session, "/", ~0u, &t.err));
    FAILS(&t, BRC_EINVAL, brc_reset(t.repo, NULL, "main", ~0u, NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_switch(t.repo, "main", ~0u, &t.err));
    FAILS(&t, BRC_EINVAL, brc_ref_delete(t.repo, "other", ~0u, &t.err));
    FAILS(&t, BRC_EINVAL, brc_ref_delete(t.repo, "other", BRC_REF_TAG | ~0u, &t.err));
    FAILS(&t, BRC_EINVAL, brc_bulk_end(t.session, ~0u, &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EINVAL, brc_end(t.repo, ~0u, &t.err)); /* it goes on */
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
}

TEST(an_error_keeps_its_size_and_what_lies_behind_it)
{
    longer x;
    memset(&x, 0x55, sizeof(x));
    x.error.size = sizeof(brc_error) + 8;
    ck_assert_int_eq(brc_group_create(t.session, "/a", NULL, &x.error), BRC_EEXISTS);
    ck_assert_int_eq(x.error.code, BRC_EEXISTS);
    ck_assert_uint_eq(x.error.size, sizeof(brc_error) + 8);
    ck_assert_uint_eq(x.bytes[sizeof(brc_error)], 0x55);
    memset(&x, 0, sizeof(x)); /* a zeroed one is of the first version */
    ck_assert_int_eq(brc_group_create(t.session, "/a", NULL, &x.error), BRC_EEXISTS);
    ck_assert_int_eq(x.error.code, BRC_EEXISTS);
    ck_assert_uint_eq(x.bytes[sizeof(brc_error)], 0);
    memset(&x, 0x55, sizeof(x));
    x.error.size = sizeof(brc_error) - 8; /* of no version: it is left alone */
    ck_assert_int_eq(brc_group_create(t.session, "/a", NULL, &x.error), BRC_EEXISTS);
    for (size_t i = sizeof(size_t); i < sizeof(x); i++)
        ck_assert_uint_eq(x.bytes[i], 0x55);
}

TEST(a_buf_keeps_its_size_and_what_lies_behind_it)
{
    longer x;
    memset(&x, 0x55, sizeof(x));
    x.buf = (brc_buf)BRC_BUF_INIT;
    x.buf.size = sizeof(brc_buf) + 8;
    OK(&t, brc_node_json(&x.buf, t.session, "/a", &t.err));
    ck_assert_uint_gt(x.buf.len, 10);
    brc_buf_dispose(&x.buf);
    ck_assert_uint_eq(x.buf.size, sizeof(brc_buf) + 8);
    ck_assert_uint_eq(x.bytes[sizeof(brc_buf)], 0x55);
    memset(&x, 0, sizeof(x));
    OK(&t, brc_node_json(&x.buf, t.session, "/a", &t.err));
    brc_buf_dispose(&x.buf);
    memset(&x, 0x55, sizeof(x));
    x.buf.size = sizeof(brc_buf) - 8;
    FAILS(&t, BRC_EINVAL, brc_node_json(&x.buf, t.session, "/a", &t.err));
    brc_buf_dispose(&x.buf);
    ck_assert_uint_eq(x.bytes[sizeof(size_t)], 0x55);
}

/* A batch steps by the size that its caller's structures have. */
TEST(a_batch_of_longer_items)
{
    struct {
        brc_io io;
        uint64_t more;
    } items[3];
    brc_buffer buffers[3];
    int32_t got[3][8];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    for (int i = 0; i < 3; i++) {
        items[i].io = io_in(&buffers[i], a, NULL, got[i], sizeof(got[i]));
        items[i].io.size = sizeof(items[i]);
        items[i].more = 0;
    }
    OK(&t, brc_read(&items[0].io, 3, &t.err));
    ck_assert_int_eq(got[0][7] + got[1][6] + got[2][5], 18);
    OK(&t, brc_write(&items[0].io, 3, &t.err));
    items[2].more = 1;
    FAILS(&t, BRC_EUNSUPPORTED, brc_read(&items[0].io, 3, &t.err));
    items[2].more = 0;
    items[2].io.size = sizeof(brc_io);
    FAILS(&t, BRC_EINVAL, brc_read(&items[0].io, 3, &t.err));
    items[0].io.size = 0;
    FAILS(&t, BRC_EINVAL, brc_write(&items[0].io, 1, &t.err));
    brc_array_free(a);
}
