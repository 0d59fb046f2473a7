/*
 * codec_kit: the conformance tests on a plug-in, or on what breccia itself has.
 *
 *   codec_kit                    the built-in codecs and data types
 *   codec_kit ./NAME.so          what the plug-in adds
 *   codec_kit ./NAME.so JSON...  the same; JSON configures a codec, data type or backend of it:
 *                                '{"name":"org.example.delta8","configuration":{...}}'
 *
 * One line for each, and the sum last; the exit status is 1 if something fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../../src/codec/registry.h"
#include "backend_kit.h"
#include "codec_kit.h"
#include "codec_lists.h"
#include "kit_alloc.h"
#include "type_kit.h"

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

struct kit_run {
    brc_registry *reg, *plain; /* with the plug-in, and without                      */
    int given;                 /* JSON texts                                         */
    char **texts;
    int passed, failed, skipped;
    char why[700];
};

/* Returns whether a name belongs to the plug-in or, without a plug-in, to breccia itself. */
static int kit_is_meant(const struct kit_run *run, const char *owner)
{
    return (strcmp(owner, "breccia") == 0) == (run->plain == NULL);
}

/* The text of the command line that has this name in it. */
static const char *kit_given_for(const struct kit_run *run, const char *name)
{
    for (int i = 0; i < run->given; i++) {
        brc_json *json = NULL;
        const char *text = run->texts[i];
        int rc = brc_json_parse(&json, text, strlen(text), 0, NULL);
        int is_it = rc == BRC_OK && brc_json_is(brc_json_member(json, "name"), name);
        brc_json_free(json);
        if (is_it)
            return text;
    }
    return NULL;
}

static void kit_report(struct kit_run *run, const char *what, const char *name, int bad,
                       int may_skip)
{
    const char *how = !bad ? "pass" : may_skip ? "skip" : "FAIL";

    printf("%s  %s %s%s%s\n", how, what, name, bad ? ": " : "", bad ? run->why : "");
    fflush(stdout);
    run->passed += !bad;
    run->skipped += bad && may_skip;
    run->failed += bad && !may_skip;
}

/* The codec in a list that makes bytes of an array. */
static void kit_list_of(char *out, size_t size, const brc_codec_info *info, const char *json)
{
    char name[200];

    if (json == NULL) {
        snprintf(name, sizeof(name), "{\"name\":\"%s\"}", info->name);
        json = name;
    }
    if (strcmp(info->kind, "array->array") == 0)
        snprintf(out, size, "[%s," LITTLE "]", json);
    else if (strcmp(info->kind, "array->bytes") == 0)
        snprintf(out, size, "[%s]", json);
    else
        snprintf(out, size, "[" LITTLE ",%s]", json);
}

static int kit_has_codec(const brc_registry *reg, const char *name)
{
    brc_iter *it;
    const brc_codec_info *info;
    int has = 0;

    if (brc_registry_list(&it, reg, BRC_LIST_CODECS, NULL) < 0)
        return 0;
    while (brc_next(it, &info, NULL) == 1)
        has |= strcmp(info->name, name) == 0;
    brc_iter_free(it);
    return has;
}

static int kit_run_list(struct kit_run *run, const brc_codec_info *info, const codec_list *list)
{
    codec_kit kit = { .reg = run->reg,
                      .codecs = list->list,
                      .ndim = list->ndim,
                      .tame = list->tame,
                      .seed = 20261120 };

    if (kit_alloc_works())
        kit.fail_after = kit_alloc_fail_after;
    if (run->plain != NULL && kit_has_codec(run->plain, info->name))
        kit.other = run->plain;
    return codec_kit_run(&kit, run->why, sizeof(run->why));
}

/* A plug-in's codec in the list that its kind asks for; one that breccia has too, or a
 * built-in one, in all lists that are about it. */
static void kit_test_codec(struct kit_run *run, const brc_codec_info *info)
{
    char text[2000];
    const char *json = kit_given_for(run, info->name);
    const codec_list *list = json == NULL ? codec_list_of(info->name, 0) : NULL;
    codec_list own = { info->name, text, -1, 0 };
    int bad = 0;

    snprintf(run->why, sizeof(run->why), "another implementation of it is ranked higher");
    if (!(info->flags & BRC_IMPL_CHOSEN)) {
        kit_report(run, info->name, info->implementation, 1, 1);
        return;
    }
    kit_list_of(text, sizeof(text), info, json);
    if (list == NULL)
        bad = kit_run_list(run, info, &own);
    for (size_t i = 1; list != NULL && !bad; list = codec_list_of(info->name, i++))
        bad = kit_run_list(run, info, list);
    kit_report(run, info->name, info->implementation, bad, 0);
}

