#!/bin/sh
# run.sh BUILD [SECONDS]: the backend s3 on real servers that this script starts on the loopback interface,
# through proxy.py: moto for what the protocol says, versitygw for what happens at once. BUILD has breccia and
# tests/run. The servers are fetched into BUILD/s3 with pip and go.
# Exit 77: a server cannot be fetched or started. S3_SEED, S3_WRITERS; S3_SUITES: the suites that run there.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
tools=$build/s3
seed=${S3_SEED:-1}
writers=${S3_WRITERS:-8}
gateway=v1.8.0
work=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null; wait; rm -rf "$work"' EXIT
PATH=$build:$PATH
failed=0

peers=s3
. "$here/../peers.sh"
fail() {
    echo "s3: $1" >&2
    failed=1
}

# ---- the servers ----------------------------------------------------------------

mkdir -p "$tools"
python_peers "$tools/venv" "$here/requirements.txt"
if ! [ -x "$tools/$gateway/versitygw" ] && command -v go >/dev/null; then
    GOBIN=$tools/$gateway GOFLAGS=-modcacherw go install "github.com/versity/versitygw/cmd/versitygw@$gateway" ||
        echo 's3: go could not build versitygw' >&2
fi

# A port that is free now.
port() {
    "$tools/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# await PORT NAME: until it takes connections.
await() {
    for _ in $(seq 100); do
        "$tools/venv/bin/python" -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null && return
        sleep 0.2
    done
    cat "$work/$2.log" >&2
    cannot "$2 does not start"
}
# proxied UPSTREAM OPTIONS: sets `endpoint` and `proxy` to those of a proxy before it.
proxied() {
    at=$(port)
    "$tools/venv/bin/python" -B "$here/proxy.py" "$at" "$@" >"$work/proxy.log" 2>&1 &
    proxy=$!
    pids="$pids $proxy"
    await "$at" proxy
    endpoint=http://127.0.0.1:$at
}

export AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY=secret-of-tester HOME="$work"
unset AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN AWS_PROFILE 2>/dev/null || :
backend() {
    printf '{"name":"s3","configuration":{"endpoint":"%s","bucket":"box","prefix":"%s"}}' "$endpoint" "$1"
}

# ---- what must hold -------------------------------------------------------------

# The kit of backends, and one repository from its creation to a collection of garbage.
logic() {
    export AWS_ENDPOINT_URL=$endpoint BRECCIA_TEST_S3=$endpoint
    CK_RUN_CASE='a real server' "$build/tests/run" s3 >"$work/kit.log" 2>&1 ||
        { cat "$work/kit.log" >&2; fail "$1: the kit of backends finds something"; }
    file=$work/logic.brc
    rm -f "$file"
    breccia init -q "$file" &&
        breccia create -q "$file" /a --shape 300,300 --chunks 50,50 --dtype int32 --backend "$(backend logic)" &&
        breccia write -q "$file" /a --value 7 && breccia commit -q "$file" -m one &&
        breccia write -q "$file" /a 0:100 --value 8 && breccia commit -q "$file" -m two &&
        breccia gc -q "$file" && breccia fsck -q "$file" || fail "$1: a command fails"
    [ "$(breccia read "$file" /a 99:101,299 --format raw | od -An -td4 | tr -s ' ')" = ' 8 7' ] ||
        fail "$1: the elements are not those that were written"
    AWS_ENDPOINT_URL=http://127.0.0.1:9 breccia read "$file" /a 0,0 >"$work/refused" 2>&1 && fail "$1: any server is asked"
    grep -q 'nothing is sent before you allow it' "$work/refused" || fail "$1: $(cat "$work/refused")"
    rm -f "$work"/cache.brc*
    BRECCIA_CACHE=$work/cache.brc breccia read -q "$file" /a 0,0 >"$work/first" &&
        AWS_ENDPOINT_URL=http://127.0.0.1:9 BRECCIA_CACHE=$work/cache.brc breccia read -q "$file" /a 0,0 >"$work/second" &&
        cmp -s "$work/first" "$work/second" || fail "$1: what was read is not in the cache"
    breccia repack -q "$file" && breccia read -q "$file" /a 0,0 | cmp -s - "$work/first" || fail "$1: repack changes something"
}

# Suites of the whole library whose chunks lie in the bucket, as with make test-backend.
suites() {
    for suite in ${S3_SUITES:-hangar pick undo scenarios children children_join rebase expunge}; do
        BRECCIA_BACKEND=$(backend suites) "$build/tests/run" "$suite" >"$work/suite.log" 2>&1 ||
            { grep ':[EF]:' "$work/suite.log" >&2; fail "$1: the suite $suite fails"; }
    done
}

# The server keeps what the backend relies on, which the command tries before anything lies there.
promises() {
    export AWS_ENDPOINT_URL=$endpoint
    file=$work/promises.brc
    rm -f "$file"
    breccia init -q "$file" &&
        breccia create -q "$file" /a --shape 4 --dtype int32 --backend "$(backend promises)" || fail "$1: a command fails"
    breccia backend "$file" /a --check >"$work/promises" 2>&1 || fail "$1: $(cat "$work/promises")"
    [ "$(grep -c '^  holds: ' "$work/promises")" = 7 ] || fail "$1: $(cat "$work/promises")"
}

# Many processes commit to one file, each to a row of chunks of its own, while another one collects garbage.
races() {
    export AWS_ENDPOINT_URL=$endpoint
    file=$work/races.brc
    rm -f "$file"
    breccia init -q "$file" &&
        breccia create -q "$file" /a --shape "$writers",400 --chunks 1,100 --dtype int32 --backend "$(backend races)" &&
        breccia commit -q "$file" -m empty || fail "$1: a command fails"
    for w in $(seq 0 $((writers - 1))); do
        for k in 1 2 3 4; do
            breccia write -q "$file" /a "$w" --value $((w * 10 + k)) --wait 120 &&
                breccia commit -q "$file" -m "$w $k" --wait 120 2>"$work/commit.$w"
            # another writer's commit may have taken this one's change along
            grep -v 'nothing to commit' "$work/commit.$w" >&2
        done &
        eval "writer_$w=$!"
    done
    for _ in 1 2 3; do
        breccia gc -q "$file" --wait 120 || fail "$1: gc fails"
    done
    for w in $(seq 0 $((writers - 1))); do
        eval "wait \$writer_$w"
    done
    for w in $(seq 0 $((writers - 1))); do
        got=$(breccia read "$file" /a "$w,0:400:399" --format raw | od -An -td4 | tr -s ' ')
        [ "$got" = " $((w * 10 + 4)) $((w * 10 + 4))" ] || fail "$1: writer $w wrote $((w * 10 + 4)), and$got is there"
    done
    breccia fsck -q "$file" || fail "$1: fsck finds a fault"
}

# ---- one after the other --------------------------------------------------------

moto=$(port)
"$tools/venv/bin/moto_server" -H 127.0.0.1 -p "$moto" >"$work/moto.log" 2>&1 &
pids="$pids $!"
await "$moto" moto
"$tools/venv/bin/python" -c "import urllib.request as u; u.urlopen(u.Request('http://127.0.0.1:$moto/box', method='PUT'))"
endpoint=http://127.0.0.1:$moto
promises moto
logic moto
proxied "$moto" --rate 0.2 --seed "$seed"
logic 'moto through a bad network'
kill "$proxy"; wait "$proxy"; cat "$work/proxy.log"
echo "s3: moto: done"

if ! [ -x "$tools/$gateway/versitygw" ]; then
    [ $failed = 0 ] && cannot 'go is missing, so versitygw was not tried'
    exit 1
fi
vgw=$(port)
mkdir -p "$work/vgw/box"
"$tools/$gateway/versitygw" --access tester --secret secret-of-tester --port "127.0.0.1:$vgw" posix "$work/vgw" >"$work/vgw.log" 2>&1 &
pids="$pids $!"
await "$vgw" vgw
endpoint=http://127.0.0.1:$vgw
promises versitygw
logic versitygw
suites versitygw
races versitygw
proxied "$vgw" --rate 0.1 --seed "$seed" --delay 0.02
races 'versitygw through a bad network'
AWS_SECRET_ACCESS_KEY=wrong breccia read "$work/races.brc" /a 0 >"$work/wrong" 2>&1
grep -q 'check both' "$work/wrong" || fail "versitygw: a wrong secret: $(cat "$work/wrong")"
kill "$proxy"; wait "$proxy"; cat "$work/proxy.log"
[ $failed = 0 ] && echo 's3: versitygw: done'
exit $failed
