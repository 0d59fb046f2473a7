#!/bin/sh
# run.sh BUILD [NAME...]: the page of `breccia serve` in Debian's Chromium, by pointer and by keys (page_test.py).
# What it takes of others is fetched into BUILD/page with pip and npm. Pictures of the page go into BUILD/page/shots,
# and into the folder SHOTS if that is set. CHROMIUM: another browser.
# Exit 77: there is no Chromium, or something cannot be fetched.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
tools=$build/page
CHROMIUM=${CHROMIUM:-$(command -v chromium || echo /usr/bin/chromium)}
export CHROMIUM

cannot() {
    echo "page: $1" >&2
    exit 77
}

[ -x "$build/libexec/breccia/serve" ] || cannot 'this build has no server: install libmicrohttpd-dev'
[ -x "$CHROMIUM" ] || cannot 'there is no Chromium: install chromium'
mkdir -p "$tools/shots"
if ! cmp -s "$here/requirements.txt" "$tools/venv/made-from"; then
    command -v python3 >/dev/null || cannot 'there is no python3'
    rm -rf "$tools/venv"
    python3 -m venv "$tools/venv" || cannot 'python3 cannot make a virtual environment'
    "$tools/venv/bin/python" -m pip -q --disable-pip-version-check install -r "$here/requirements.txt" ||
        cannot 'pip could not fetch playwright'
    cp "$here/requirements.txt" "$tools/venv/made-from"
fi
if ! cmp -s "$here/package.json" "$tools/package.json" || ! [ -f "$tools/node_modules/axe-core/axe.min.js" ]; then
    command -v npm >/dev/null || cannot 'there is no npm'
    cp "$here/package.json" "$tools/package.json"
    (cd "$tools" && npm install --silent --no-audit --no-fund) || cannot 'npm could not fetch axe-core'
fi
"$tools/venv/bin/python" "$here/page_test.py" "$build/breccia" "$tools/node_modules/axe-core/axe.min.js" \
    "$tools/shots" "$@" || exit 1
[ -z "${SHOTS:-}" ] || cp "$tools"/shots/page-*.png "$SHOTS"
