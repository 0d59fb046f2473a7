/*
 * A simulation that keeps its frames in a breccia repository: the Gray-Scott
 * reaction-diffusion model, two float32 fields of 256 by 256 cells.
 *
 *   reaction_diffusion FILE FRAMES [EVERY]
 *
 * runs until FILE holds FRAMES frames of /gray_scott/u and /gray_scott/v, and
 * commits after every EVERY of them (25). A FILE that is there is gone on with
 * from its last frame; one that is not is made. It may be stopped at any time:
 * a frame is in the file with both fields or not at all.
 *
 * With an installed breccia:
 *
 *   cc -O2 reaction_diffusion.c -o reaction_diffusion $(pkg-config --cflags --libs breccia)
 */
#include <breccia.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 256
#define CELLS (N * N)
#define STEPS 20 /* of the simulation, from one frame to the next */

static const char parameters[] =
    "{\"feed\": 0.037, \"kill\": 0.06, \"diffusion\": [0.16, 0.08], \"steps\": 20}";

struct simulation {
    float u[CELLS], v[CELLS], next_u[CELLS], next_v[CELLS];
    breccia *repo;
    brc_session *session;
    brc_array *fields[2]; /* u and v, one frame after the other along axis 0 */
    uint64_t frames;      /* that the file holds */
};

/* ---- the model ---------------------------------------------------------------- */

/* Everything is u, but for a square of v in the middle. */
static void first_state(struct simulation *s)
{
    for (int i = 0; i < CELLS; i++) {
        int y = i / N, x = i % N;
        int inside = y > N / 2 - 12 && y < N / 2 + 12 && x > N / 2 - 20 && x < N / 2 + 4;
        s->u[i] = inside ? 0.5f : 1.0f;
        s->v[i] = inside ? 0.25f : 0.0f;
    }
}

static float laplacian(const float *f, int y, int x)
{
    int up = (y + N - 1) % N * N, down = (y + 1) % N * N;
    int left = (x + N - 1) % N, right = (x + 1) % N;
    return f[up + x] + f[down + x] + f[y * N + left] + f[y * N + right] - 4 * f[y * N + x];
}

static void one_step(struct simulation *s)
{
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N; x++) {
            float u = s->u[y * N + x], v = s->v[y * N + x], uvv = u * v * v;
            s->next_u[y * N + x] = u + 0.16f * laplacian(s->u, y, x) - uvv + 0.037f * (1 - u);
            s->next_v[y * N + x] = v + 0.08f * laplacian(s->v, y, x) + uvv - (0.037f + 0.06f) * v;
        }
    }
    memcpy(s->u, s->next_u, sizeof(s->u));
    memcpy(s->v, s->next_v, sizeof(s->v));
}

/* ---- the repository ------------------------------------------------------------- */

static const char *const names[2] = { "/gray_scott/u", "/gray_scott/v" };

static int open_or_make(struct simulation *s, const char *file, brc_error *err)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int rc = brc_open(&s->repo, file, &opts, err);
    if (rc == BRC_ENOTFOUND) {
        opts.flags = BRC_OPEN_CREATE;
        rc = brc_open(&s->repo, file, &opts, err);
    }
    if (rc == BRC_OK)
        rc = brc_session_open(&s->session, s->repo, NULL, BRC_SESSION_WRITE, err);
    return rc;
}

/* No frames yet, one chunk a frame; the library chooses the codecs. */
static int make_fields(struct simulation *s, brc_error *err)
{
    static const uint64_t shape[3] = { 0, N, N }, chunk[3] = { 1, N, N };
    static const char *const dimensions[3] = { "frame", "y", "x" };
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 3;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "float32";
    spec.dimension_names = dimensions;
    int rc = brc_group_create(s->session, "/gray_scott", parameters, err);
    for (int i = 0; i < 2 && rc == BRC_OK; i++)
        rc = brc_array_create(&s->fields[i], s->session, names[i], &spec, err);
    return rc;
}

