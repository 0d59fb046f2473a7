#!/bin/sh
# run.sh BUILD: what `breccia serve` serves, read by other programs (clients.py). They are fetched into BUILD/serve-clients
# with pip and npm; GDAL (gdal-bin), rclone, Chromium with neuroglancer, nginx, Caddy and slowhttptest take part where
# they are installed.
# Exit 77: something cannot be fetched, or this build has no server.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
tools=$build/serve-clients
cannot() {
    echo "serve-test: $1" >&2
    exit 77
}

[ -x "$build/libexec/breccia/serve" ] || cannot 'this build has no server: install libmicrohttpd-dev'
mkdir -p "$tools"
if ! cmp -s "$here/requirements.txt" "$tools/venv/made-from"; then
    command -v python3 >/dev/null || cannot 'there is no python3'
    rm -rf "$tools/venv"
    python3 -m venv "$tools/venv" || cannot 'python3 cannot make a virtual environment'
    "$tools/venv/bin/python" -m pip -q --disable-pip-version-check install -r "$here/requirements.txt" ||
        cannot 'pip could not fetch the clients'
    cp "$here/requirements.txt" "$tools/venv/made-from"
fi
if ! cmp -s "$here/package.json" "$tools/package.json" || ! [ -d "$tools/node_modules/neuroglancer" ]; then
    command -v npm >/dev/null || cannot 'there is no npm'
    cp "$here/package.json" "$tools/package.json"
    mkdir -p "$tools/ikonate"
    echo '{ "name": "ikonate", "version": "1.0.0" }' >"$tools/ikonate/package.json"
    (cd "$tools" && npm install --silent --no-audit --no-fund) || cannot 'npm could not fetch zarrita and neuroglancer'
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" && BRECCIA=$build/breccia "$tools/venv/bin/python" -B "$here/clients.py" "$tools"
