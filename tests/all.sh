#!/bin/sh
# all.sh RUNNER COMMAND: runs the C tests, then the command line's (tests/cli/run),
# and prints one total of both as the last line. TEST=NAME keeps one suite of the C
# tests, TEST=cli the command line's. WRAP is put before both programs (valgrind,
# setarch).
set -u

runner=$1
command=$2
wrap=${WRAP:-}
only=${TEST:-}
passed=0
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Shows a program's output as it comes, keeps it in $work/log, its status in $status.
show() {
    { "$@"; echo $? >"$work/status"; } 2>&1 | tee "$work/log"
    status=$(cat "$work/status")
}

# Adds up; a failing status without a failed test counts as one.
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    if [ "$status" -ne 0 ] && [ "$2" -eq 0 ]; then
        echo "tests: exit status $status"
        failed=$((failed + 1))
    fi
}

if [ "$only" != cli ]; then
    # shellcheck disable=SC2086
    show $wrap "$runner" $only
    # "100%: Checks: 12, Failures: 0, Errors: 0"
    count $(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' \
        "$work/log" | awk '{ n = $1 - $2 - $3; f = $2 + $3 } END { print n + 0, f + 0 }')
fi

if [ -z "$only" ] || [ "$only" = cli ]; then
    if [ -n "$wrap" ]; then
        printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$wrap" "$(cd "$(dirname "$command")" && pwd)/breccia" \
            >"$work/breccia"
        chmod +x "$work/breccia"
        command=$work/breccia
    fi
    if [ -f tests/cli/run ]; then
        show tests/cli/run "$command"
        # "12 passed, 0 failed", whatever else the line says
        count $(awk 'match($0, /[0-9]+ passed, [0-9]+ failed/) {
            split(substr($0, RSTART, RLENGTH), w, " "); n = w[1]; f = w[3]
        } END { print n + 0, f + 0 }' "$work/log")
    else
        echo 'tests: there is no tests/cli/run'
    fi
fi

if [ $((passed + failed)) -eq 0 ]; then
    echo 'tests: nothing ran'
    failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
