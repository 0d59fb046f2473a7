#!/bin/sh
# Installs into a folder of its own, builds a program against what is there, with
# the shared and with the static library, and takes everything away again.
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "install check: $*" >&2
    exit 1
}

${MAKE:-make} --no-print-directory install DESTDIR="$work/stage" PREFIX=/opt/brc >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail 'make install failed'; }
inst=$work/stage/opt/brc
PKG_CONFIG_PATH=$inst/lib/pkgconfig
export PKG_CONFIG_PATH
flags() { pkg-config --define-prefix "$@" breccia; }

cat >"$work/user.c" <<'E'
#include <breccia.h>
#include <breccia_codec.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape[2] = { 3, 4 };
    int32_t in[12], out[12];
    breccia *repo = NULL;
    brc_session *session = NULL;
    brc_array *array = NULL;
    brc_oid id;
    int rc, i;

    for (i = 0; i < 12; i++)
        in[i] = i * i;
    opts.flags = BRC_OPEN_CREATE;
    commit.message = "squares";
    spec.ndim = 2;
    spec.shape = shape;
    spec.dtype = "int32";
    if (argc != 2)
        return 2;
    if ((rc = brc_open(&repo, argv[1], &opts, &err)) < 0 ||
        (rc = brc_session_open(&session, repo, NULL, BRC_SESSION_WRITE, &err)) < 0 ||
        (rc = brc_array_create(&array, session, "/squares", &spec, &err)) < 0 ||
        (rc = brc_array_write(array, NULL, in, sizeof(in), &err)) < 0 ||
        (rc = brc_session_commit(&id, session, &commit, &err)) < 0 ||
        (rc = brc_array_read(array, NULL, out, sizeof(out), &err)) < 0)
        fprintf(stderr, "%s\n", err.message);
    else if (memcmp(in, out, sizeof(in)) != 0)
        rc = brc_fail(&err, BRC_EINTERNAL, "other values came back");
    brc_array_free(array);
    brc_session_free(session);
    brc_free(repo);
    return rc < 0;
}
E

cc=${CC:-cc}
$cc -std=c99 -Wall -Wextra -Werror $(flags --cflags) -o "$work/shared" "$work/user.c" $(flags --libs)
LD_LIBRARY_PATH=$inst/lib "$work/shared" "$work/shared.brc" || fail 'the shared library does not work'
ldd "$work/shared" | grep -q libbreccia.so.0 || fail 'not linked with libbreccia.so.0'

# Compiles the programs that README.md and docs/demo show.
sed -n '/^```c$/,/^```$/{/^```/d;p}' README.md >"$work/readme.c"
$cc -std=c99 -Wall -Wextra -Werror $(flags --cflags) -o "$work/readme" "$work/readme.c" $(flags --libs)
said=$(LD_LIBRARY_PATH=$inst/lib "$work/readme" "$work/readme.brc")
[ "$said" = '64 81 100 121' ] || fail "the program in README.md says '$said'"
$cc -std=c99 -Wall -Wextra -Werror $(flags --cflags) -o "$work/simulation" docs/demo/reaction_diffusion.c \
    $(flags --libs)

# The same flags, with our own part taken from the archive.
$cc -std=c99 $(flags --cflags) -o "$work/static" "$work/user.c" \
    $(flags --static --libs | sed 's/-lbreccia\b/-l:libbreccia.a/')
"$work/static" "$work/static.brc" || fail 'the static library does not work'
if ldd "$work/static" | grep -q libbreccia; then fail 'the static program needs the shared library'; fi

"$inst/bin/breccia" info "$work/static.brc" /squares >/dev/null || fail 'the command does not work'

# Pictures.
"$inst/bin/breccia" read "$work/static.brc" /squares -o "$work/squares.png" || fail 'no PNG is written'
[ "$(head -c 4 "$work/squares.png" | tail -c 3)" = PNG ] || fail 'what is written is not a PNG'

# Converters: where PREFIX is what it was built for, and where all of it was moved.
strings -a "$inst/bin/breccia" 2>/dev/null | grep -q '^/opt/brc/libexec/breccia$' ||
    grep -aq '/opt/brc/libexec/breccia' "$inst/bin/breccia" || fail 'PREFIX is not where converters are looked for'
for converter in build/libexec/breccia/*; do
    [ -e "$converter" ] || continue
    [ -x "$inst/libexec/breccia/$(basename "$converter")" ] || fail "$converter was not installed"
done
"$inst/bin/breccia" export "$work/static.brc" - | "$inst/bin/breccia" import "$work/shared.brc" - /copy >/dev/null ||
    fail 'a stream does not come in'

# The shared library exports what the public headers declare, and nothing else.
nm -D --defined-only "$inst/lib/libbreccia.so" | awk '{ print $3 }' | sort >"$work/shown"
sed -n 's/^BRC_API.*[ *]\(brc_[a-z0-9_]*\)(.*/\1/p' src/breccia*.h | grep -vx brc_plugin_init | sort >"$work/declared"
diff "$work/declared" "$work/shown" >"$work/differ" || {
    cat "$work/differ" >&2
    fail 'declared (<) and shown (>) functions differ'
}

${MAKE:-make} --no-print-directory uninstall DESTDIR="$work/stage" PREFIX=/opt/brc >/dev/null
left=$(find "$work/stage" ! -type d)
[ -z "$left" ] || fail "make uninstall left $left"
echo 'install check: passed'
