#!/bin/sh
# all.sh RUNNER COMMAND: runs the C tests, a process a suite, and the command line's (tests/cli/run),
# a process a script, and prints one total of both as the last line. TEST='NAME...' keeps these suites
# of the C tests, TEST=cli the command line's, SKIP=cli all but those. LONG=1 runs what the suites have
# a long form of, LONG_SUITE in suites.h, in that form. JOBS run at once: as many as there are cores
# where it is not set. WRAP is put before both programs (valgrind, setarch). A suite that has not ended
# after LIMIT seconds (1800 where it is not set; WRAP: no limit) fails, and shows where its processes are.
#
# A test that writes without end must not take the machine, and the tests after it, with it: no file
# grows beyond 4 GiB (8388608 blocks of 512 bytes), and what a killed suite left is removed.
set -u
ulimit -f 8388608

runner=$1
command=$2
only=${TEST:-}
limit=${LIMIT:-1800}
jobs=${JOBS:-$(nproc)}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

if [ -n "${WRAP:-}" ]; then
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$WRAP" "$(cd "$(dirname "$command")" && pwd)/breccia" \
        >"$work/breccia"
    chmod +x "$work/breccia"
    command=$work/breccia
fi

# One line a job: "suite NAME" or "cli NAME".
list() {
    for name in $only; do
        [ "$name" = cli ] || echo "suite $name"
    done
    if [ -n "${LONG:-}" ]; then
        [ -n "$only" ] || sed -n 's/^LONG_SUITE(\(.*\))$/suite \1/p' "$here/suites.h"
        return
    fi
    [ -n "$only" ] || sed -n 's/^[A-Z_]*SUITE(\(.*\))$/suite \1/p' "$here/suites.h"
    [ "${SKIP:-}" != cli ] || return 0
    case " $only " in
    '  ' | *' cli '*) (cd "$here/cli" && for script in *.sh; do echo "cli ${script%.sh}"; done) ;;
    esac
}

# Runs one job, keeps its output, and shows what went wrong, or that it ended and how many seconds
# of processor time it took. The counts of "100%: Checks: 12, Failures: 0, Errors: 0" and "1 passed,
# 0 failed" go to NAME.count; a failing status without a failed test counts as one.
cat >"$work/job" <<'JOB'
kind=$1 name=$2 out=$work/$1-$2
if [ "$kind" = suite ]; then
    : >"$out.log"
    [ -n "${WRAP:-}" ] || sh "$here/watch.sh" $$ "$limit" >>"$out.log" 2>&1 &
    # shellcheck disable=SC2086
    BRC_TEST_TAG=$$ ${WRAP:-} "$runner" "$name" >>"$out.log" 2>&1
    status=$?
    rm -rf "${TMPDIR:-/tmp}/breccia-test-$$-"* /dev/shm/breccia-test-$$-*
    set -- $(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' \
        "$out.log" | awk '{ n = $1 - $2 - $3; f = $2 + $3 } END { print n + 0, f + 0 }')
else
    "$here/cli/run" "$command" "$name" >"$out.log" 2>&1
    status=$?
    set -- $(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$out.log" | tail -n 1)
fi
[ $# -eq 2 ] || set -- 0 0
times >"$out.times" # of the children: user and system, "1m2.50s 0m0.25s"
seconds=$(awk 'NR == 2 {
    for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] }
    printf "%.1f", sum }' "$out.times")
[ "$status" -eq 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1
echo "$1 $2" >"$out.count"
if [ "$2" -gt 0 ]; then
    echo "$kind $name: $1 passed, $2 FAILED, exit status $status" >"$out.failed"
    cat "$out.failed" "$out.log"
    { grep -E ':[FE]:|FAILED|ERROR: |runtime error' "$out.log" || tail -n 5 "$out.log"; } |
        head -n 10 | sed 's/^/    /' >>"$out.failed"
else
    echo "$kind $name: $1 passed, $seconds s$(grep -o 'skipped: .*' "$out.log" | sed 's/^/, /')"
fi >"$out.said"
cat "$out.said"
JOB

if [ -n "${LONG:-}" ]; then
    export BRECCIA_LONG=1
fi
export work runner command here limit
list >"$work/jobs"
xargs -P "$jobs" -L 1 sh "$work/job" <"$work/jobs"

set -- $(cat "$work"/*.count 2>/dev/null | awk '{ n += $1; f += $2 } END { print n + 0, f + 0 }')
passed=$1
failed=$2
missing=$(($(wc -l <"$work/jobs") - $(ls "$work"/*.count 2>/dev/null | wc -l)))
if [ "$missing" -gt 0 ]; then
    echo "tests: $missing did not end"
    failed=$((failed + missing))
fi
skipped=$(cat "$work"/*.said 2>/dev/null | grep -c 'skipped: ')
[ "$skipped" -eq 0 ] || echo "tests: $skipped skipped"
# Once more at the end, for who sees only the last lines of a long log.
cat "$work"/*.failed 2>/dev/null
if [ $((passed + failed)) -eq 0 ]; then
    echo 'tests: nothing ran'
    failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
