#!/bin/sh
# watch.sh JOB SECONDS: if the process JOB is still there after so many seconds, shows where the
# processes with BRC_TEST_TAG=JOB in their environment are (with gdb, if it is installed), and kills
# them. A test that waits for ever then fails with the place, and the tests after it run.
set -u
job=$1 left=$2

while [ "$left" -gt 0 ]; do
    sleep 2
    kill -0 "$job" 2>/dev/null || exit 0
    left=$((left - 2))
done

tagged() {
    grep -lsz "^BRC_TEST_TAG=$job\$" /proc/[0-9]*/environ | cut -d / -f 3
}

echo "watch: did not end within $2 seconds"
for process in $(tagged); do
    program=$(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline") || continue
    echo "== $process: $program"
    grep -E '^(State|PPid|Threads)' "/proc/$process/status"
    ! command -v gdb >/dev/null ||
        timeout 60 gdb -p "$process" -batch -ex 'thread apply all backtrace 30' 2>/dev/null </dev/null
done
for process in $(tagged); do
    kill -9 "$process" 2>/dev/null
done
