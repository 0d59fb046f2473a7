#include "late_writer.h"

#include <check.h>
#include <string.h>

int late_writer_now(const char *file, int wait_ms, brc_error *err)
{
    breccia *repo;
    brc_session *s;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = wait_ms;
    int rc = brc_open(&repo, file, &opts, err);
    if (rc < 0)
        return rc;
    rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, err);
    if (rc == BRC_OK) {
        rc = brc_group_create(s, "/g", NULL, err);
        brc_session_free(s);
    }
    brc_free(repo);
    return rc;
}

static void *write_late(void *ctx)
{
    late_writer *w = ctx;
    w->rc = late_writer_now(w->file, 60000, &w->err);
    atomic_store(&w->is_over, 1);
    return NULL;
}

void late_writer_start(late_writer *w, const char *file)
{
    memset(w, 0, sizeof(*w));
    w->err = (brc_error)BRC_ERROR_INIT;
    w->file = file;
    ck_assert_int_eq(pthread_create(&w->thread, NULL, write_late, w), 0);
}

void late_writer_join(late_writer *w)
{
    ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
    ck_assert_msg(w->rc == BRC_OK, "%s", w->err.message);
}
