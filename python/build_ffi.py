"""The extension module breccia._breccia: made from the C headers, so that nothing is declared twice.

`setup.py` runs this. cffi compiles the module against the headers in SOURCE/src, and `setup.py` links
SOURCE/build/libbreccia.a into it, where SOURCE is the project: the folder above this one, or
`csource` beside this file in a source distribution.

`python3 build_ffi.py` prints the declarations, `python3 build_ffi.py --stub` the types of the module.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLACES = HERE / "csource", HERE.parent
SOURCE = next((p for p in PLACES if (p / "src" / "breccia.h").is_file()), HERE.parent)
HEADERS = "breccia_types.h", "breccia_sel.h", "breccia.h"

# Ctrl-C ends a call of the main thread: between py_enter and py_leave SIGINT also interrupts the handle, and then
# goes to whom it went before. py_take does all three in one call.
#
# What C calls in Python. The library reports progress after every chunk, which is too often for
# Python: the function below asks for the interpreter 20 times a second at most.
CALLBACKS = """
typedef struct py_progress { int64_t next_us; void *self; } py_progress;
int py_report(void *ctx, const char *phase, uint64_t done, uint64_t total);
extern "Python" int py_progress_call(void *self, const char *phase, uint64_t done, uint64_t total);
void py_enter(breccia *repo);
void py_leave(breccia *repo);
void py_forked(void);
typedef struct py_form { int ndim; const char *dtype; uint64_t shape[32]; } py_form;
int py_same(const brc_array *a, const py_form *form);
int py_take(breccia *repo, brc_array *a, const brc_at *at, const brc_buffer *dst, const py_form *form, brc_error *err);
int py_take_box(breccia *repo, brc_array *a, int ndim, const uint64_t *box, void *data, size_t len,
                const py_form *form, brc_error *err);