/* The last frame is the whole state: what comes then is the same, bit for bit, as
 * if the program had not been stopped. */
static int resume_fields(struct simulation *s, brc_error *err)
{
    float *into[2] = { s->u, s->v };
    int rc = BRC_OK;
    for (int i = 0; i < 2 && rc == BRC_OK; i++) {
        brc_sel last = BRC_SEL_INIT;
        rc = brc_array_open(&s->fields[i], s->session, names[i], err);
        if (rc == BRC_OK)
            s->frames = brc_array_describe(s->fields[i])->shape[0];
        if (rc == BRC_OK && s->frames > 0)
            rc = brc_sel_parse(&last, s->fields[i], "[-1]", err);
        if (rc == BRC_OK && s->frames > 0)
            rc = brc_array_read(s->fields[i], &last, into[i], sizeof(s->u), err);
    }
    return rc;
}

/* Between begin and end the two fields are one change of the file. */
static int append_frame(struct simulation *s, brc_error *err)
{
    int rc = brc_begin(s->repo, err);
    if (rc < 0)
        return rc;
    rc = brc_array_append(s->fields[0], 0, 1, s->u, sizeof(s->u), err);
    if (rc == BRC_OK)
        rc = brc_array_append(s->fields[1], 0, 1, s->v, sizeof(s->v), err);
    int end = brc_end(s->repo, rc == BRC_OK ? BRC_END_KEEP : 0, rc == BRC_OK ? err : NULL);
    if (rc == BRC_OK && end == BRC_OK)
        s->frames++;
    return rc < 0 ? rc : end;
}

static int checkpoint(struct simulation *s, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    char message[64], hex[65];
    snprintf(message, sizeof(message), "%llu frames", (unsigned long long)s->frames);
    opts.message = message;
    opts.author = "reaction_diffusion";
    opts.meta_json = parameters;
    int rc = brc_session_commit(&id, s->session, &opts, err);
    if (rc == BRC_OK)
        printf("%.8s  %s\n", brc_oid_format(hex, &id), message);
    return rc;
}

static int run(struct simulation *s, const char *file, uint64_t frames, uint64_t every,
               brc_error *err)
{
    int kind, clean = 1;
    int rc = open_or_make(s, file, err);
    first_state(s);
    if (rc == BRC_OK)
        rc = brc_node_kind(&kind, s->session, names[0], err);
    if (rc == BRC_OK)
        rc = kind == 0 ? make_fields(s, err) : resume_fields(s, err);
    if (rc == BRC_OK)
        printf("%s holds %llu frames\n", file, (unsigned long long)s->frames);
    while (rc == BRC_OK && s->frames < frames) {
        for (int step = 0; s->frames > 0 && step < STEPS; step++)
            one_step(s);
        rc = append_frame(s, err);
        if (rc == BRC_OK && s->frames % every == 0)
            rc = checkpoint(s, err);
    }
    if (rc == BRC_OK)
        rc = brc_session_clean(&clean, s->session, err);
    return rc == BRC_OK && !clean ? checkpoint(s, err) : rc;
}

int main(int argc, char **argv)
{
    brc_error err = BRC_ERROR_INIT;
    unsigned long long frames = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    unsigned long long every = argc > 3 ? strtoull(argv[3], NULL, 10) : 25;
    if (argc < 3 || argc > 4 || frames == 0 || every == 0) {
        fprintf(stderr, "usage: reaction_diffusion FILE FRAMES [EVERY]\n");
        return 2;
    }
    struct simulation *s = calloc(1, sizeof(*s));
    int rc = s != NULL ? run(s, argv[1], frames, every, &err) : BRC_ENOMEM;
    if (rc < 0)
        fprintf(stderr, "reaction_diffusion: %s\n", s != NULL ? err.message : brc_strerror(rc));
    if (s != NULL) {
        brc_array_free(s->fields[0]);
        brc_array_free(s->fields[1]);
        brc_session_free(s->session);
        brc_free(s->repo);
    }
    free(s);
    return rc < 0;
}
