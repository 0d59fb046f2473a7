/*
 * How a file of tests registers its suite with Check. TEST_SUITE names the suite, which tests/suites.h
 * lists; TEST, LOOP and EACH define a test and add it to the suite:
 *
 *     TEST_SUITE(places);
 *
 *     CASE("places", .setup = places_setup, .teardown = places_teardown, .timeout = 60);
 *
 *     TEST(a_selection_may_be_empty)
 *     {
 *         ...
 *     }
 *
 *     LOOP(each_chunk_is_decoded_once, 0, 4)
 *     {
 *         ... _i is 0, 1, 2 and 3 ...
 *     }
 *
 * A test belongs to the last CASE above it; a file without CASE has one case, named after the suite.
 * CK_RUN_CASE runs one case.
 */
#ifndef BRC_TESTS_SUITE_H
#define BRC_TESTS_SUITE_H

#include <check.h>

enum { UNTIMED = -1 }; /* a timeout: the test may take as long as it takes */

typedef struct suite_case {
    const char *name;
    void (*setup)(void);         /* before each test, in its process     */
    void (*teardown)(void);
    void (*setup_once)(void);    /* before the first test, in the parent */
    void (*teardown_once)(void);
    double timeout;              /* seconds; 0: the runner's default     */
    TCase *made;
    struct suite_case *next;
} suite_case;

typedef struct suite_test {
    const TTest *test;
    suite_case *in;
    int from, to;
    struct suite_test *next;
} suite_test;

typedef struct test_suite {
    const char *name;
    suite_case first, *cases, *now;
    suite_test *tests, *last;
    struct test_suite *next;
    int is_made;
} test_suite;

/* If the suite has a case of this name, tests are added to that one, and the rest of `c` is ignored. */
void suite_begin_case(test_suite *suite, suite_case *c);
void suite_add(test_suite *suite, suite_test *test);
Suite *suite_made(test_suite *suite);
/* A suite with tests that suite_made() has not made, so that suites.h does not list it; or NULL. */
const char *suite_left_out(void);

#define TEST_SUITE(id)                                                 \
    extern test_suite tests_of_##id;                                      \
    test_suite tests_of_##id = { .name = #id, .first = { .name = #id } }; \
    static test_suite *const suite_of_file = &tests_of_##id

#define SUITE_JOIN_(a, b) a##b
#define SUITE_JOIN(a, b) SUITE_JOIN_(a, b)

/* CASE(name, .member = value...): members of suite_case. */
#define CASE(...)                                                                      \
    __attribute__((constructor)) static void SUITE_JOIN(case_of_line_, __LINE__)(void) \
    {                                                                                  \
        static suite_case case_;                                                       \
        case_ = (suite_case){ .name = __VA_ARGS__ };                                   \
        suite_begin_case(suite_of_file, &case_);                                       \
    }                                                                                  \
    struct suite_case

/* A test that runs once for each _i from `from_` to `to_` - 1. */
#define LOOP(id, from_, to_)                                                        \
    static const TTest *id;                                                         \
    __attribute__((constructor)) static void id##_joins(void)                       \
    {                                                                               \
        static suite_test test_;                                                    \
        test_ = (suite_test){ .test = id, .from = (int)(from_), .to = (int)(to_) }; \
        suite_add(suite_of_file, &test_);                                           \
    }                                                                               \
    START_TEST(id)
/* A test that runs once for each element of an array; _i is the index. */
#define EACH(id, table) LOOP(id, 0, sizeof(table) / sizeof((table)[0]))
#define TEST(id) LOOP(id, 0, 1)

#endif
