/* The zip archives of .npz files and Zarr hierarchies. */
#include "zip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../base/buf.h"
#include "input.h"
#include "tree_names.h"

/* ==== zip archive ================================ */

#define ZIP_DATE_1980 ((zip_uint16_t)(1 << 5 | 1))

int brc_zip_fail_read(brc_error *err, zip_error_t *ze, const char *what, const char *name)
{
    if (zip_error_code_zip(ze) == ZIP_ER_MEMORY)
        return brc_nomem(err);
    if (zip_error_system_type(ze) == ZIP_ET_SYS && zip_error_code_system(ze) > 0)
        return brc_fail_os(err, zip_error_code_system(ze), what, name);
    return brc_fail(err, BRC_EINVAL, "%s %s: %s", what, name, zip_error_strerror(ze));
}

int brc_zip_fail_write(brc_error *err, zip_error_t *ze, const char *name)
{
    /* libzip sometimes reports nothing when one of its own allocations failed */
    if (zip_error_code_zip(ze) == ZIP_ER_MEMORY || zip_error_code_zip(ze) == ZIP_ER_OK)
        return brc_nomem(err);
    if (zip_error_system_type(ze) == ZIP_ET_SYS && zip_error_code_system(ze) > 0)
        return brc_fail_os(err, zip_error_code_system(ze), "cannot write", name);
    return brc_fail(err, BRC_EIO, "cannot write %s: %s", name, zip_error_strerror(ze));
}

/* Opens the archive. libzip takes the descriptor over, or it is closed. */
static int open_with_libzip(zip_t **out, int fd, const char *file, brc_error *err)
{
    int code = 0;
    *out = zip_fdopen(fd, 0, &code);
    if (*out)
        return BRC_OK;
    zip_error_t ze;
    zip_error_init_with_code(&ze, code);
    int rc = brc_zip_fail_read(err, &ze, "cannot open", file);
    zip_error_fini(&ze);
    close(fd);
    return rc;
}

int brc_zip_open(zip_t **out, brc_zip_dir *dir, const char *file, brc_error *err)
{
    uint64_t size;
    int fd, rc;

    *out = NULL;
    memset(dir, 0, sizeof(*dir));
    BRC_TRY(brc_regular_open(&fd, &size, file, 1, err));
    BRC_GO(brc_zip_dir_read(dir, fd, size, file, err));
    BRC_GO(brc_zip_dir_check(dir, file, err));
    rc = open_with_libzip(out, fd, file, err);
    fd = -1;
    if (rc == BRC_OK && (uint64_t)zip_get_num_entries(*out, 0) != dir->n)
        rc = brc_fail(err, BRC_EINVAL, "%s: the archive can be read in two ways", file);
done:
    if (fd >= 0)
        close(fd);
    if (rc < 0) {
        zip_discard(*out);
        *out = NULL;
        brc_zip_dir_dispose(dir);
    }
    return rc;
}

int brc_zip_entry_open(zip_file_t **out, zip_t *archive, const brc_zip_entry *e, const char *label,
                       brc_error *err)
{
    const char *name = zip_get_name(archive, e->number, ZIP_FL_ENC_RAW);
    *out = NULL;
    if (!name || strlen(name) != e->own_len || memcmp(name, e->own, e->own_len) != 0)
        return brc_fail(err, BRC_EINVAL, "%s: its archive can be read in two ways", label);
    *out = zip_fopen_index(archive, e->number, 0);
    return *out ? BRC_OK : brc_zip_fail_read(err, zip_get_error(archive), "cannot open", label);
}

int brc_zip_make(zip_t **out, const char *file, const char *dest, brc_error *err)
{
    int code = 0;
    *out = zip_open(file, ZIP_CREATE | ZIP_EXCL, &code);
    if (*out)
        return BRC_OK;
    zip_error_t ze;
    zip_error_init_with_code(&ze, code);
    int rc = brc_zip_fail_write(err, &ze, dest);
    zip_error_fini(&ze);
    return rc;
}

int brc_zip_add(zip_t *archive, const char *name, zip_source_callback source, void *ctx,
                brc_error *err)
{
    zip_source_t *from = zip_source_function(archive, source, ctx);
    if (!from) {
        (void)source(ctx, NULL, 0, ZIP_SOURCE_FREE);
        return brc_nomem(err);
    }
    zip_int64_t i = zip_file_add(archive, name, from, ZIP_FL_ENC_UTF_8);
    if (i < 0) {
        zip_source_free(from);
        return brc_zip_fail_write(err, zip_get_error(archive), name);
    }
    if (zip_set_file_compression(archive, (zip_uint64_t)i, ZIP_CM_STORE, 0) < 0 ||
        zip_file_set_dostime(archive, (zip_uint64_t)i, 0, ZIP_DATE_1980, 0) < 0)
        return brc_zip_fail_write(err, zip_get_error(archive), name);
    return BRC_OK;
}

