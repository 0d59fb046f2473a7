/*
 * The runner of the C tests: every suite of suites.h, each test in a process of
 * its own (CK_FORK=no: all in this one, for debuggers).
 *
 *   run           everything, or the suite that CK_RUN_SUITE names
 *   run SUITE     one suite
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/suite.h"

#define SUITE(name) extern test_suite tests_of_##name;
#define FORKED_SUITE SUITE
#define LONG_SUITE SUITE
#include "suites.h"
#undef SUITE
#undef FORKED_SUITE
#undef LONG_SUITE

static int is_forked(const char *suite)
{
#define SUITE(name)
#define LONG_SUITE(name)
#define FORKED_SUITE(name) if (strcmp(suite, #name) == 0) return 1;
#include "suites.h"
#undef SUITE
#undef FORKED_SUITE
#undef LONG_SUITE
    return 0;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : getenv("CK_RUN_SUITE");
    SRunner *runner;
    int ran, failed;

    /* A slow machine is not a failure; Check's own limit is four seconds. */
    setenv("CK_DEFAULT_TIMEOUT", "3600", 0);
    runner = srunner_create(NULL);
#define SUITE(name) srunner_add_suite(runner, suite_made(&tests_of_##name));
#define FORKED_SUITE SUITE
#define LONG_SUITE SUITE
#include "suites.h"
#undef SUITE
#undef FORKED_SUITE
#undef LONG_SUITE
    if (suite_left_out() != NULL) {
        fprintf(stderr, "tests/suites.h does not list the suite %s\n", suite_left_out());
        return EXIT_FAILURE;
    }
    if (only != NULL && is_forked(only))
        srunner_set_fork_status(runner, CK_FORK);
    srunner_run(runner, only, NULL, CK_NORMAL);
    ran = srunner_ntests_run(runner);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (ran == 0) {
        fprintf(stderr, "no test ran: is there a suite \"%s\"?\n", only ? only : "");
        return EXIT_FAILURE;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
