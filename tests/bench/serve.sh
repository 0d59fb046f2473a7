#!/bin/sh
# serve.sh BUILD: chunks of 4 KiB, 64 KiB and 1 MiB over HTTP, from `breccia serve` and from nginx on the exported
# directory, with 1, 16 and 64 connections of wrk: requests a second, and the time that 99 of 100 stay under. Then
# the same while a bulk writer fills the file. Exit 77: nginx or wrk is not here.
# BENCH_SECONDS: for each measurement (3). BENCH_SIZES, BENCH_CONNECTIONS: which. BENCH_WRITER empty: no writer; BENCH_NGINX empty: nothing but a writer.
set -eu

build=$(cd "$1" && pwd)
PATH=$build:$PATH:/usr/sbin
seconds=${BENCH_SECONDS:-3}
sizes=${BENCH_SIZES:-4096 65536 1048576}
connections=${BENCH_CONNECTIONS:-1 16 64}
for tool in nginx wrk python3; do
    command -v "$tool" >/dev/null || { echo "serve: there is no $tool" >&2; exit 77; }
done
[ -x "$build/libexec/breccia/serve" ] || { echo 'serve: this build has no server' >&2; exit 77; }
work=$(mktemp -d)
server=
web=
trap 'kill $server $web 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

# ---- the data: bytes that no codec shortens, in chunks that are stored as they are ----

breccia init a.brc --quiet
for size in $sizes; do
    n=$((size < 65536 ? 4000 : size < 1048576 ? 1000 : 160))
    head -c $((n * size)) /dev/urandom >raw
    breccia create a.brc "/s$size" --shape $((n * size)) --dtype uint8 --chunks "$size" --compress none --quiet
    breccia write a.brc "/s$size" --from - --quiet <raw
    rm raw
    echo "$n" >"n$size"
done
breccia create a.brc /bulk --shape 268435456 --dtype uint8 --chunks 1048576 --compress none --quiet
breccia commit a.brc -m one --quiet
breccia export a.brc / web --quiet
commit=$(breccia log a.brc -n 1 --json | sed -n 's/.*"id": *"\([0-9a-f]*\)".*/\1/p' | head -n 1)

# ---- the servers ----

mkdir logs
cat >nginx.conf <<C
worker_processes auto;
pid $work/nginx.pid;
error_log $work/logs/error.log;
daemon off;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    client_body_temp_path $work/logs; proxy_temp_path $work/logs; fastcgi_temp_path $work/logs;
    uwsgi_temp_path $work/logs; scgi_temp_path $work/logs;
    server { listen 127.0.0.1:$((port = 20000 + $$ % 20000)); root $work/web; }
}
C
chmod 755 "$work"
nginx -p "$work" -c "$work/nginx.conf" -g "user $(id -un);" 2>logs/out &
web=$!
breccia serve a.brc >url 2>logs/serve &
server=$!
while [ ! -s url ]; do sleep 0.1; done
sleep 0.3
cat >any.lua <<'L'
-- Chunks of an array, in any order.
local n, base = tonumber(os.getenv("CHUNKS")), os.getenv("BASE")
request = function() return wrk.format("GET", base .. math.random(0, n - 1)) end
done = function(summary, latency, requests)
    local wrong = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
    print(string.format("RESULT %.1f %.3f %d", summary.requests / summary.duration * 1e6,
        latency:percentile(99) / 1000, wrong))
end
L

# measure URL-OF-ARRAY CHUNKS CONNECTIONS: requests a second, the 99th percentile in ms, failures.
measure() {
    host=$(echo "$1" | sed 's|\(http://[^/]*\)/.*|\1|')
    CHUNKS=$2 BASE=$(echo "$1" | sed 's|http://[^/]*||') \
        wrk -t $(($3 < 2 ? 1 : 2)) -c "$3" -d "${seconds}s" -s any.lua "$host" | sed -n 's/^RESULT //p'
}

if [ -n "${BENCH_NGINX-1}" ]; then
printf '%-10s %-6s %12s %10s %12s %10s %7s\n' bytes conns serve/s 'p99 ms' nginx/s 'p99 ms' ratio
for size in $sizes; do
    n=$(cat "n$size")
    for c in $connections; do
        ours=$(measure "$(cat url)$commit/a.zarr/s$size/c/" "$n" "$c")
        theirs=$(measure "http://127.0.0.1:$port/s$size/c/" "$n" "$c")
        echo "$size $c $ours $theirs" | awk '{ printf "%-10d %-6d %12.0f %10.2f %12.0f %10.2f %7.2f%s\n", $1, $2, $3, $4, $6, $7,
            $3 / $6, ($5 + $8 > 0 ? "  failures: " $5 " " $8 : "") }'
    done
done
fi
[ -n "${BENCH_WRITER-1}" ] || exit 0
for i in 1 2; do head -c 268435456 /dev/zero | tr '\0' "$i" >"raw$i"; done
(i=1; while :; do
    breccia write a.brc /bulk --from - --quiet <"raw$i" && breccia commit a.brc -m more --quiet || exit
    i=$((3 - i))
done) &
writer=$!
for size in $sizes; do
    for rev in main $commit; do
        echo "$size $(measure "$(cat url)$rev/a.zarr/s$size/c/" "$(cat "n$size")" 16)" |
            awk -v rev="${rev%"${rev#????}"}" '{ printf "beside a writer, 16 connections, %s: %d bytes %.0f/s p99 %.2f ms, failures %d\n", rev, $1, $2, $3, $4 }'
    done
done
kill "$writer"
wait "$writer" 2>/dev/null || :
