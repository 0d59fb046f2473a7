/* See suite.h. What CASE and TEST define runs before main(), in the order of the file. */
#include "suite.h"

#include <string.h>

static test_suite *registered;

void suite_begin_case(test_suite *suite, suite_case *c)
{
    suite_case **at = &suite->cases;
    while (*at != NULL && strcmp((*at)->name, c->name) != 0)
        at = &(*at)->next;
    if (*at == NULL)
        *at = c;
    suite->now = *at;
}

void suite_add(test_suite *suite, suite_test *test)
{
    if (suite->now == NULL)
        suite_begin_case(suite, &suite->first);
    test->in = suite->now;
    if (suite->last == NULL) {
        suite->tests = test;
        suite->next = registered;
        registered = suite;
    } else {
        suite->last->next = test;
    }
    suite->last = test;
}

static TCase *case_made(const suite_case *c)
{
    TCase *made = tcase_create(c->name);
    if (c->timeout != 0)
        tcase_set_timeout(made, c->timeout == UNTIMED ? 0 : c->timeout);
    if (c->setup != NULL || c->teardown != NULL)
        tcase_add_checked_fixture(made, c->setup, c->teardown);
    if (c->setup_once != NULL || c->teardown_once != NULL)
        tcase_add_unchecked_fixture(made, c->setup_once, c->teardown_once);
    return made;
}

Suite *suite_made(test_suite *suite)
{
    Suite *made = suite_create(suite->name);
    suite->is_made = 1;
    for (suite_case *c = suite->cases; c != NULL; c = c->next)
        suite_add_tcase(made, c->made = case_made(c));
    for (const suite_test *t = suite->tests; t != NULL; t = t->next)
        tcase_add_loop_test(t->in->made, t->test, t->from, t->to);
    return made;
}

const char *suite_left_out(void)
{
    const test_suite *s = registered;
    while (s != NULL && s->is_made)
        s = s->next;
    return s != NULL ? s->name : NULL;
}
