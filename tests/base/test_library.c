/* Libraries that are loaded at their first use: found, missing, too old. */
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_codec.h"
#include "../kit/suite.h"

TEST_SUITE(library);

CASE("load");

typedef struct lengths {
    size_t (*strlen)(const char *);
    size_t (*strnlen)(const char *, size_t);
} lengths;

static const char *const no_files[] = { "libbreccia-none.so.1", "libbreccia-none.so.0", NULL };

static brc_library library_of(const char *const *functions)
{
    return (brc_library){
        .size = sizeof(brc_library),
        .name = "libnone",
        .use = "with which nothing is done",
        .package = "libnone1",
        .files = no_files,
        .functions = functions,
    };
}

TEST(a_missing_library_is_named_with_its_package)
{
    static const char *const functions[] = { "none_of_breccia", NULL };
    const brc_library library = library_of(functions);
    brc_error err = BRC_ERROR_INIT;
    void *out[1];

    ck_assert_int_eq(brc_library_load(&library, out, &err), BRC_EUNSUPPORTED);
    ck_assert_str_eq(err.message, "there is no libnone, with which nothing is done: install it "
                                  "(Debian: libnone1)");
}

TEST(a_library_that_lacks_a_function_is_too_old)
{
    static const char *const functions[] = { "strlen", "none_of_breccia", NULL };
    const brc_library library = library_of(functions);
    brc_error err = BRC_ERROR_INIT;
    void *out[2];

    ck_assert_int_eq(brc_library_load(&library, out, &err), BRC_EUNSUPPORTED);
    ck_assert_str_eq(err.message, "libnone, with which nothing is done, is too old: install a "
                                  "newer one (Debian: libnone1)");
}

TEST(what_the_program_is_linked_with_is_taken_from_there)
{
    static const char *const functions[] = { "strlen", "strnlen", NULL };
    const brc_library library = library_of(functions);
    brc_error err = BRC_ERROR_INIT;
    lengths out = { NULL, NULL };

    ck_assert_int_eq(brc_library_load(&library, &out, &err), BRC_OK);
    ck_assert_uint_eq(out.strlen("four"), 4);
    ck_assert_uint_eq(out.strnlen("four", 3), 3);
}

TEST(a_library_of_another_version_is_refused)
{
    static const char *const functions[] = { "strlen", NULL };
    brc_library library = library_of(functions);
    brc_error err = BRC_ERROR_INIT;
    void *out[1];

    library.size = 1;
    ck_assert_int_eq(brc_library_load(&library, out, &err), BRC_EINVAL);
}