zip_int64_t brc_zip_stat(void *data, zip_uint64_t len, uint64_t size)
{
    zip_stat_t *st = data;
    if (len < sizeof(*st))
        return -1;
    zip_stat_init(st);
    st->size = size;
    st->valid |= ZIP_STAT_SIZE;
    return (zip_int64_t)sizeof(*st);
}

/* ==== zip dir ================================ */

/* Reads and checks the directory of a zip archive, see zip.h. */

enum { ENTRY_SIZE = 30, RECORD_SIZE = 46, END_SIZE = 22, LOCATOR_SIZE = 20, END64_SIZE = 56 };

#define DIRECTORY_MAX ((uint64_t)1 << 30) /* bytes of the central directory */
#define NAME_SHOWN 80                     /* bytes of a name in a message    */

static uint16_t get_u16le(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static int bad_zip(brc_error *err, const char *file, const char *what)
{
    return brc_fail(err, BRC_EINVAL, "%s: %s", file, what);
}

int brc_is_zip(const uint8_t *head, size_t n)
{
    return n >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

/* ---- the end record -------------------------------- */

typedef struct zip_end {
    uint64_t n, size, start;
    uint64_t at; /* where the records after the directory begin */
} zip_end;

/* Reads the record of 64-bit numbers, if the locator before the end names one. */
static int read_end64(zip_end *end, int fd, const char *file, brc_error *err)
{
    uint8_t locator[LOCATOR_SIZE], record[END64_SIZE];

    memset(locator, 0, sizeof(locator));
    if (end->at >= LOCATOR_SIZE)
        BRC_TRY(brc_fd_read_at(fd, locator, LOCATOR_SIZE, end->at - LOCATOR_SIZE, file, err));
    uint64_t at = brc_get_u64le(locator + 8);
    int is_locator = memcmp(locator, "PK\6\7", 4) == 0;
    if (!is_locator && end->size < UINT32_MAX && end->start < UINT32_MAX)
        return BRC_OK; /* there are 65535 entries, and all numbers fit */
    if (!is_locator || at > end->at - LOCATOR_SIZE || end->at - LOCATOR_SIZE - at < END64_SIZE)
        return bad_zip(err, file, "its directory should be in the zip64 form but is not");
    BRC_TRY(brc_fd_read_at(fd, record, END64_SIZE, at, file, err));
    if (memcmp(record, "PK\6\6", 4) != 0 || brc_get_u32le(record + 16) != 0 ||
        brc_get_u32le(record + 20) != 0 || brc_get_u64le(record + 24) != brc_get_u64le(record + 32))
        return bad_zip(err, file, "its zip64 end record is damaged, or it is one of several parts");
    end->n = brc_get_u64le(record + 32);
    end->size = brc_get_u64le(record + 40);
    end->start = brc_get_u64le(record + 48);
    end->at = at;
    return BRC_OK;
}

/* Finds the last end record whose comment reaches to the end of the file. */
static const uint8_t *find_end(const uint8_t *tail, size_t len)
{
    for (size_t i = len < END_SIZE ? 0 : len - END_SIZE + 1; i-- > 0;) {
        const uint8_t *p = tail + i;
        if (memcmp(p, "PK\5\6", 4) == 0 && get_u16le(p + 20) == len - i - END_SIZE)
            return p;
    }
    return NULL;
}

static int read_end(zip_end *end, int fd, uint64_t file_size, const char *file, brc_error *err)
{
    size_t len = file_size < END_SIZE + UINT16_MAX ? (size_t)file_size : END_SIZE + UINT16_MAX;
    void *tail;
    int rc;

    BRC_TRY(brc_new(&tail, len, err));
    BRC_GO(brc_fd_read_at(fd, tail, len, file_size - len, file, err));
    const uint8_t *p = find_end(tail, len);
    if (!p) {
        rc = bad_zip(err, file, "it is not a zip archive: its end record is missing");
        goto done;
    }
    if (get_u16le(p + 4) != 0 || get_u16le(p + 6) != 0 || get_u16le(p + 8) != get_u16le(p + 10)) {
        rc = bad_zip(err, file, "it is one of several parts of a zip archive: join them first");
        goto done;
    }
    end->n = get_u16le(p + 10);
    end->size = brc_get_u32le(p + 12);
    end->start = brc_get_u32le(p + 16);
    end->at = file_size - len + (uint64_t)(p - (const uint8_t *)tail);
    if (end->n == UINT16_MAX || end->size == UINT32_MAX || end->start == UINT32_MAX)
        rc = read_end64(end, fd, file, err);
done:
    free(tail);
    return rc;
}

static int check_end(const zip_end *end, const char *file, brc_error *err)
{
    if (end->start > end->at || end->size > end->at - end->start)
        return bad_zip(err, file, "its directory is outside the file");
    if (end->n > BRC_ZIP_MAX_ENTRIES || end->size > DIRECTORY_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s has %llu entries, more than %llu: unpack it first",
                        file, (unsigned long long)end->n, (unsigned long long)BRC_ZIP_MAX_ENTRIES);
    if (end->n > end->size / RECORD_SIZE)
        return bad_zip(err, file, "its directory is too small for the entries that it counts");
    return BRC_OK;
}

/* ---- the records -------------------------------- */

/* Reads the 64-bit numbers for which the record has no room, in their fixed order. */
static int read_extra64(brc_zip_entry *e, const uint8_t *extra, size_t len)
{
    while (len >= 4) {
        size_t n = get_u16le(extra + 2);
        if (n > len - 4)
            return 0;
        if (get_u16le(extra) == 1) {
            uint64_t *wanted[3] = { &e->size, &e->packed, &e->offset };
            const uint8_t *at = extra + 4;
            for (int i = 0; i < 3; i++) {
                if (*wanted[i] != UINT32_MAX)
                    continue;
                if (n < 8)
                    return 0;
                *wanted[i] = brc_get_u64le(at);
                at += 8;
                n -= 8;
            }
            return 1;
        }
        extra += 4 + n;
        len -= 4 + n;
    }
    return e->size != UINT32_MAX && e->packed != UINT32_MAX && e->offset != UINT32_MAX;
}

/* Reads one record; returns 0 if it is damaged. */
static int read_record(brc_zip_entry *e, brc_reader *r)
{
    enum { UNIX = 3, LINK = 0120000, KIND = 0170000 };
    const uint8_t *p = brc_read_bytes(r, RECORD_SIZE);

    if (!p || memcmp(p, "PK\1\2", 4) != 0)
        return 0;
    uint32_t flags = get_u16le(p + 8), mode = brc_get_u32le(p + 38) >> 16;
    e->is_encrypted = (flags & 1) != 0;
    e->method = get_u16le(p + 10);
    e->packed = brc_get_u32le(p + 20);
    e->size = brc_get_u32le(p + 24);
    e->name_len = get_u16le(p + 28);
    size_t extra_len = get_u16le(p + 30);
    e->is_link = p[5] == UNIX && (mode & KIND) == LINK;
    e->offset = brc_get_u32le(p + 42);
    const uint8_t *name = brc_read_bytes(r, e->name_len);
    const uint8_t *extra = brc_read_bytes(r, extra_len);
    if (!name || !extra || !brc_read_bytes(r, get_u16le(p + 32)) || e->name_len == 0)
        return 0;
    e->name = e->own = (const char *)name;
    e->own_len = e->name_len;
    e->is_dir = name[e->name_len - 1] == '/';
    return read_extra64(e, extra, extra_len);
}

int brc_zip_dir_read(brc_zip_dir *out, int fd, uint64_t file_size, const char *file, brc_error *err)
{
    zip_end end = { 0, 0, 0, 0 };
    void *p;
    int rc;

    memset(out, 0, sizeof(*out));
    BRC_GO(read_end(&end, fd, file_size, file, err));
    BRC_GO(check_end(&end, file, err));
    BRC_GO(brc_buf_reserve(&out->records, (size_t)end.size + 1, err));
    BRC_GO(brc_fd_read_at(fd, out->records.data, (size_t)end.size, end.start, file, err));
    out->records.len = (size_t)end.size;
    BRC_GO(brc_new_array(&p, (size_t)end.n, sizeof(*out->entries), err));
    out->entries = p;
    out->start = end.start;
    brc_reader r = brc_reader_of(out->records.data, out->records.len);
    for (; out->n < end.n; out->n++) {
        brc_zip_entry *e = &out->entries[out->n];
        e->number = (uint32_t)out->n;
        if (!read_record(e, &r)) {
            rc = brc_fail(err, BRC_EINVAL, "%s: the record of its entry %zu is damaged", file,
                          out->n + 1);
            goto done;
        }
    }
    if (brc_reader_left(&r) > 0)
        rc = bad_zip(err, file, "its directory is longer than the entries that it counts");
done:
    if (rc < 0)
        brc_zip_dir_dispose(out);
    return rc;
}

void brc_zip_dir_dispose(brc_zip_dir *dir)
{
    free(dir->entries);
    brc_buf_dispose(&dir->records);
    brc_arena_dispose(&dir->names);
    memset(dir, 0, sizeof(*dir));
}

/* ---- refused entries -------------------------------- */

static int bad_entry(brc_error *err, const char *file, const brc_zip_entry *e, const char *what)
{
    char shown[NAME_SHOWN + 1];
    size_t n = e->name_len < NAME_SHOWN ? e->name_len : NAME_SHOWN;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)e->name[i];
        shown[i] = c < 0x20 || c >= 0x7F ? '?' : (char)c;
    }
    shown[n] = 0;
    return brc_fail(err, BRC_EINVAL, "%s: its entry '%s' %s", file, shown, what);
}

