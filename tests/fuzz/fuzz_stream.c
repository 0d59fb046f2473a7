/* Tar streams: whatever they say, an error or a hierarchy that can be read. */
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../../src/xfer/stream/stream_in.h"
#include "../../src/work/session.h"
#include "../../src/zarr/transfer.h"
#include "fuzz.h"

typedef struct fuzz_source {
    const uint8_t *data;
    size_t len;
} fuzz_source;

static int give_some(void *ctx, uint8_t *to, size_t cap, size_t *n, brc_error *err)
{
    fuzz_source *source = ctx;
    (void)err;
    *n = source->len < cap ? source->len : cap;
    if (*n > 1000)
        *n = 1000;
    if (*n > 0)
        memcpy(to, source->data, *n);
    source->data += *n;
    source->len -= *n;
    return BRC_OK;
}

/* Members alone: names that are given are good ones, and bytes are what they say. */
static void read_members(const uint8_t *data, size_t len)
{
    fuzz_source from = { data, len };
    brc_tar_source source = { &from, give_some };
    brc_buf content = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    brc_tar_member member;
    brc_tar_in *in;
    int rc = brc_tar_in_open(&in, &source, "it", &err);
    while (rc >= 0 && (rc = brc_tar_next(in, &member, &err)) > 0) {
        uint64_t bytes;
        FUZZ_TRUE(brc_tar_name_ok(member.name), &err);
        FUZZ_TRUE(!member.refers ||
                      (member.size == 0 && brc_tar_range_bytes(&member.range, &bytes)),
                  &err);
        content.len = 0;
        rc = brc_tar_read(in, 1 << 20, &content, &err);
        FUZZ_TRUE(rc < 0 || content.len == member.size, &err);
    }
    FUZZ_TRUE(rc == 0 || err.code == rc, &err);
    brc_buf_dispose(&content);
    brc_tar_in_free(in);
}

/* file NULL: a stranger's stream; else a converter's, which refers to it. */
static void import_fuzzed(const uint8_t *data, size_t len, const char *file)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_stream_opts how = { .xfer = &opts, .file = file, .name = "it" };
    brc_session *s = fuzz_session();
    uint8_t *copy = fuzz_bytes(data, len);
    fuzz_source from = { copy, len };
    brc_tar_source source = { &from, give_some };
    brc_error err = BRC_ERROR_INIT;
    brc_stream *stream = NULL;
    brc_tar_in *in;

    breccia *repo = brc_session_repo(s);
    int rc = brc_tar_in_open(&in, &source, "it", &err);
    if (rc == BRC_OK)
        rc = brc_begin(repo, &err);
    FUZZ_TRUE(rc == BRC_OK, &err);
    if (brc_stream_open(&stream, s, in, &how, &err) == BRC_OK &&
        brc_stream_import(stream, "/x", &err) == BRC_OK)
        fuzz_read_all(s, BRC_OK);
    brc_stream_free(stream);
    brc_tar_in_free(in);
    FUZZ_TRUE(brc_end(repo, 0, &err) == BRC_OK, &err);
    free(copy);
}

void fuzz_stream(const uint8_t *data, size_t len)
{
    uint8_t *copy = fuzz_bytes(data, len);
    read_members(copy, len);
    free(copy);
    import_fuzzed(data, len, NULL);
    import_fuzzed(data, len, fuzz_file("source", data, len));
}