extern "Python" int py_put(void *self, void *data, size_t len);
extern "Python" int py_damage(void *self, const brc_damage *damage);
extern "Python" int py_credentials(void *self, const brc_server *server, brc_credentials *out, brc_error *err);
void py_end_capsule(void *capsule);
void *py_new_arrow(int what);
void py_drop_arrow(void *made, int what);
int cli_credentials(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err);
int cli_is_chosen(const brc_server *server, const char *endpoint);
"""

SHIM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "breccia.h"
#include "../cli/credentials.h"
#include "zarr/tensor/arrow_abi.h"
#include "zarr/tensor/dlpack_abi.h"

/* Arrow's structures, which are allocated for Python's capsules: a schema, an array, a stream. */
static void *py_new_arrow(int what)
{
    return calloc(1, what == 0   ? sizeof(struct ArrowSchema)
                     : what == 1 ? sizeof(struct ArrowArray)
                                 : sizeof(struct ArrowArrayStream));
}

static void py_drop_arrow(void *made, int what)
{
    struct ArrowSchema *schema = made;
    struct ArrowArray *array = made;
    struct ArrowArrayStream *stream = made;
    if (what == 0 && schema->release != NULL)
        schema->release(schema);
    else if (what == 1 && array->release != NULL)
        array->release(array);
    else if (what == 2 && stream->release != NULL)
        stream->release(stream);
    free(made);
}

/* Ends a capsule that nobody took over. */
static void py_end_capsule(void *capsule)
{
    static const char *const arrow[] = {"arrow_schema", "arrow_array", "arrow_array_stream"};
    for (int i = 0; i < 3; i++)
        if (PyCapsule_IsValid(capsule, arrow[i]))
            py_drop_arrow(PyCapsule_GetPointer(capsule, arrow[i]), i);
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        struct brc_dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        struct brc_dl_managed_old *m = PyCapsule_GetPointer(capsule, "dltensor");
        m->deleter(m);
    }
}

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

/* The handles on which the main thread works now: more than one where a callback calls the library. */
#define GUARDED_MAX 16
static breccia *guarded[GUARDED_MAX];
static int guarded_count, guarded_hit, guarded_installed, guarded_running;
static struct sigaction guarded_before;
static __thread int guarded_thread; /* 1: this is the main thread; -1: it is not; 0: nobody looked */

static void guarded_signal(int number, siginfo_t *info, void *context)
{
    struct sigaction before = guarded_before;
    __atomic_add_fetch(&guarded_running, 1, __ATOMIC_SEQ_CST);
    for (int i = 0, n = __atomic_load_n(&guarded_count, __ATOMIC_SEQ_CST); i < n; i++)
        brc_interrupt(guarded[i], 1);
    guarded_hit = 1;
    __atomic_sub_fetch(&guarded_running, 1, __ATOMIC_SEQ_CST);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
}

static int guarded_is_main(void)
{
    if (guarded_thread == 0)
#ifdef __APPLE__
        guarded_thread = pthread_main_np() ? 1 : -1;
#else
        guarded_thread = syscall(SYS_gettid) == getpid() ? 1 : -1;
#endif
    return guarded_thread > 0;
}

static void guarded_install(void)
{
    struct sigaction ours = {0};
    ours.sa_sigaction = guarded_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    guarded_hit = 0;
    if (sigaction(SIGINT, NULL, &guarded_before) != 0)
        return;
    if (!(guarded_before.sa_flags & SA_SIGINFO) &&
        (guarded_before.sa_handler == SIG_DFL || guarded_before.sa_handler == SIG_IGN))
        return;
    guarded_installed = sigaction(SIGINT, &ours, NULL) == 0;
}

void py_enter(breccia *repo)
{
    if (!guarded_is_main() || guarded_count == GUARDED_MAX)
        return;
    if (guarded_count == 0)
        guarded_install();
    guarded[guarded_count] = repo;
    __atomic_add_fetch(&guarded_count, 1, __ATOMIC_SEQ_CST);
}

/* Takes back the last py_enter of the handle; nothing where there was none. */
void py_leave(breccia *repo)
{
    int at = guarded_count - 1;
    if (!guarded_is_main())
        return;
    while (at >= 0 && guarded[at] != repo)
        at--;
    if (at < 0)
        return;
    __atomic_store_n(&guarded_count, at, __ATOMIC_SEQ_CST);
    if (at == 0 && guarded_installed) {
        guarded_installed = 0;
        (void)sigaction(SIGINT, &guarded_before, NULL);
    }
    while (__atomic_load_n(&guarded_running, __ATOMIC_SEQ_CST) > 0)
        ; /* the signal came to another thread: it still uses the handle */
    if (guarded_hit)
        brc_interrupt(repo, 0);
}

/* In a child of fork(): its only thread is its main thread, and nothing runs there. */
void py_forked(void)
{
    if (guarded_installed)
        (void)sigaction(SIGINT, &guarded_before, NULL);
    guarded_count = guarded_installed = guarded_running = guarded_thread = 0;
}

/* What Python remembers of an array's form. */
typedef struct py_form { int ndim; const char *dtype; uint64_t shape[32]; } py_form;

static int py_same(const brc_array *a, const py_form *form)
{
    const brc_array_info *info = brc_array_describe(a);
    return info->ndim == form->ndim && strcmp(info->dtype, form->dtype) == 0 &&
           (form->ndim == 0 || memcmp(info->shape, form->shape, sizeof(uint64_t) * (size_t)form->ndim) == 0);
}

/* 1: the array has another form by now, and what was read, or failed, is of no use. form NULL: it cannot. */
static int py_take(breccia *repo, brc_array *a, const brc_at *at, const brc_buffer *dst, const py_form *form,
                   brc_error *err)
{
    brc_io io = {.size = sizeof(io), .array = a, .buffer = dst, .at = at};
    py_enter(repo);
    int rc = brc_read(&io, 1, err);
    py_leave(repo);
    return form == NULL || py_same(a, form) ? rc : 1;
}

/* The same into memory in C order. box: of each axis start, count and step. */
static int py_take_box(breccia *repo, brc_array *a, int ndim, const uint64_t *box, void *data, size_t len,
                       const py_form *form, brc_error *err)
{
    brc_at at = BRC_AT_INIT;
    brc_buffer dst = {.size = sizeof(dst), .data = data, .len = len};
    at.ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        at.start[i] = box[3 * i];
        at.count[i] = box[3 * i + 1];
        at.step[i] = box[3 * i + 2];
    }
    return py_take(repo, a, &at, &dst, form, err);
}
"""


