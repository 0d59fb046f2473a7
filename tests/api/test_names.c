/* Names of private sessions: many sessions, of many processes, on a draft that none has begun. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/children_kit.h"
#include "../kit/suite.h"

TEST_SUITE(names);

static scenario t;
static breccia *other; /* another handle */

static void names_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    OK(&t, brc_reopen(&other, t.repo, &t.err));
}

static void names_teardown(void)
{
    brc_free(other);
    scenario_whole(&t);
    scenario_stop(&t);
}

static char *name_of(const char *branch)
{
    brc_buf name = BRC_BUF_INIT;
    OK(&t, brc_session_name(&name, t.repo, branch, &t.err));
    char *text = strdup((const char *)name.data);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strlen(text), name.len);
    brc_buf_dispose(&name);
    return text;
}

/* The first session of a name. */
static brc_session *begin(const char *name)
{
    brc_session *s;
    OK(&t, brc_session_open(&s, t.repo, name, BRC_SESSION_TOKEN, &t.err));
    return s;
}

static brc_session *attach(const char *name)
{
    brc_session *s;
    OK(&t, brc_session_open(&s, other, name, BRC_SESSION_TOKEN, &t.err));
    return s;
}

static void need(brc_session *s, uint64_t i, int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, s, "/a", i), value);
}

static void fill(brc_session *s, uint64_t from, uint64_t n, int32_t value)
{
    OK(&t, kit_fill(&t, s, "/a", from, n, value));
}

CASE("names", .setup = names_setup, .teardown = names_teardown, .timeout = 120);

TEST(whoever_comes_first_begins_the_draft)
{
    brc_oid id;
    char *name = name_of(NULL), *again = name_of("main");
    brc_session *s = begin(name), *a = attach(name), *b = attach(name);
    ck_assert_str_ne(again, name);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    scenario_set_number(&t, "/a", 9, 900); /* they follow their branch until then */
    (void)scenario_commit(&t, "second");
    need(s, 9, 900);
    fill(a, 0, 4, 100);
    need(s, 3, 100);
    fill(s, 4, 4, 101);
    need(b, 7, 101);
    need(b, 8, 8);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "1/0 alive ours; ");
    OK(&t, kit_commit(&t, b, &id));
    need(t.session, 7, 101);
    fill(s, 8, 1, 102);
    need(a, 8, 102);
    OK(&t, brc_session_discard(a, &t.err));
    need(s, 8, 8);
    brc_session_free(a); /* it takes the empty draft with it, and the others go on */
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    need(b, 7, 101);
    fill(b, 8, 1, 103);
    need(s, 8, 103);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "1/0 alive ours; ");
    brc_session_free(b);
    brc_session_free(s); /* not this one: something is in it, and its name finds it */
    s = attach(name);
    need(s, 8, 103);
    brc_session_free(s);
    free(again);
    free(name);
}

static int write_ten(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    return kit_fill(w, s, "/a", 10, 10, 100);
}

static int only_look(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    return scenario_number(w, s, "/a", 10) == 100 ? BRC_OK : BRC_EINTERNAL;
}

TEST(another_process_begins_the_draft)
{
    char *name = name_of(NULL);
    brc_session *s = begin(name);
    kit_worker_ends(kit_worker(&t, name, write_ten, NULL), BRC_OK);
    need(s, 19, 100);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "1/0 alive ours; "); /* ours, not the worker's */
    kit_worker_ends(kit_worker(&t, name, only_look, NULL), BRC_OK);
    OK(&t, brc_session_discard(s, &t.err));
    kit_worker_ends(kit_worker(&t, name, only_look, NULL), BRC_EINTERNAL);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    brc_session_free(s);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    free(name);
}

