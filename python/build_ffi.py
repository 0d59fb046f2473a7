"""The extension module breccia._breccia: made from the C headers, so that nothing is declared twice.

`setup.py` runs this. cffi compiles the module against the headers in SOURCE/src and links
SOURCE/build/libbreccia.a into it, where SOURCE is the project: the folder above this one, or
`csource` beside this file in a source distribution.
"""
import pathlib
import re
import subprocess

import cffi

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = next(p for p in (HERE / "csource", HERE.parent) if (p / "src" / "breccia.h").is_file())
HEADERS = "breccia_types.h", "breccia.h"
PACKAGES = "sqlite3 libzstd libxxhash libcjson zlib blosc liblz4 liblzma libzip libarchive".split()
LIBRARIES = ["bz2", "m", "dl"]

# What C calls in Python. The library reports progress after every chunk, which is too often for
# Python: the function below asks for the interpreter 20 times a second at most.
CALLBACKS = """
typedef struct py_progress { int64_t next_us; void *self; } py_progress;
int py_report(void *ctx, const char *phase, uint64_t done, uint64_t total);
extern "Python" int py_progress_call(void *self, const char *phase, uint64_t done, uint64_t total);
extern "Python" int py_put(void *self, void *data, size_t len);
extern "Python" int py_damage(void *self, const brc_damage *damage);
"""

SHIM = r"""
#include <time.h>
#include "breccia.h"

typedef struct py_progress { int64_t next_us; void *self; } py_progress;
static int py_progress_call(void *self, const char *phase, uint64_t done, uint64_t total);

static int py_report(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    py_progress *p = ctx;
    struct timespec now;
    int64_t us;
    clock_gettime(CLOCK_MONOTONIC, &now);
    us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    if (us < p->next_us && (total == 0 || done < total))
        return 0;
    p->next_us = us + 50000;
    return py_progress_call(p->self, phase, done, total);
}
"""


def declarations():
    """The headers as cffi reads them: without the preprocessor's lines, attributes and initialisers."""
    text = "".join((SOURCE / "src" / name).read_text() for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    numbers = dict(re.findall(r"^#define (BRC_MAX_NDIM) (\d+)", text, flags=re.M))
    text = re.sub(r'^extern "C" \{$', "", text, flags=re.M)
    text = re.sub(r"^#ifdef __cplusplus\n\}\n#endif", "", text, flags=re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    for name, value in numbers.items():
        text = re.sub(rf"\b{name}\b", value, text)
    text = re.sub(r"\b(BRC_API|BRC_MUST_USE)\b", "", text)
    text = re.sub(r"\(\*(put|found|stands|get)\)", r"(*\1)", text)
    # cffi evaluates no shifts of enumerators; the compiler does.
    text = re.sub(r"= [^,}]*<<[^,}]*", "= ...", text)
    return re.sub(r"\n\s*\n+", "\n", text) + CALLBACKS


def pkg_config(what):
    told = subprocess.run(["pkg-config", what, *PACKAGES], check=True, capture_output=True, text=True)
    return told.stdout.split()


def make_builder():
    builder = cffi.FFI()
    builder.cdef(declarations())
    builder.set_source(
        "breccia._breccia", SHIM,
        include_dirs=[str(SOURCE / "src")],
        extra_objects=[str(SOURCE / "build" / "libbreccia.a")],
        # Ours stay ours: another SQLite or libbreccia in the process neither takes them over nor sees them.
        extra_link_args=["-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", *pkg_config("--libs")],
        libraries=LIBRARIES,
        extra_compile_args=["-O2", "-fvisibility=hidden", "-pthread"])
    return builder


if __name__ == "__main__":
    print(declarations())
