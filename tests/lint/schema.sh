#!/bin/sh
# What is embedded is what schema/ holds, byte for byte.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for sql in schema/*.sql; do
    [ -f "$sql" ] || continue
    name=$(basename "$sql" .sql)
    printf '#include <stdio.h>\n#include "build/gen/%s.sql.h"\n' "$name" >"$work/print.c"
    printf 'int main(void) { return fputs(brc_sql_%s, stdout) < 0; }\n' \
        "$(echo "$name" | tr - _)" >>"$work/print.c"
    "${CC:-cc}" -std=c17 -I. -o "$work/print" "$work/print.c" 2>/dev/null &&
        "$work/print" | cmp -s - "$sql" ||
        echo "$sql:1: build/gen/$name.sql.h does not hold this text"
done
