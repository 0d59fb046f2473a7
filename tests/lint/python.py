"""The rules for python/ that need no installed package; `make python-test` has types and names (mypy, pyflakes).

Prints `file:line: what is wrong`, one fault a line.
"""
import ast
import pathlib
import re

PACKAGE_LINES = 5900  # python/breccia/*.py together; the goal is 2500, so this may only fall
FILE_LINES = 600
COLUMNS = 120
BUILT = {"build", "csource", "dist", "libexec", "_made", "__pycache__"}

# Addresses of machines, and places that are on one machine alone.
HOSTS = re.compile(r"https?://(?!example\.|localhost|127\.0\.0\.1)|\bpypi\b|\bgithub\.com\b|(?<![\w.])/(?:root|home)/", re.I)


def said(path, line, what):
    print(f"{path}:{line}: {what}")


def imported(tree):
    """The names that a file's imports bind, with their lines; what is imported only to be passed on is not meant."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
            for alias in node.names:
                if alias.name not in ("*", alias.asname):
                    yield (alias.asname or alias.name).partition(".")[0], node.lineno


def used(tree):
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    # Types in quotes, and what `__all__` lists.
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(re.findall(r"\w+", node.value) if len(node.value) < 200 else ())
    return names


def check_source(path, text):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        said(path, error.lineno, f"is no Python: {error.msg}")
        return
    known = used(tree)
    for name, line in imported(tree):
        if name not in known and path.name != "__init__.py":
            said(path, line, f"imports {name}, which it does not use")
    if ast.get_docstring(tree) is None:
        said(path, 1, "does not say what it is for: a docstring at the top does")


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS:
            said(path, number, f"has {len(line)} columns, {COLUMNS} are allowed")
        if line != line.rstrip() or (path.suffix == ".py" and "\t" in line):
            said(path, number, "has a tab, or a blank at the end")
        if HOSTS.search(line):
            said(path, number, "names a host, or a place on one machine")


def main():
    here = pathlib.Path("python")
    package = 0
    for path in sorted(p for p in here.rglob("*") if p.is_file() and not BUILT.intersection(p.parts)):
        if path.suffix in (".py", ".sh", ".toml", ".txt"):
            text = path.read_text()
            check_text(path, text)
            if path.suffix == ".py":
                check_source(path, text)
                lines = text.count("\n")
                if path.parent == here / "breccia":
                    package += lines
                    if lines > FILE_LINES:
                        said(path, lines, f"has more than {FILE_LINES} lines")
    if package > PACKAGE_LINES:
        said(here / "breccia", 1, f"has {package} lines of Python, {PACKAGE_LINES} are allowed")


main()