def declarations():
    """The headers as cffi reads them: without the preprocessor's lines, attributes and initialisers."""
    text = "".join((SOURCE / "src" / name).read_text() for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    numbers = dict(re.findall(r"^#define (BRC_[A-Z_]+) (\d+)", text, flags=re.M))
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


STUB = """\
# The types of breccia._breccia, made from breccia.h by build_ffi.py. What C calls a pointer or a structure
# is Any here; names and results of functions are checked.
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

class _FFI:
    NULL: Any
    CData: type[Any]
    error: type[Exception]
    def new(self, cdecl: str, init: Any = ...) -> Any: ...
    def cast(self, cdecl: str, source: Any) -> Any: ...
    def string(self, cdata: Any, maxlen: int = ...) -> bytes: ...
    def unpack(self, cdata: Any, length: int) -> Any: ...
    def buffer(self, cdata: Any, size: int = ...) -> Any: ...
    def from_buffer(self, cdecl: Any, source: Any = ..., require_writable: bool = ...) -> Any: ...
    def memmove(self, dest: Any, src: Any, n: int) -> None: ...
    def gc(self, cdata: Any, destructor: Any, size: int = ...) -> Any: ...
    def release(self, cdata: Any) -> None: ...
    def sizeof(self, what: Any) -> int: ...
    def offsetof(self, cdecl: Any, *fields: Any) -> int: ...
    def addressof(self, cdata: Any, *fields: Any) -> Any: ...
    def typeof(self, what: Any) -> Any: ...
    def getctype(self, cdecl: Any, extra: str = ...) -> str: ...
    def new_handle(self, value: object) -> Any: ...
    def from_handle(self, handle: Any) -> Any: ...
    def def_extern(self, name: str = ..., error: Any = ..., onerror: Any = ...) -> Callable[[_F], _F]: ...

class _Lib:
"""


def stub():
    """The text of _breccia.pyi: each function, callback and constant by name."""
    text = declarations()
    lines = []
    for block in re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", text):
        lines += [f"{name}: int" for name in re.findall(r"\b(BRC_\w+)\b(?=\s*(?:=|,|$))", block)]
    flat = " ".join(re.sub(r"\{[^{}]*\}", " ", re.sub(r"\{[^{}]*\}", " ", text)).split())
    for said in flat.split(";"):
        said = said.strip().removeprefix('extern "Python" ')
        found = re.match(r"([\w ]+?)\s*(\**)\s*\b((?:brc|py|cli)_\w+)\s*\(", said)
        if not found or said.startswith("typedef"):
            continue
        result, pointer, name = found.groups()
        if pointer or not re.fullmatch(r"int|void|size_t|double|u?int\d+_t|unsigned( int)?", result):
            kind = "Any"
        else:
            kind = {"void": "None", "double": "float"}.get(result, "int")
        lines.append(f"{name}: Callable[..., {kind}]")
    return STUB + "".join(f"    {line}\n" for line in lines) + "\nffi: _FFI\nlib: _Lib\n"


def make_builder():
    import cffi

    builder = cffi.FFI()
    builder.cdef(declarations())
    builder.set_source(
        "breccia._breccia", SHIM,
        include_dirs=[str(SOURCE / "src")],
        extra_compile_args=["-O2", "-fvisibility=hidden", "-pthread"])
    return builder


if __name__ == "__main__":
    print(stub() if "--stub" in sys.argv else declarations(), end="")
