/*
 * The corpus of the fuzzers, tests/fuzz/corpus: every file goes through its harness, as
 * in `make fuzz`, without a fuzzer. A finding that was fixed is a file there, named
 * after what it was.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../fuzz/fuzz.h"
#include "../kit/suite.h"

TEST_SUITE(fuzz_corpus);

#define CORPUS "tests/fuzz/corpus"
#define FILE_MAX 65536
#define TOTAL_MAX (1 << 20)

static char file_now[512];

/* Says which file it was; ends as it would without. */
static void say_file(int number)
{
    ssize_t n = write(STDERR_FILENO, file_now, strlen(file_now));
    n = write(STDERR_FILENO, "\n", 1);
    (void)n;
    raise(number); /* SA_RESETHAND: the default by now */
}

/* A sanitizer that has a handler of its own keeps it. */
static void say_file_on(int number)
{
    struct sigaction was, now = { .sa_handler = say_file, .sa_flags = (int)SA_RESETHAND };
    if (sigaction(number, NULL, &was) == 0 && was.sa_handler == SIG_DFL)
        sigaction(number, &now, NULL);
}

/* Calls `each` with every file of a harness; how many there are. */
static size_t each_file(const fuzz_harness *h,
                        void (*each)(const fuzz_harness *h, const char *file))
{
    char folder[256];
    size_t n = 0;
    snprintf(folder, sizeof(folder), CORPUS "/%s", h->name);
    DIR *dir = opendir(folder);
    ck_assert_msg(dir != NULL, "there is no %s: run the tests from the root of the tree", folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file_now, sizeof(file_now), "%s/%s", folder, entry->d_name);
        each(h, file_now);
        n++;
    }
    closedir(dir);
    return n;
}

static void replay(const fuzz_harness *h, const char *file)
{
    brc_buf bytes = BRC_BUF_INIT;
    ck_assert_int_eq(brc_file_read(&bytes, file, NULL), BRC_OK);
    uint8_t *own = fuzz_bytes(bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    struct stat st;
    ck_assert_int_eq(stat(file, &st), 0);
    h->run(own, (size_t)st.st_size);
    free(own);
}

static int harnesses(void)
{
    int n = 0;
    while (fuzz_harness_at((size_t)n) != NULL)
        n++;
    return n;
}

CASE("corpus");

LOOP(f23_the_corpus_passes_its_harness, 0, harnesses())
{
    say_file_on(SIGABRT);
    say_file_on(SIGSEGV);
    say_file_on(SIGFPE);
    ck_assert_uint_gt(each_file(fuzz_harness_at((size_t)_i), replay), 0);
    fuzz_end();
}

static uint64_t corpus_bytes;

static void measure(const fuzz_harness *h, const char *file)
{
    struct stat st;
    (void)h;
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_msg(st.st_size <= FILE_MAX, "%s is too large for the tree", file);
    corpus_bytes += (uint64_t)st.st_size;
}

TEST(f23_the_corpus_is_small)
{
    for (size_t i = 0; fuzz_harness_at(i) != NULL; i++)
        each_file(fuzz_harness_at(i), measure);
    ck_assert_uint_lt(corpus_bytes, TOTAL_MAX);
}

/* ---- each codec and data type is met -------------------------------- */

static brc_buf all_specs;

static void collect(const fuzz_harness *h, const char *file)
{
    brc_buf bytes = BRC_BUF_INIT;
    (void)h;
    ck_assert_int_eq(brc_file_read(&bytes, file, NULL), BRC_OK);
    const uint8_t *end = memchr(bytes.data, '\n', bytes.len);
    if (end != NULL)
        ck_assert_int_eq(
            brc_buf_append(&all_specs, bytes.data, (size_t)(end - bytes.data) + 1, NULL), BRC_OK);
    brc_buf_dispose(&bytes);
}

static void check_named(const char *name)
{
    char quoted[160];
    snprintf(quoted, sizeof(quoted), "\"name\":\"%s\"", name);
    ck_assert_msg(strstr((const char *)all_specs.data, quoted) != NULL,
                  "no file in " CORPUS "/codecs has the codec %s", name);
}

TEST(f23_every_codec_is_in_the_corpus)
{
    brc_iter *it;
    const brc_codec_info *codec;
    each_file(fuzz_harness_named("codecs"), collect);
    ck_assert_int_eq(brc_buf_printf(&all_specs, NULL, "%s", ""), BRC_OK);
    ck_assert_int_eq(brc_registry_list(&it, NULL, BRC_LIST_CODECS, NULL), BRC_OK);
    while (brc_next(it, &codec, NULL) == 1)
        check_named(codec->name);
    brc_iter_free(it);
    brc_buf_dispose(&all_specs);
}
