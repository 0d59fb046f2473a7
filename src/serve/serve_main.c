/*
 * The program of `breccia serve` and `breccia ui`, which check the arguments:
 *
 *   serve [OPTION...] [--] [FILE...]
 *
 * Once it listens it prints the address as one line on standard output. SIGINT and SIGTERM end it,
 * and so does the end of standard input with --watch-stdin.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../cli/credentials.h"
#include "../breccia_codec.h"
#include "http.h"
#include "route.h"

extern char **environ;

enum { HOSTS_MOST = 16, TOKEN_MOST = 128 };

typedef struct serve_args {
    serve_files_opts files;
    serve_http_opts http;
    const char *hosts[HOSTS_MOST];
    const char *bind, *port, *query;
    char token[TOKEN_MOST + 1];
    brc_registry *registry;
    int is_public, watches_stdin, opens, json;
} serve_args;

/* ---- arguments -------------------------------- */

enum {
    OPT_BIND = 1,
    OPT_PORT,
    OPT_TOKEN,
    OPT_PUBLIC,
    OPT_HOST,
    OPT_ROOT,
    OPT_CONNECTIONS,
    OPT_QUEUE,
    OPT_THREADS,
    OPT_WORKERS,
    OPT_BUDGET,
    OPT_SECONDS,
    OPT_WAIT,
    OPT_WATCH,
    OPT_OPEN,
    OPT_JSON,
    OPT_PLUGIN,
    OPT_CACHE,
    OPT_CACHE_BYTES,
    OPT_QUERY
};

static const struct option long_options[] = {
    { "bind", 1, NULL, OPT_BIND },
    { "port", 1, NULL, OPT_PORT },
    { "token", 1, NULL, OPT_TOKEN },
    { "public", 0, NULL, OPT_PUBLIC },
    { "host", 1, NULL, OPT_HOST },
    { "root", 1, NULL, OPT_ROOT },
    { "connections", 1, NULL, OPT_CONNECTIONS },
    { "queue", 1, NULL, OPT_QUEUE },
    { "threads", 1, NULL, OPT_THREADS },
    { "workers", 1, NULL, OPT_WORKERS },
    { "budget", 1, NULL, OPT_BUDGET },
    { "seconds", 1, NULL, OPT_SECONDS },
    { "wait-ms", 1, NULL, OPT_WAIT },
    { "watch-stdin", 0, NULL, OPT_WATCH },
    { "open", 0, NULL, OPT_OPEN },
    { "json", 0, NULL, OPT_JSON },
    { "plugin", 1, NULL, OPT_PLUGIN },
    { "cache", 1, NULL, OPT_CACHE },
    { "cache-bytes", 1, NULL, OPT_CACHE_BYTES },
    { "query", 1, NULL, OPT_QUERY },
    { NULL, 0, NULL, 0 },
};

static int read_whole_number(uint64_t *out, const char *name, const char *text, uint64_t min,
                             uint64_t max, brc_error *err)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < min || value > max)
        return brc_fail(err, BRC_EINVAL, "--%s is a number from %llu to %llu, not '%.60s'", name,
                        (unsigned long long)min, (unsigned long long)max, text);
    *out = value;
    return BRC_OK;
}

static int read_token(serve_args *args, const char *text, brc_error *err)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const size_t n = strlen(text);
    if (n < 16 || n > TOKEN_MOST || strspn(text, good) != n)
        return brc_fail(err, BRC_EINVAL,
                        "--token has 16 to %d characters, which are letters, digits, - and _",
                        TOKEN_MOST);
    memcpy(args->token, text, n + 1);
    return BRC_OK;
}

static int read_plugin(serve_args *args, const char *file, brc_error *err)
{
    int rc = args->registry == NULL ? brc_registry_new(&args->registry, err) : BRC_OK;
    args->files.registry = args->registry;
    return rc == BRC_OK ? brc_registry_load(args->registry, file, err) : rc;
}

static int read_number_option(serve_args *args, int option, const char *name, const char *text,
                              brc_error *err)
{
    uint64_t value = 0;
    int rc = BRC_OK;
    switch (option) {
    case OPT_CONNECTIONS:
        rc = read_whole_number(&value, name, text, 1, 100000, err);
        args->http.connections = (unsigned)value;
        return rc;
    case OPT_QUEUE:
        rc = read_whole_number(&value, name, text, 0, 100000, err);
        args->http.queue = (unsigned)value;
        return rc;
    case OPT_THREADS:
        rc = read_whole_number(&value, name, text, 1, 256, err);
        args->http.threads = (unsigned)value;
        return rc;
    case OPT_WORKERS:
        rc = read_whole_number(&value, name, text, 1, 256, err);
        args->http.workers = (unsigned)value;
        return rc;
    case OPT_BUDGET:
        return read_whole_number(&args->http.decoded, name, text, 0, INT64_MAX, err);
    case OPT_SECONDS:
        rc = read_whole_number(&value, name, text, 1, 86400, err);
        args->http.seconds = (unsigned)value;
        return rc;
    case OPT_WAIT:
        rc = read_whole_number(&value, name, text, 1, 3600000, err);
        args->files.wait_ms = (int)value;
        return rc;
    default:
        return read_whole_number(&args->files.cache_bytes, name, text, 0, INT64_MAX, err);
    }
}

