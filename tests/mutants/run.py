#!/usr/bin/env python3
"""run.py [LIST...]: shows that the tests catch faults.

Each mutant of the lists (*.txt beside this file, or LIST) is one fault in one line of the
sources. It is put into a copy of the tree below build/mutants, never into the tree itself;
what changed is compiled, and the suites are run that should notice. The last line is
"N mutants: N caught". A mutant that survives, that does not compile or whose line is not
there any more is a fault of the tests or of the list, and so is a suite that fails without
any mutant: the exit status is then 1.

run.py --check ROOT changes nothing and builds nothing: it says, as lint does, which mutants
of that tree do not apply any more and which of their suites there are not.

run.py --compile [LIST...] runs nothing: it says of each mutant whether the file that it changes
still compiles. COMPILE is the command; `make mutants-compile` gives the tree's.

The environment: MUTANTS=N takes a sample of N, which SEED=N repeats; ONLY=TEXTS those with
one of these texts in a file's name; JOBS=N works on N at a time (2).

A list, in which a line that begins with # is a comment:

    src/base/buf.c
      why  what would go wrong without anybody's noticing
      -    the text to be replaced: it is in one line of the file, once
      +    what stands there instead; nothing: the text goes
      nth  2 of 3         where it is there three times: the second
      by   buf cli:fsck   suites of the C tests, or scripts of tests/cli (`cli`: all); without
                          this line everything runs
"""
import concurrent.futures
import hashlib
import os
import pathlib
import queue
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "mutants"
OBJECTS = "build/obj-release-mutants"
LINKED = ["libbreccia.a", "libbreccia.so", "run", "breccia"]
# Warnings are off: a fault may leave a variable unused.
MAKE = ["make", "-s", "-j2", "FLAGS_ID=mutants", "WARNINGS=-w", "WERROR="]
# An unknown function would be a warning, and then a program that does not link.
SYNTAX = ["-fsyntax-only", "-Werror=implicit-function-declaration", "-x", "c"]
SLOWEST = 600  # seconds for a suite before its time is known


# Suites that have a long form; "" is all of them.
LONG = {""} | set(re.findall(r"^LONG_SUITE\((\w+)\)", (ROOT / "tests/suites.h").read_text(), re.M))


class Fault(Exception):
    """A fault of a mutant, of a list or of the tree."""


def takes_the_next(before, after):
    """Returns whether the line between them is empty now, below an `if (...)`, a loop or an `else`."""
    above, _, start = re.sub(r"/\*.*?\*/", "", before).rpartition("\n")
    return not (start + after.partition("\n")[0]).strip() and \
        re.search(r"(\)|\belse|\bdo)\s*$", above) is not None


class Mutant:
    def __init__(self, where, path):
        self.where, self.path = where, path
        self.why = self.old = self.new = None
        self.nth, self.of, self.suites = 1, 1, []

    def take(self, key, value):
        if key == "why":
            self.why = value
        elif key == "-":
            self.old = value
        elif key == "+":
            self.new = value
        elif key == "by":
            self.suites = value.split()
        elif key == "nth":
            nth, of, count = value.split()
            if of != "of":
                raise ValueError(value)
            self.nth, self.of = int(nth), int(count)
        else:
            raise ValueError(key)

    def lot(self, seed):
        """Its place in a sample's order: a mutant more or less in the lists moves no other."""
        text = "\0".join([str(seed), self.path, self.old, self.new, str(self.nth)])
        return hashlib.sha256(text.encode()).digest()

    def apply(self, text):
        """The text with the fault in it, and the number of its line."""
        found = text.count(self.old)
        if found != self.of:
            raise Fault(f"does not apply: \"{self.old}\" is there {found} times, not {self.of}")
        at = -1
        for _ in range(self.nth):
            at = text.index(self.old, at + 1)
        changed = text[:at] + self.new + text[at + len(self.old):]
        if changed == text:
            raise Fault("changes nothing")
        if not self.new and takes_the_next(changed[:at], changed[at:]):
            raise Fault("leaves a condition whose statement is now the next one: say (void)...;")
        return changed, text.count("\n", 0, at) + 1


def read_list(path):
    mutants = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if not line[0].isspace():
            mutants.append(Mutant(where, line.strip()))
            continue
        key, _, value = line.strip().partition(" ")
        try:
            mutants[-1].take(key, value.strip())
        except (IndexError, ValueError):
            sys.exit(f"{where}: what is \"{line.strip()}\"?")
    for m in mutants:
        if not m.why or not m.old or m.new is None:
            sys.exit(f"{m.where}: a mutant needs the lines why, - and +")
        if not m.path.endswith(".c"):
            sys.exit(f"{m.where}: only .c files can be changed")
    return mutants


# ---- a copy of the tree ---------------------------------------------------------

def sources():
    """The files of the tree, by git where there is one."""
    git = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT,
                         capture_output=True, check=False)
    if git.returncode == 0:
        names = [os.fsdecode(n) for n in git.stdout.split(b"\0") if n]
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                 if p.is_file() and p.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return {n for n in names if (ROOT / n).is_file()}


