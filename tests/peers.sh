# Read by the scripts that fetch programs of others for a test: $peers says in messages for which.

cannot() {
    echo "$peers: $1" >&2
    exit 77
}

# python_peers FOLDER REQUIREMENTS: a virtual environment, made anew where the requirements have changed.
python_peers() {
    ! cmp -s "$2" "$1/made-from" || return 0
    command -v python3 >/dev/null || cannot 'there is no python3'
    rm -rf "$1"
    python3 -m venv "$1" || cannot 'python3 cannot make a virtual environment'
    "$1/bin/python" -m pip -q --disable-pip-version-check install -r "$2" || cannot "pip could not fetch what $2 names"
    cp "$2" "$1/made-from"
}

# npm_peers FOLDER PACKAGE_JSON [LOCK]: FOLDER/node_modules, made anew where the last of these files has changed.
npm_peers() {
    last=${3:-$2}
    ! cmp -s "$last" "$1/made-from" || return 0
    command -v npm >/dev/null || cannot 'there is no npm'
    rm -rf "$1/node_modules"
    mkdir -p "$1"
    cp "$2" ${3:+"$3"} "$1"
    how=install
    [ -z "${3:-}" ] || how=ci
    (cd "$1" && npm $how --silent --no-audit --no-fund) || cannot "npm could not fetch what $2 names"
    cp "$last" "$1/made-from"
}
