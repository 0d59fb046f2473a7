/*
 * Fuzzing: what the harnesses share.
 *
 * A harness is one function that takes any bytes and comes back. What must hold of what
 * it did with them it says with FUZZ_TRUE; the sanitizers say the rest. The same
 * functions are linked into the programs of `make fuzz` (main.c, with libFuzzer) and
 * into the C tests, which replay the corpus (tests/api/test_fuzz_corpus.c).
 *
 * What is made here at its first use (a registry, a folder, a repository) is kept for
 * the runs that follow, and released by fuzz_end().
 */
#ifndef BRC_TESTS_FUZZ_H
#define BRC_TESTS_FUZZ_H

#include "../../src/codec/chain.h"

typedef struct fuzz_harness {
    const char *name;
    void (*run)(const uint8_t *data, size_t len);
} fuzz_harness;
/* The one of this name, or NULL; the i-th, or NULL after the last. */
const fuzz_harness *fuzz_harness_named(const char *name);
const fuzz_harness *fuzz_harness_at(size_t i);

#define HARNESS(name) void fuzz_##name(const uint8_t *data, size_t len);
#include "harnesses.h"
#undef HARNESS
/* libFuzzer's mutations of bytes are not all that this one's programs need. */
size_t fuzz_mutate_repository(uint8_t *data, size_t len, size_t max, unsigned seed);

/* Ends the process where it is not so. `error` is for the report, and may be NULL. */
#define FUZZ_TRUE(condition, error) \
    ((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition, (error)))
_Noreturn void fuzz_broken(const char *file, int line, const char *what, const brc_error *err);

const brc_registry *fuzz_registry(void);
brc_scratch *fuzz_scratch(void);
/* An empty repository, and one with a few commits, branches, tags and changes. */
brc_session *fuzz_session(void);
brc_session *fuzz_history(void);
/* The bytes of kit/row_edits.h's repository. */
const brc_buf *fuzz_base(void);
/* Writes the bytes to a file of this name in a temporary folder: its path, valid until
 * the next call. */
const char *fuzz_file(const char *name, const void *data, size_t len);
/* Exactly len + 1 bytes, the last one 0: a sanitizer sees what is read behind them. */
char *fuzz_text(const uint8_t *data, size_t len);
/* Exactly len bytes, so that nothing before or behind them is the fuzzer's own. */
uint8_t *fuzz_bytes(const uint8_t *data, size_t len);
/* Imports the file into the empty repository, reads what came of it, and undoes it. */
void fuzz_import(const char *file);
/* Reads all that a session shows: documents, keys, and the elements of arrays that are
 * not too large. What cannot be read is BRC_EUNSUPPORTED or BRC_ELIMIT, or one of what
 * the caller allows. */
void fuzz_read_all(brc_session *s, int also_allowed);
void fuzz_end(void);

#endif