static int read_option(serve_args *args, int option, const char *name, char *text, brc_error *err)
{
    uint64_t port;

    switch (option) {
    case OPT_BIND:
        args->bind = text;
        return BRC_OK;
    case OPT_PORT:
        args->port = text;
        return read_whole_number(&port, name, text, 0, 65535, err);
    case OPT_TOKEN:
        return read_token(args, text, err);
    case OPT_PUBLIC:
        args->is_public = 1;
        return BRC_OK;
    case OPT_HOST:
        if (args->http.nhosts == HOSTS_MOST)
            return brc_fail(err, BRC_EINVAL, "--host is given more than %d times", HOSTS_MOST);
        args->hosts[args->http.nhosts++] = text;
        return BRC_OK;
    case OPT_ROOT:
        args->files.root = text;
        return BRC_OK;
    case OPT_WATCH:
        args->watches_stdin = 1;
        return BRC_OK;
    case OPT_OPEN:
        args->opens = 1;
        return BRC_OK;
    case OPT_JSON:
        args->json = 1;
        return BRC_OK;
    case OPT_PLUGIN:
        return read_plugin(args, text, err);
    case OPT_CACHE:
        args->files.cache = text;
        return BRC_OK;
    case OPT_QUERY:
        args->query = text;
        return BRC_OK;
    default:
        return read_number_option(args, option, name, text, err);
    }
}

/* 128 bits. */
static int make_token(char *out, brc_error *err)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return brc_fail(err, BRC_EIO, "the system gives no random bytes for the token: %s",
                        strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return BRC_OK;
}

static int read_args(serve_args *args, int argc, char **argv, brc_error *err)
{
    int option, at, rc = BRC_OK;
    while (rc == BRC_OK && (option = getopt_long(argc, argv, "", long_options, &at)) != -1)
        rc = option == '?'
                 ? brc_fail(err, BRC_EINVAL, "the arguments are wrong: start it as 'breccia serve'")
                 : read_option(args, option, long_options[at].name, optarg, err);
    if (rc < 0)
        return rc;
    args->files.paths = (const char *const *)(argv + optind);
    args->files.n = (size_t)(argc - optind);
    args->http.hosts = args->hosts;
    args->http.any_host = args->is_public;
    if ((args->files.root != NULL) == (args->files.n > 0))
        return brc_fail(err, BRC_EINVAL, "give files, or a folder with --root");
    if (args->is_public && args->http.nhosts == 0)
        return brc_fail(
            err, BRC_EINVAL,
            "--public needs --host NAME: the name under which others reach this machine");
    return args->token[0] != '\0' ? BRC_OK : make_token(args->token, err);
}

/* ---- listening -------------------------------- */

/* Only on this machine? */
static int is_loopback(const struct sockaddr *address)
{
    static const unsigned char six[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
    if (address->sa_family == AF_INET)
        return ((const unsigned char *)&((const struct sockaddr_in *)(const void *)address)
                    ->sin_addr)[0] == 127;
    return address->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, six,
                  sizeof(six)) == 0;
}

static int listen_on(int *out, const struct addrinfo *address, const serve_args *args,
                     brc_error *err)
{
    const int on = 1;
    if (!args->is_public && !is_loopback(address->ai_addr))
        return brc_fail(
            err, BRC_EINVAL,
            "%s can be reached from other machines: that needs --public and --host NAME",
            args->bind);
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, 1024) == 0) {
        *out = fd;
        return BRC_OK;
    }
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return brc_fail(err, BRC_EIO, "cannot listen on %s, port %s: %s", args->bind, args->port,
                    strerror(why));
}

static int open_socket(int *out, const serve_args *args, brc_error *err)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *list;
    const int failed = getaddrinfo(args->bind, args->port, &hints, &list);
    if (failed != 0)
        return brc_fail(err, BRC_EINVAL, "cannot listen on %s, port %s: %s", args->bind, args->port,
                        gai_strerror(failed));
    int rc = listen_on(out, list, args, err);
    freeaddrinfo(list);
    return rc;
}