TEST(a_parent_stays_for_its_children)
{
    char *name = name_of("HEAD");
    brc_session *s = begin(name), *a = attach(name), *child = kit_fork(&t, s);
    need(a, 0, 0);
    brc_session_free(a);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; 0/1 alive ours; ");
    fill(child, 0, 1, 100);
    char *token = kit_token(&t, child);
    const char *tokens[] = {token};
    brc_session_free(child);
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    need(s, 0, 100);
    tokens[0] = name;
    FAILS(&t, BRC_EMISUSE, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    OK(&t, brc_session_discard(s, &t.err));
    a = attach(name);
    brc_session_free(s); /* without children it goes, and another of its name begins anew */
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    need(a, 0, 0);
    child = kit_fork(&t, a);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; 0/1 alive ours; ");
    brc_session_free(child);
    brc_session_free(a);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; 0/1 alive ours; ");
    free(token);
    free(name);
}

TEST(a_name_follows_its_branch)
{
    OK(&t, brc_ref_create(t.repo, "old", NULL, NULL, 0, &t.err));
    char *name = name_of("old");
    brc_session *s = begin(name);
    fill(s, 0, 1, 100);
    OK(&t, brc_ref_rename(t.repo, "old", "new", 0, &t.err));
    brc_session *a = attach(name);
    need(a, 0, 100);
    brc_oid id;
    OK(&t, kit_commit(&t, a, &id));
    brc_session_free(a);
    brc_session_free(s);
    FAILS(&t, BRC_ENOTFOUND, brc_session_open(&a, other, name, BRC_SESSION_TOKEN, &t.err));
    free(name);
}

/* A process with a name, which waits to be killed. */
static pid_t an_owner(char *name, size_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        scenario mine = {.err = BRC_ERROR_INIT};
        brc_buf text = BRC_BUF_INIT;
        int rc = brc_open(&mine.repo, t.file, NULL, &mine.err);
        if (rc == BRC_OK)
            rc = brc_session_name(&text, mine.repo, "main", &mine.err);
        if (rc == BRC_OK && write(ends[1], text.data, text.len) == (ssize_t)text.len)
            pause();
        _exit(1);
    }
    const ssize_t len = read(ends[0], name, size - 1);
    ck_assert_int_gt(len, 0);
    name[len] = '\0';
    close(ends[0]);
    close(ends[1]);
    return pid;
}

TEST(of_an_owner_that_has_ended_nothing_is_begun)
{
    char name[1000];
    int status;
    brc_session *late;
    const pid_t pid = an_owner(name, sizeof(name));
    brc_session *a = attach(name);
    need(a, 0, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    FAILS(&t, BRC_ESTALE, kit_fill(&t, a, "/a", 0, 1, 100));
    FAILS(&t, BRC_EMISUSE, brc_session_open(&late, other, name, BRC_SESSION_TOKEN, &t.err));
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    brc_session_free(a);
}

TEST(whatever_is_no_name_is_refused)
{
    char text[1000];
    brc_session *none;
    brc_buf text_of_none = BRC_BUF_INIT;
    FAILS(&t, BRC_ENOTFOUND, brc_session_name(&text_of_none, t.repo, "nowhere", &t.err));
    char *name = name_of(NULL);
    const size_t len = strlen(name);
    for (size_t i = 0; i < len; i++) { /* cut, and with each byte another */
        snprintf(text, sizeof(text), "%.*s", (int)i, name);
        FAILS(&t, BRC_EINVAL, brc_session_open(&none, other, text, BRC_SESSION_TOKEN, &t.err));
        for (int byte = 1; byte < 256; byte += 3) {
            snprintf(text, sizeof(text), "%s", name);
            text[i] = (char)byte;
            if (text[i] == name[i])
                continue;
            const int rc = brc_session_open(&none, other, text, BRC_SESSION_TOKEN, &t.err);
            ck_assert(rc == BRC_EINVAL || rc == BRC_ENOTFOUND || rc == BRC_EMISUSE);
            ck_assert_ptr_null(none);
        }
    }
    scenario strange = {.err = BRC_ERROR_INIT};
    scenario_start(&strange);
    FAILS(&strange, BRC_ENOTFOUND, brc_session_open(&none, strange.repo, name, BRC_SESSION_TOKEN,
                                                    &strange.err));
    scenario_stop(&strange);
    free(name);
}