static int check_alone(const brc_zip_entry *e, const char *file, brc_error *err)
{
    if (memchr(e->name, 0, e->name_len) != NULL)
        return bad_entry(err, file, e, "has a name with a byte 0 in it");
    if (e->is_dir && e->size > 0)
        return bad_entry(err, file, e, "is a folder with content");
    if (e->method == 0 && !e->is_encrypted && e->size != e->packed)
        return bad_entry(err, file, e, "does not have the size that it claims");
    return BRC_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const brc_zip_entry *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Refuses entries that share bytes, with which a small archive expands to a large one. Ignores the
 * extra field before the data, whose length is not in the directory. */
static int check_overlaps(brc_zip_dir *dir, const char *file, brc_error *err)
{
    if (dir->n > 1)
        qsort(dir->entries, dir->n, sizeof(*dir->entries), compare_offsets);
    for (size_t i = 0; i < dir->n; i++) {
        const brc_zip_entry *e = &dir->entries[i];
        uint64_t end = i + 1 < dir->n ? e[1].offset : dir->start;
        uint64_t head = ENTRY_SIZE + (uint64_t)e->name_len;
        if (e->offset > dir->start || dir->start - e->offset < head)
            return bad_entry(err, file, e, "is outside the file");
        if (end - e->offset < head || end - e->offset - head < e->packed)
            return bad_entry(err, file, e, "overlaps another one, or the directory");
    }
    return BRC_OK;
}

static int compare_entries(const void *a, const void *b)
{
    const brc_zip_entry *x = a, *y = b;
    int order = brc_tree_name_compare(x->name, x->name_len, y->name, y->name_len);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* Checks neighbouring entries: "a" twice, and "a" beside "a/b". */
static int check_neighbours(brc_zip_dir *dir, const char *file, brc_zip_replaced_fn replaced,
                            void *ctx, brc_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < dir->n; i++) {
        const brc_zip_entry *e = n > 0 ? &dir->entries[n - 1] : NULL, *next = &dir->entries[i];
        int begins = e != NULL && next->name_len >= e->name_len &&
                     memcmp(e->name, next->name, e->name_len) == 0;
        if (begins && next->name_len > e->name_len && next->name[e->name_len] == '/')
            return bad_entry(err, file, e, "is a file and a folder");
        if (begins && next->name_len == e->name_len) {
            if (replaced)
                BRC_TRY(replaced(ctx, e, next, err));
            n--;
        }
        dir->entries[n++] = *next;
    }
    dir->n = n;
    return BRC_OK;
}

int brc_zip_dir_check(brc_zip_dir *dir, const char *file, brc_error *err)
{
    for (size_t i = 0; i < dir->n; i++)
        BRC_TRY(check_alone(&dir->entries[i], file, err));
    return check_overlaps(dir, file, err);
}

/* Returns the length of "a/b" for "./a//b": `to` must have room for the path, and may be NULL. */
static size_t plain_path(char *to, const char *name, size_t len)
{
    size_t n = 0;

    while (len > 0) {
        const char *slash = memchr(name, '/', len);
        size_t part = slash ? (size_t)(slash - name) : len, next = part + (slash != NULL);
        if (part > 1 || (part == 1 && name[0] != '.')) {
            if (n > 0 && to)
                to[n] = '/';
            n += n > 0;
            if (to)
                memcpy(to + n, name, part);
            n += part;
        }
        name += next;
        len -= next;
    }
    return n;
}

static int give_plain_path(brc_zip_dir *dir, brc_zip_entry *e, brc_error *err)
{
    size_t n = plain_path(NULL, e->name, e->name_len);

    if (n == e->name_len)
        return BRC_OK;
    char *to = brc_arena_take(&dir->names, n + 1);
    if (!to)
        return brc_nomem(err);
    (void)plain_path(to, e->name, e->name_len);
    e->name = to;
    e->name_len = (uint16_t)n;
    return BRC_OK;
}

int brc_zip_dir_sort(brc_zip_dir *dir, const char *file, brc_zip_replaced_fn replaced, void *ctx,
                     brc_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < dir->n; i++) {
        if (dir->entries[i].is_dir)
            continue;
        BRC_TRY(give_plain_path(dir, &dir->entries[i], err));
        if (dir->entries[i].name_len > 0)
            dir->entries[n++] = dir->entries[i];
    }
    dir->n = n;
    if (n > 1)
        qsort(dir->entries, n, sizeof(*dir->entries), compare_entries);
    return check_neighbours(dir, file, replaced, ctx, err);
}