def copy_newer(source, target):
    """With its time, so that make knows what is up to date; what differs in the copy (a
    mutant of a run that was cut short) gets a new one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(source, target)
    elif target.read_bytes() != source.read_bytes():
        shutil.copy(source, target)


class Copy:
    def __init__(self, number):
        self.root = WORK / str(number)
        self.objects = self.root / OBJECTS
        names = sources()
        for name in names:
            copy_newer(ROOT / name, self.root / name)
        for path in [p for p in self.root.rglob("*") if p.is_file()]:
            name = str(path.relative_to(self.root))
            if not name.startswith("build/") and name not in names:
                path.unlink()
        if not self.objects.exists():
            self.take_objects()
        self.unlink()

    def take_objects(self):
        """Takes objects that were compiled before, which saves most of the time."""
        built = sorted(ROOT.glob("build/obj-release-*"), key=lambda p: p.stat().st_mtime)
        if built:
            shutil.copytree(built[-1], self.objects)
            for path in self.objects.rglob("*.d"):  # they name the folder
                text = path.read_text()
                stamp = path.stat()
                path.write_text(text.replace(built[-1].name, self.objects.name))
                os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        for name in ["gen", ".setup-ok--build"]:
            source, target = ROOT / "build" / name, self.root / "build" / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.exists():
                shutil.copy2(source, target)

    def unlink(self):
        """Removes linked files, which may hold a mutant's objects."""
        for name in LINKED:
            (self.objects / name).unlink(missing_ok=True)

    def make(self, *targets):
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        done = subprocess.run(MAKE + list(targets), cwd=self.root, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return None if done.returncode == 0 else done.stdout.strip()


# ---- running suites --------------------------------------------------------------

RUNNING = {}  # session: its temporary folder


def end_session(session):
    """Each test of Check's is a process group of its own, all are in one session."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):  # it has ended
            pass


def end_suite(session):
    """A test that failed may have left processes and files."""
    folder = RUNNING.pop(session, None)
    end_session(session)
    if folder:
        subprocess.run(["chmod", "-R", "u+rwX", folder], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def stop(number, _frame):
    for session in list(RUNNING):
        end_suite(session)
    os._exit(128 + number)


def target_of(suite):
    return {"": "test", "cli": "build/breccia"}.get(suite.partition(":")[0], "build/tests/run")


def command_of(suite, is_long):
    if suite == "":
        return MAKE + ["test-long" if is_long else "test"]
    if suite.partition(":")[0] == "cli":
        return ["tests/cli/run", "build/breccia"] + suite.split(":")[1:]
    return ["build/tests/run", suite]


def run_suite(copy, suite, limit, is_long=False):
    """Returns None if the suite passes, else how it fails, with its last lines."""
    folder = tempfile.mkdtemp(prefix="mutant-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK)
                              else None)
    os.chmod(folder, 0o755)  # some tests go on as another user
    env = dict(os.environ, TMPDIR=folder, BRECCIA_TEST_DATA=os.environ.get(
        "BRECCIA_TEST_DATA", str(ROOT.parent / "shared" / "data")))
    for name in ("TEST", "WRAP", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)
    env.pop("BRECCIA_LONG", None)
    if is_long:
        env["BRECCIA_LONG"] = "1"
    child = subprocess.Popen(command_of(suite, is_long), cwd=copy.root, env=env, start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, errors="replace", text=True)
    RUNNING[child.pid] = folder
    try:
        out, _ = child.communicate(timeout=limit)
        return None if child.returncode == 0 else out.strip()
    except subprocess.TimeoutExpired:
        end_session(child.pid)
        child.communicate()
        return f"it was stopped after {limit:.0f} s"
    finally:
        end_suite(child.pid)


def try_suites(copy, mutant, limits):
    suites = mutant.suites or [""]
    targets = {target_of(s) for s in suites} - {"test"}
    if mutant.path.startswith("src/convert/"):  # programs of their own
        targets.add("converters")
    for target in sorted(targets):
        told = copy.make(target)
        if told is not None:
            raise Fault("does not compile:\n" + told)
    for suite in suites:
        if run_suite(copy, suite, limits[suite]) is not None:
            return suite or "make test"
    for suite in suites:  # those that took a sample take all
        if suite in LONG and run_suite(copy, suite, 3 * SLOWEST, True) is not None:
            return (suite or "make test") + ", in the long form"
    raise Fault("SURVIVED: " + mutant.why)


def try_mutant(copy, mutant, limits):
    """The suite that caught it, and the line that was changed."""
    source = copy.root / mutant.path
    if not source.is_file():
        raise Fault("does not apply: there is no such file")
    text = source.read_text()
    changed, line = mutant.apply(text)
    if "\n" in mutant.old:
        raise Fault("is more than one line")
    compiled = copy.objects / mutant.path.replace(".c", ".o")
    saved, stamp = compiled.with_suffix(".saved"), source.stat()
    shutil.copy2(compiled, saved)
    try:
        source.write_text(changed)
        return try_suites(copy, mutant, limits), line
    finally:  # the object first: see copy_newer()
        shutil.copy2(saved, compiled)
        saved.unlink()
        copy.unlink()
        source.write_text(text)
        os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def baseline(copy, mutants):
    """Every suite passes as things are; how long each may take then."""
    limits = {}
    told = copy.make("test", "TEST=error")
    if told is not None:
        sys.exit("mutants: the tree does not build:\n" + told)
    for suite in sorted({s for m in mutants for s in m.suites or [""]}):
        began = time.monotonic()
        told = run_suite(copy, suite, SLOWEST)
        if told is not None:
            sys.exit(f"mutants: {suite or 'make test'} fails without any mutant:\n"
                     + "\n".join(told.splitlines()[-20:]))
        limits[suite] = 20 + 5 * (time.monotonic() - began)
    return limits


# ---- all of them -----------------------------------------------------------------

def choose(mutants):
    only, count = os.environ.get("ONLY", ""), os.environ.get("MUTANTS", "")
    mutants = [m for m in mutants if not only or any(text in m.path for text in only.split())]
    if count:
        seed = int(os.environ.get("SEED") or random.randrange(1000000))
        print(f"mutants: a sample; again with: make mutants MUTANTS={count} SEED={seed}", flush=True)
        mutants = sorted(mutants, key=lambda m: m.lot(seed))[:int(count)]
    if not mutants:
        sys.exit("mutants: there is none")
    return mutants


def check(root):
    """Prints the faults of the lists, as lint does."""
    suites = set(re.findall(r"^(?:FORKED_|LONG_)?SUITE\((\w+)\)", (root / "tests/suites.h").read_text(), re.M))
    suites |= {"cli"} | {"cli:" + p.stem for p in root.glob("tests/cli/*.sh")}
    faults = []
    for m in [m for path in sorted(root.glob("tests/mutants/*.txt")) for m in read_list(path)]:
        told = [f"there is no suite {s}" for s in m.suites if s not in suites]
        try:
            m.apply((root / m.path).read_text())
        except Fault as fault:
            told.append(f"{m.path}: {fault}")
        except FileNotFoundError:
            told.append(f"there is no {m.path}")
        faults += [f"tests/mutants/{m.where}: {what}" for what in told]
    print("".join(fault + "\n" for fault in faults), end="")
    return 1 if faults else 0


def compiles(mutant):
    """None, or what the compiler says: it reads the one file from standard input."""
    source = ROOT / mutant.path
    try:
        changed, line = mutant.apply(source.read_text())
    except (Fault, FileNotFoundError) as fault:
        return f"{mutant.path} ({mutant.where}): {fault}"
    command = shlex.split(os.environ.get("COMPILE") or "cc") + SYNTAX
    command += ["-iquote", str(source.parent), "-"]
    done = subprocess.run(command, cwd=ROOT, input=changed, text=True, capture_output=True,
                          check=False)
    if done.returncode == 0:
        return None
    told = [t for t in done.stderr.splitlines() if "error:" in t] or done.stderr.splitlines()
    return f"{mutant.path}:{line} ({mutant.where}): does not compile: " + "; ".join(told[:2])


def compile_all(lists):
    mutants = choose([m for path in lists for m in read_list(path)])
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or 2)) as pool:
        faults = [told for told in pool.map(compiles, mutants) if told]
    print("".join(fault + "\n" for fault in faults), end="")
    print(f"{len(mutants)} mutants: {len(mutants) - len(faults)} compile")
    return 1 if faults else 0


def lists_of(names):
    return [pathlib.Path(p) for p in names] or sorted(HERE.glob("*.txt"))


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(pathlib.Path(sys.argv[2]))
    if sys.argv[1:2] == ["--compile"]:
        return compile_all(lists_of(sys.argv[2:]))
    mutants = choose([m for path in lists_of(sys.argv[1:]) for m in read_list(path)])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    jobs = min(int(os.environ.get("JOBS") or 2), len(mutants))
    copies = queue.Queue()
    first = Copy(0)
    limits = baseline(first, mutants)
    copies.put(first)
    mutants.sort(key=lambda m: sum(limits[s] for s in m.suites or [""]))  # the quick ones first
    for number in range(1, jobs):
        shutil.rmtree(WORK / str(number), ignore_errors=True)
        shutil.copytree(first.root, WORK / str(number), symlinks=True)
        copies.put(Copy(number))
    failed, say = [], threading.Lock()

    def work(mutant):
        copy, began, line = copies.get(), time.monotonic(), 0
        try:
            by, line = try_mutant(copy, mutant, limits)
            told = f"caught by {by}"
        except Fault as fault:
            failed.append(mutant)
            told = str(fault)
        finally:
            copies.put(copy)
        name = f"{mutant.path}:{line}" if line else f"{mutant.path} ({mutant.where})"
        with say:
            print(f"{time.monotonic() - began:5.1f} s  {name}: {told}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work, m) for m in mutants]:
            done.result()
    print(f"{len(mutants)} mutants: {len(mutants) - len(failed)} caught")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
