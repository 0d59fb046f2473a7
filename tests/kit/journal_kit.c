/* See journal_kit.h. */
#include "journal_kit.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECTOR 512
#define NONCE 7
#define LOCK_BYTE 0x40000000

static const uint8_t mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

static void add_number(brc_buf *journal, uint32_t n)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        ck_assert_int_eq(brc_buf_byte(journal, (uint8_t)(n >> shift), NULL), BRC_OK);
}

static void add_bytes(brc_buf *journal, const void *bytes, size_t len)
{
    ck_assert_int_eq(brc_buf_append(journal, bytes, len, NULL), BRC_OK);
}

static void fill_sector(brc_buf *journal)
{
    while (journal->len % SECTOR != 0)
        ck_assert_int_eq(brc_buf_byte(journal, 0, NULL), BRC_OK);
}

void journal_kit_more(brc_buf *journal, int64_t pages_before, uint32_t page_size, uint32_t records)
{
    fill_sector(journal);
    add_bytes(journal, mark, sizeof(mark));
    add_number(journal, records);
    add_number(journal, NONCE);
    add_number(journal, (uint32_t)pages_before);
    add_number(journal, SECTOR);
    add_number(journal, page_size);
    fill_sector(journal);
}

brc_buf journal_kit_header(int64_t pages_before, uint32_t page_size, uint32_t records)
{
    brc_buf journal = BRC_BUF_INIT;
    journal_kit_more(&journal, pages_before, page_size, records);
    return journal;
}

void journal_kit_page(brc_buf *journal, uint32_t number, const uint8_t *page, uint32_t page_size)
{
    uint32_t sum = NONCE;
    for (int at = (int)page_size - 200; at > 0; at -= 200)
        sum += page[at];
    add_number(journal, number);
    add_bytes(journal, page, page_size);
    add_number(journal, sum);
}

void journal_kit_name(brc_buf *journal, const char *name, uint32_t off)
{
    uint32_t sum = off, len = (uint32_t)strlen(name);
    for (uint32_t i = 0; i < len; i++)
        sum += (uint8_t)name[i];
    add_number(journal, LOCK_BYTE / 16384 + 1);
    add_bytes(journal, name, len);
    add_number(journal, len);
    add_number(journal, sum);
    add_bytes(journal, mark, sizeof(mark));
}

/* ---- writers --------------------------------------------------------------------- */

static int commit_over(const char *file, const char *vfs, int n, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    breccia *repo = NULL;
    brc_session *s = NULL;
    brc_oid id;
    char value[32];
    snprintf(value, sizeof(value), "%d", n);
    opts.vfs = vfs;
    commit.message = value;
    int rc = brc_open(&repo, file, &opts, err);
    if (rc == BRC_OK)
        rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, err);
    if (rc == BRC_OK)
        rc = brc_attrs_set(s, "/", "n", value, err);
    if (rc == BRC_OK)
        rc = brc_session_commit(&id, s, &commit, err);
    brc_session_free(s);
    brc_free(repo);
    return rc;
}

int journal_kit_commit(const char *file, int n, brc_error *err)
{
    return commit_over(file, NULL, n, err);
}

int journal_kit_look(const char *file, uint32_t flags, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo = NULL;
    uint64_t checked;
    opts.flags = flags;
    opts.wait_ms = -1;
    int rc = brc_open(&repo, file, &opts, err);
    if (rc == BRC_OK)
        rc = brc_fsck(repo, 0, NULL, NULL, NULL, &checked, err);
    brc_free(repo);
    return rc;
}

static int die(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    (void)name;
    (void)sync_folder;
    _exit(0);
}

/* With this VFS the process ends where its first journal would be deleted: all is written
 * then, and the journal is still there. */
static void commit_and_die(const char *file)
{
    static sqlite3_vfs vfs;
    vfs = *sqlite3_vfs_find(NULL);
    vfs.pNext = NULL;
    vfs.zName = "breccia-dies";
    vfs.xDelete = die;
    sqlite3_vfs_register(&vfs, 0);
    commit_over(file, vfs.zName, 1000, NULL);
    _exit(1);
}

static void write_half_and_die(const char *file, int grow)
{
    sqlite3 *db = NULL;
    sqlite3_open(file, &db);
    sqlite3_exec(db, "BEGIN; UPDATE meta SET value=zeroblob(150) WHERE key='secret'", NULL, NULL,
                 NULL);
    if (grow)
        sqlite3_exec(db, "INSERT INTO blob(data) VALUES (randomblob(300000))", NULL, NULL, NULL);
    _exit(sqlite3_db_cacheflush(db) == SQLITE_OK ? 0 : 1);
}

void journal_kit_leave(const char *file, int how)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0 && how == 0)
        commit_and_die(file);
    else if (child == 0)
        write_half_and_die(file, how == 2);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
