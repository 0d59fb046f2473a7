"""The rules for python/ that need no installed package; `make python-test` has types and names (mypy, pyflakes).

Prints `file:line: what is wrong`, one fault a line.
"""
import ast
import io
import pathlib
import re
import sys
import tokenize

CODE_LINES = 3300  # of python/breccia/*.py together, without blank lines, comments and docstrings
FILE_LINES = 600
COLUMNS = 120
# Modules whose objects keep the object that made them, of a module above: a name for annotations alone.
MADE_BY = {("array", "session"), ("session", "repository")}
BUILT = {"build", "csource", "dist", "libexec", "_made", "__pycache__"}

# Addresses of machines, and places that are on one machine alone.
HOSTS = re.compile(r"https?://(?!example\.|localhost|127\.0\.0\.1|www\.w3\.org/)|\bpypi\b|\bgithub\.com\b|(?<![\w.])/(?:root|home)/", re.I)


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


def code_lines(tree, text):
    """How many lines have code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
                              tokenize.ENDMARKER):
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def check_source(path, text):
    """How many lines of code it has."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        said(path, error.lineno, f"is no Python: {error.msg}")
        return 0
    known = used(tree)
    for name, line in imported(tree):
        if name not in known and path.name != "__init__.py":
            said(path, line, f"imports {name}, which it does not use")
    if ast.get_docstring(tree) is None:
        said(path, 1, "does not say what it is for: a docstring at the top does")
    return code_lines(tree, text)


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS:
            said(path, number, f"has {len(line)} columns, {COLUMNS} are allowed")
        if line != line.rstrip() or (path.suffix == ".py" and "\t" in line):
            said(path, number, "has a tab, or a blank at the end")
        if HOSTS.search(line):
            said(path, number, "names a host, or a place on one machine")


def own_imports(node):
    """The modules of the package that an import statement names."""
    if not isinstance(node, ast.ImportFrom) or node.level != 1:
        return []
    return [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]


def outside_imports(tree):
    """The packages that the import of a module needs, beside its own package."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def is_typing_block(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def reaches(needs, start, goal):
    """Returns whether a module imports another one, itself or through the modules that it imports."""
    found, due = set(), [start]
    while due:
        name = due.pop()
        if name == goal:
            return True
        if name not in found:
            found.add(name)
            due += [to for to, _ in needs.get(name, [])]
    return False


def check_imports(trees):
    """Imports of the package's own modules point one way. A function imports such a module only if that module needs
    a package that may be missing. Imports for annotations alone point the same way, except those of MADE_BY."""
    optional = {name for name, (_, tree) in trees.items()
                if any(p not in sys.stdlib_module_names and p != "numpy" for p in outside_imports(tree))}
    needs = {name: [(to, node.lineno) for node in tree.body for to in own_imports(node)]
             for name, (_, tree) in trees.items()}
    for name, (path, tree) in trees.items():
        top = {id(node) for node in tree.body}
        typing = {id(inner) for node in tree.body if is_typing_block(node) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            for to in own_imports(node):
                if id(node) in top:
                    if reaches(needs, to, name):
                        said(path, node.lineno, f"imports {to}, which imports {name}")
                elif id(node) in typing:
                    if (name, to) not in MADE_BY and to not in optional and reaches(needs, to, name):
                        said(path, node.lineno, f"names {to} for types, which imports {name}")
                elif to not in optional:
                    said(path, node.lineno, f"imports {to} within a function: import it at the top")


def main():
    here = pathlib.Path("python")
    package, trees = 0, {}
    for path in sorted(p for p in here.rglob("*") if p.is_file() and not BUILT.intersection(p.parts)):
        if path.suffix in (".py", ".sh", ".toml", ".txt"):
            text = path.read_text()
            check_text(path, text)
            if path.suffix == ".py":
                code, lines = check_source(path, text), text.count("\n")
                if path.parent == here / "breccia":
                    package += code
                    if code:
                        trees[path.stem] = path, ast.parse(text)
                    if lines > FILE_LINES:
                        said(path, lines, f"has more than {FILE_LINES} lines")
    check_imports(trees)
    if package > CODE_LINES:
        said(here / "breccia", 1, f"has {package} lines of code, {CODE_LINES} are allowed")


main()
