#!/bin/sh
# run.sh COMMAND [OPTIONS OF run.py]: the conformance table over the arrays of other
# implementations in BRECCIA_TEST_CONFORMANCE, where that is set, or ../shared/conformance
# from the project's root. Says so and does nothing where there are none.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=${BRECCIA_TEST_CONFORMANCE:-$here/../../../shared/conformance}
command=$1
shift
if [ ! -f "$folder/INDEX.jsonl" ]; then
    echo "conformance: SKIPPED, there is no $folder/INDEX.jsonl (BRECCIA_TEST_CONFORMANCE names the folder)"
    exit 0
fi
if ! command -v python3 >/dev/null; then
    echo 'conformance: SKIPPED, there is no python3'
    exit 0
fi
exec python3 -B "$here/run.py" "$command" "$folder" "$@"
