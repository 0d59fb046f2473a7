#include "sqlite_copy.h"

#include <check.h>
#include <string.h>

#ifdef HAS_SQLITE_COPY

static void find_in_copy(const sqlite_copy *c, const char *name, void *function)
{
    void *at = dlsym(c->sqlite, name);
    ck_assert_ptr_nonnull(at);
    memcpy(function, &at, sizeof(at));
}

void sqlite_copy_load(sqlite_copy *c)
{
    c->sqlite = dlmopen(LM_ID_NEWLM, "libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(c->sqlite != NULL, "%s", dlerror());
    find_in_copy(c, "sqlite3_open", &c->open);
    find_in_copy(c, "sqlite3_exec", &c->exec);
    find_in_copy(c, "sqlite3_close", &c->close);
    ck_assert(c->open != sqlite3_open);
}

#endif
