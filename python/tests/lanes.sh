# Read by the scripts that make virtual environments: $work is where.

# environment NAME PYTHON REQUIREMENTS: the virtual environment $work/NAME, made anew where it was made from
# other requirements or by another Python. The lane torch sees what PYTHON has, where that is torch.
environment() {
    made=$work/$1/made-from
    wants=$(mktemp) || return 1
    "$2" -c 'import sys; print(sys.version, sys.executable)' >"$wants" || return 1
    cat "$3" >>"$wants"
    ! grep -q '^-r ' "$3" || cat "$(dirname "$3")/requirements-tools.txt" >>"$wants"
    if ! cmp -s "$wants" "$made"; then
        rm -rf "${work:?}/$1"
        shared=''
        [ "$1" = torch ] && "$2" -c 'import torch' 2>/dev/null && shared=--system-site-packages
        # shellcheck disable=SC2086
        "$2" -m venv $shared "$work/$1" &&
            "$work/$1/bin/python" -m pip -q --disable-pip-version-check install -r "$3" || {
                echo "the environment $1 could not be made" >&2
                rm -f "$wants"
                return 1
            }
        cp "$wants" "$made"
    fi
    rm -f "$wants"
}

# The Pythons from 3.12 on that PYTHONS names or that are on PATH, beside python3 itself. A name may be
# there without a Python behind it.
other_pythons() {
    own=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    for candidate in ${PYTHONS:-python3.12 python3.13 python3.14}; do
        "$candidate" -c "import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 12) or '%d.%d' % sys.version_info[:2] == '$own')" >/dev/null 2>&1 &&
            command -v "$candidate"
    done
    return 0
}