static void kit_test_type(struct kit_run *run, const brc_dtype_info *info)
{
    const char *json = kit_given_for(run, info->name), *known = NULL;
    type_kit kit = { .reg = run->reg, .type = json != NULL ? json : info->name, .seed = 20261120 };
    int bad = 0;

    if (json == NULL && (info->flags & BRC_DTYPE_CONFIGURED))
        known = codec_kit_configured(info->name, 0);
    for (size_t i = 1; known != NULL && !bad; known = codec_kit_configured(info->name, i++)) {
        kit.type = known;
        bad = type_kit_run(&kit, run->why, sizeof(run->why));
    }
    if (kit.type == info->name || json != NULL)
        bad = type_kit_run(&kit, run->why, sizeof(run->why));
    kit_report(run, "data type", info->name, bad,
               (info->flags & BRC_DTYPE_CONFIGURED) && kit.type == info->name &&
                   run->plain != NULL);
}

static int kit_run_backend(struct kit_run *run, const char *name, const char *config)
{
    char folder[] = "/tmp/backend_kit.XXXXXX";
    backend_kit kit = { .backend = brc_registry_backend(run->reg, name),
                        .config = config,
                        .folder = folder,
                        .seed = 20261122 };

    if (kit_alloc_works())
        kit.fail_after = kit_alloc_fail_after;
    snprintf(run->why, sizeof(run->why), "there is no folder for it");
    if (kit.backend == NULL || mkdtemp(folder) == NULL)
        return 1;
    int bad = backend_kit_run(&kit, run->why, sizeof(run->why));
    brc_tree_remove(folder);
    return bad;
}

static void kit_test_backend(struct kit_run *run, const brc_backend_info *info)
{
    const char *given = kit_given_for(run, info->name);
    brc_json *json = NULL;
    brc_buf config = BRC_BUF_INIT;
    int bad = given != NULL && brc_json_parse(&json, given, strlen(given), 0, NULL) < 0;
    const brc_json *member = brc_json_member(json, "configuration");

    if (member != NULL)
        bad |= brc_json_write(&config, member, 0, NULL) < 0 ||
               brc_buf_append(&config, "", 1, NULL) < 0;
    bad = bad || kit_run_backend(run, info->name, (const char *)config.data);
    kit_report(run, "backend", info->name, bad, 0);
    brc_buf_dispose(&config);
    brc_json_free(json);
}

static int kit_test_all(struct kit_run *run, brc_error *err)
{
    brc_iter *it;
    const brc_codec_info *codec;
    const brc_dtype_info *type;
    const brc_backend_info *backend;
    int rc = brc_registry_list(&it, run->reg, BRC_LIST_CODECS, err);

    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &codec, err)) == 1)
        if (kit_is_meant(run, codec->owner))
            kit_test_codec(run, codec);
    brc_iter_free(it);
    if (rc == BRC_OK)
        rc = brc_registry_list(&it, run->reg, BRC_LIST_DTYPES, err);
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &type, err)) == 1)
        if (kit_is_meant(run, type->owner))
            kit_test_type(run, type);
    brc_iter_free(it);
    if (rc == BRC_OK)
        rc = brc_registry_list(&it, run->reg, BRC_LIST_BACKENDS, err);
    if (rc < 0)
        return rc;
    while ((rc = brc_next(it, &backend, err)) == 1)
        if (strcmp(backend->owner, "breccia") != 0)
            kit_test_backend(run, backend);
    brc_iter_free(it);
    return rc;
}

static int kit_start(struct kit_run *run, const char *plugin, brc_error *err)
{
    int rc = brc_registry_new(&run->reg, err);

    if (rc == BRC_OK && plugin != NULL)
        rc = brc_registry_new(&run->plain, err);
    if (rc == BRC_OK && plugin != NULL)
        rc = brc_registry_load(run->reg, plugin, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct kit_run run = { .given = argc > 2 ? argc - 2 : 0, .texts = argv + 2 };
    brc_error err = BRC_ERROR_INIT;
    int rc = kit_start(&run, argc > 1 ? argv[1] : NULL, &err);

    if (rc == BRC_OK)
        rc = kit_test_all(&run, &err);
    if (rc < 0)
        fprintf(stderr, "codec_kit: %s\n", err.message);
    if (rc == BRC_OK && run.passed + run.failed == 0) {
        fprintf(stderr, "codec_kit: nothing was tested\n");
        rc = BRC_ENOTFOUND;
    }
    brc_registry_free(run.reg);
    brc_registry_free(run.plain);
    printf("%d passed, %d failed, %d skipped\n", run.passed, run.failed, run.skipped);
    return rc < 0 || run.failed > 0;
}
