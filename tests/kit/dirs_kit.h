/*
 * Arrays whose chunks lie outside of the file: a repository that knows the backends of
 * tests/plugins/dirs.c and a bucket, arrays of 64 numbers in 8 chunks, and a look at what is where.
 * A failure here fails the test.
 */
#ifndef BRC_TESTS_DIRS_KIT_H
#define BRC_TESTS_DIRS_KIT_H

#include "s3_server.h"
#include "scenario.h"

#define IN(name, folder) \
    "{\"name\":\"org.example." name "\",\"configuration\":{\"folder\":\"" folder "\"}}"
#define DIR_A IN("dir", "a.chunks")
#define DIR_B IN("dir", "b.chunks")
#define HERE IN("here", "a.chunks")
#define INLINE "{\"name\":\"inline\"}"

enum { N = 64, CHUNK = 8, CHUNKS = N / CHUNK };

/* A backend for which the lines B01 to B41 are shown, with two configurations in full form. Tests
 * take each of `families` in turn. That of the bucket has its texts while a `dirs` is open. */
typedef struct family {
    const char *name;
    const char *least, *full;  /* as little as may be given, and the full form that a report has */
    const char *a, *b;
    const char *a_in_words;    /* `a` with other spaces and its members in another order     */
    const char *wrong, *words; /* a configuration that is refused, and words of the message  */
} family;
enum { FAMILIES = 4 };
extern const family families[FAMILIES];

typedef struct dirs {
    scenario t;
    brc_registry *reg;
    brc_pool *pool;
} dirs;

/* The faults that fsck has found. */
typedef struct finding {
    int n, missing;
    char text[2000];
} finding;

/* The server that has the bucket "box" of the family s3, in this process, until the last dirs_stop(). */
s3_server *dirs_server(void);
void dirs_start(dirs *d);
void dirs_open(dirs *d, uint32_t flags); /* the file, BRC_OPEN_CREATE or not          */
void dirs_close(dirs *d);
void dirs_reopen(dirs *d);
void dirs_stop(dirs *d);

/* A new array; backend NULL: the file itself. */
brc_array *dirs_new(dirs *d, const char *path, const char *backend);
brc_array *dirs_array(dirs *d, brc_session *s, const char *path);
/* first, first + 1, ...: made, written, compared with the array's */
void dirs_values(int32_t out[N], int32_t first);
void dirs_put(dirs *d, brc_array *a, int32_t first);
void dirs_check(dirs *d, brc_array *a, int32_t first);
/* One chunk gets this value; the first value of one. */
void dirs_put_chunk(dirs *d, brc_array *a, uint64_t i, int32_t value);
int32_t dirs_get_chunk(dirs *d, brc_array *a, uint64_t i);
/* The last error has these words. */
void dirs_say(dirs *d, const char *words);

void dirs_path(const dirs *d, char *out, size_t size, const char *name);
/* How many files; `first` (NULL: nothing) gets the path of the one whose name is smallest. */
int dirs_files(const dirs *d, const char *folder, char first[512]);
/* Fails the test unless the places of a family hold n stored objects, in all its configurations. */
/* Chunks that were stored twice count twice. */
void dirs_hold(const dirs *d, const family *f, int n);
/* Chunks in the backends with such a specification, or "inline". */
int64_t dirs_chunks(dirs *d, const char *pattern);
/* Every chunk's row. */
void dirs_rows(dirs *d, brc_buf *out);
finding dirs_fsck(dirs *d);

#endif
