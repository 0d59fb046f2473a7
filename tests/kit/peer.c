/* See peer.h. */
#include "peer.h"

#include <check.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenario.h"

enum { DO_SQL, DO_LOCK, DO_UNLOCK, DO_RESERVED };

typedef struct order {
    int what, level;
    char sql[200];
} order;

typedef struct answer {
    int rc, out;
} answer;

typedef struct plain {
    const char *file;
    sqlite3 *db;
    sqlite3_file *real;
} plain;

static int on_file(plain *p, const order *o, int *out)
{
    if (p->real == NULL) {
        sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
        p->real = calloc(1, (size_t)vfs->szOsFile);
        int rc = vfs->xOpen(vfs, p->file, p->real, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE,
                            NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    const sqlite3_io_methods *m = p->real->pMethods;
    return o->what == DO_LOCK     ? m->xLock(p->real, o->level)
           : o->what == DO_UNLOCK ? m->xUnlock(p->real, o->level)
                                  : m->xCheckReservedLock(p->real, out);
}

static int on_connection(plain *p, const order *o)
{
    int rc = SQLITE_OK;
    if (p->db == NULL)
        rc = sqlite3_open_v2(p->file, &p->db, SQLITE_OPEN_READWRITE, NULL);
    return rc != SQLITE_OK ? rc : sqlite3_exec(p->db, o->sql, NULL, NULL, NULL);
}

static void serve(plain *p, int orders, int answers)
{
    order o;
    while (read(orders, &o, sizeof(o)) == (ssize_t)sizeof(o)) {
        answer a = { 0, 0 };
        a.rc = o.what == DO_SQL ? on_connection(p, &o) : on_file(p, &o, &a.out);
        if (write(answers, &a, sizeof(a)) != (ssize_t)sizeof(a))
            break;
    }
    if (p->real != NULL && p->real->pMethods != NULL)
        p->real->pMethods->xClose(p->real);
    free(p->real);
    sqlite3_close(p->db);
}

void peer_start(peer *p, const char *file)
{
    int orders[2], answers[2];
    ck_assert_int_eq(pipe(orders), 0);
    ck_assert_int_eq(pipe(answers), 0);
    p->pid = fork();
    ck_assert_int_ge(p->pid, 0);
    if (p->pid == 0) {
        plain mine = { file, NULL, NULL };
        close(orders[1]);
        close(answers[0]);
        serve(&mine, orders[0], answers[1]);
        _exit(0);
    }
    close(orders[0]);
    close(answers[1]);
    p->to = orders[1];
    p->from = answers[0];
}

void peer_stop(peer *p)
{
    int status;
    close(p->to);
    close(p->from);
    ck_assert_int_eq(waitpid(p->pid, &status, 0), p->pid);
}

static answer ask(peer *p, const order *o)
{
    answer a;
    ck_assert_int_eq(write(p->to, o, sizeof(*o)), sizeof(*o));
    ck_assert_int_eq(read(p->from, &a, sizeof(a)), sizeof(a));
    return a;
}

int peer_sql(peer *p, const char *sql)
{
    order o = { .what = DO_SQL };
    ck_assert_uint_lt(strlen(sql), sizeof(o.sql));
    memcpy(o.sql, sql, strlen(sql) + 1);
    return ask(p, &o).rc;
}

int peer_lock(peer *p, int level)
{
    return ask(p, &(order){ .what = DO_LOCK, .level = level }).rc;
}

int peer_unlock(peer *p, int level)
{
    return ask(p, &(order){ .what = DO_UNLOCK, .level = level }).rc;
}

int peer_reserved(peer *p, int *out)
{
    answer a = ask(p, &(order){ .what = DO_RESERVED });
    *out = a.out;
    return a.rc;
}

int peer_waits(void *ctx, int tries)
{
    uint64_t *random = ctx;
    usleep(200 + (useconds_t)scenario_below(random, 1800));
    return tries < 20000;
}