/* Appends "http://HOST:PORT/TOKEN/", with a query perhaps. */
static int make_address(brc_buf *out, int fd, const serve_args *args, brc_error *err)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);
    char host[128], port[16];
    if (getsockname(fd, (struct sockaddr *)&own, &len) != 0 ||
        getnameinfo((struct sockaddr *)&own, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return brc_fail(err, BRC_EIO, "the address of the server is not known");
    const char *name = args->is_public ? args->hosts[0] : host;
    const int is_six = !args->is_public && strchr(host, ':') != NULL;
    return brc_buf_printf(out, err, "http://%s%s%s:%s/%s/%s%s", is_six ? "[" : "", name,
                          is_six ? "]" : "", port, args->token, args->query != NULL ? "?" : "",
                          args->query != NULL ? args->query : "");
}

/* ---- running -------------------------------- */

/* Opens the address in the user's browser, if there seems to be one. */
static void open_browser(const char *address)
{
    const char *browser = getenv("BROWSER");
    const int has_screen = getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
    const char *program = browser != NULL && *browser != '\0' ? browser : "xdg-open";
    char *const words[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)address, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    if (!has_screen && (browser == NULL || *browser == '\0'))
        return;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawnp(&pid, program, &files, &attributes, words, environ) != 0)
        fprintf(stderr, "breccia: cannot run %s: open the address yourself\n", program);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
}

/* Waits until the program is to end. */
static int wait_for_end(int signals, int watches_stdin)
{
    struct pollfd fds[2] = { { .fd = signals, .events = POLLIN },
                             { .fd = watches_stdin ? STDIN_FILENO : -1, .events = POLLIN } };
    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return 1;
        if (fds[0].revents != 0)
            return 0;
        if (fds[1].revents != 0) {
            char bytes[256];
            const ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
            if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
                return 0;
        }
    }
}

static void say_public(const serve_args *args)
{
    if (args->is_public)
        fprintf(stderr,
                "breccia: whoever reaches this machine and knows the address can read every "
                "version of what is "
                "served; nothing is encrypted: see docs/SERVING.md for a server in front\n");
}

static int run_server(const serve_args *args, int signals, brc_error *err)
{
    serve_files *files = NULL;
    serve_http *http = NULL;
    serve_http_opts opts = args->http;
    brc_buf address = BRC_BUF_INIT;
    opts.socket = -1;
    opts.token = args->token;
    int rc = serve_files_new(&files, &args->files, err);
    if (rc == BRC_OK)
        rc = open_socket(&opts.socket, args, err);
    if (rc == BRC_OK)
        rc = make_address(&address, opts.socket, args, err);
    if (rc == BRC_OK)
        rc = serve_http_start(&http, files, &opts, err);
    if (rc == BRC_OK) {
        say_public(args);
        printf(args->json ? "{\"schema\":1,\"url\":\"%s\"}\n" : "%s\n", (char *)address.data);
        if (fflush(stdout) != 0)
            rc = brc_fail(err, BRC_EIO, "standard output cannot be written: %s", strerror(errno));
        if (rc == BRC_OK && args->opens)
            open_browser((char *)address.data);
        if (rc == BRC_OK)
            (void)wait_for_end(signals, args->watches_stdin);
    }
    serve_http_stop(http);
    serve_files_free(files);
    if (opts.socket >= 0)
        close(opts.socket);
    brc_buf_dispose(&address);
    return rc;
}

/* Thousands of clients need as many descriptors. Where there are fewer, fewer are let in at once:
 * each may need another one for its answer, and the repositories need some. */
static void raise_limits(unsigned *connections)
{
    enum { OTHERS = 256 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t most = limit.rlim_cur > 2 * OTHERS ? (limit.rlim_cur - OTHERS) / 2 : OTHERS / 2;
    if (*connections > most)
        *connections = (unsigned)most;
}

/* Signals come through a descriptor; threads that are started later inherit the mask. */
static int take_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)signal(SIGPIPE, SIG_IGN);
    return pthread_sigmask(SIG_BLOCK, &set, NULL) == 0
               ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)
               : -1;
}

int main(int argc, char **argv)
{
    brc_error err = BRC_ERROR_INIT;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned threads = cores < 2 ? 2 : cores > 16 ? 16 : (unsigned)cores;
    serve_args args = {
        .bind = "127.0.0.1",
        .port = "0",
        .files = { .credentials = cli_credentials, .wait_ms = 10000, .memory = (size_t)32 << 20 },
        .http = { .socket = -1,
                  .threads = threads,
                  .workers = threads,
                  .connections = 4096,
                  .queue = 256,
                  .decoded = (uint64_t)256 << 20,
                  .seconds = 30 }
    };
    const int signals = take_signals();
    int rc = read_args(&args, argc, argv, &err);
    raise_limits(&args.http.connections);
    if (rc == BRC_OK)
        rc = run_server(&args, signals, &err);
    brc_registry_free(args.registry);
    if (rc == BRC_OK)
        return 0;
    fprintf(stderr, "breccia: error: %s\n", err.message);
    return rc == BRC_ECORRUPT ? 4 : rc == BRC_EBUSY ? 5 : rc == BRC_EINVAL ? 2 : 1;
}
