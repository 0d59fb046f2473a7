/*
 * bench [OPTION...] [GROUP...]: measures, and says which of the design's numbers
 * are met. Without GROUP all of them run. BENCH_QUICK=1 in the environment makes
 * everything small, to see that it works; its figures mean little.
 */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static const struct {
    const char *name, *what;
    void (*run)(const bench_opts *o);
} groups[] = {
    {"bulk", "whole arrays written, read and written again", bench_bulk},
    {"backends", "the same arrays in the file, in packs, and in a flat file", bench_backends},
    {"external", "files that are imported and stay where they are", bench_external},
    {"remote", "chunks in a bucket whose answers take 50 ms", bench_remote},
    {"random", "one chunk, one small slice", bench_random},
    {"keys", "the key view: one chunk, one set, one list", bench_keys},
    {"shard", "one inner chunk of a shard, and a box across shards", bench_shard},
    {"ediff", "the elements in which two versions differ", bench_ediff},
    {"commit", "commits, diff and branches at a million chunks, and many commits", bench_commit},
    {"history", "commit, status, diff, merge, blame, log and gc by chunks and by commits",
     bench_history},
    {"size", "what versions, index, tree and pages take", bench_size},
    {"scale", "how costs grow with nodes, commits and chunks: exit status 1 where they bend",
     bench_scale},
    {"contention", "1 to 8 processes that commit; readers, committers and a bulk writer",
     bench_contention},
    {"locks", "how long a change of very many rows holds the lock", bench_locks},
};
#define NGROUPS (sizeof(groups) / sizeof(groups[0]))

static char bench_dir[512];

static void usage(FILE *out)
{
    fprintf(out, "usage: bench [--size MB] [--chunks N] [--commits N] [--pairs N] [--threads N] "
                 "[--dir DIR] [--only CASE] [--tsv FILE] [GROUP...]\n"
                 "       bench --names\n");
    for (size_t i = 0; i < NGROUPS; i++)
        fprintf(out, "  %-8s %s\n", groups[i].name, groups[i].what);
}

static void list_names(void)
{
    for (size_t i = 0; i < NGROUPS; i++)
        puts(groups[i].name);
}

static unsigned long number_of(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n == 0) {
        usage(stderr);
        exit(2);
    }
    return n;
}

static int wanted(const char *name, char **names)
{
    if (*names == NULL)
        return 1;
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return 1;
    return 0;
}

static void check_names(char **names)
{
    for (; *names != NULL; names++) {
        size_t i = 0;
        while (i < NGROUPS && strcmp(groups[i].name, *names) != 0)
            i++;
        if (i == NGROUPS) {
            usage(stderr);
            exit(2);
        }
    }
}

/* Also after a failure, which leaves files behind. */
static void remove_dir(void)
{
    char path[1024];
    DIR *d = opendir(bench_dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", bench_dir, e->d_name);
        unlink(path);
    }
    if (d != NULL)
        closedir(d);
    rmdir(bench_dir);
}

static void say_where(const bench_opts *o)
{
    struct utsname u;
    char date[32];
    time_t t = time(NULL);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&t));
    if (uname(&u) == 0)
        printf("%s %s %s, %ld cores, %u threads, breccia %s, %s\n", u.sysname, u.release, u.machine,
               sysconf(_SC_NPROCESSORS_ONLN), o->threads, brc_version(), date);
}

static void read_options(bench_opts *o, int argc, char **argv)
{
    static const struct option options[] = {
        {"size", required_argument, NULL, 's'},    {"chunks", required_argument, NULL, 'c'},
        {"commits", required_argument, NULL, 'n'}, {"pairs", required_argument, NULL, 'p'},
        {"threads", required_argument, NULL, 't'}, {"dir", required_argument, NULL, 'd'},
        {"only", required_argument, NULL, 'o'},    {"tsv", required_argument, NULL, 'v'},
        {"names", no_argument, NULL, 'l'},         {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 's': o->bytes = number_of(optarg) * MIB; break;
        case 'c': o->small_chunks = number_of(optarg); break;
        case 'n': o->commits = number_of(optarg); break;
        case 'p': o->pairs = (int)number_of(optarg); break;
        case 't': o->threads = (unsigned)number_of(optarg); break;
        case 'd': o->dir = optarg; break;
        case 'o': o->only = optarg; break;
        case 'v': report_to(optarg); break;
        case 'l': list_names(); exit(0);
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (o->pairs > SERIES_MAX)
        o->pairs = SERIES_MAX;
}

int main(int argc, char **argv)
{
    const char *quick = getenv("BENCH_QUICK");
    if (argc == 2 && strcmp(argv[1], "--worker") == 0)
        return worker_main();
    if (argc > 3 && strcmp(argv[1], "--child") == 0)
        return child_main(argv + 2);
    int small = quick != NULL && *quick != '\0' && strcmp(quick, "0") != 0;
    bench_opts o = {
        .bytes = (small ? 128 : 1024) * MIB,
        .small_chunks = small ? 50000 : 1000000,
        .commits = small ? 500 : 10000,
        .pairs = small ? 3 : 5,
        .threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
        .dir = "/var/tmp",
        .quick = small,
    };
    brc_error err = BRC_ERROR_INIT;
    read_options(&o, argc, argv);
    check_names(argv + optind);
    snprintf(bench_dir, sizeof(bench_dir), "%s/breccia-bench.XXXXXX", o.dir);
    must_be(mkdtemp(bench_dir) != NULL, "making a folder");
    atexit(remove_dir);
    o.dir = bench_dir;
    must(brc_pool_new(&o.pool, o.threads, &err), &err, "starting threads");
    setvbuf(stdout, NULL, _IOLBF, 0);
    say_where(&o);
    for (size_t i = 0; i < NGROUPS; i++)
        if (wanted(groups[i].name, argv + optind))
            groups[i].run(&o);
    int status = report_total();
    brc_pool_free(o.pool);
    return status;
}
