# public.awk HEADER... FILE.c...: a test calls each function that a public header of src declares,
# and a comment stands above its declaration. One comment may be for declarations that follow each
# other without a blank line.

FILENAME ~ /^src\// && /^BRC_API/ {
    if (match($0, /[a-z_0-9]+\(/)) {
        name = substr($0, RSTART, RLENGTH - 1)
        where[name] = FILENAME ":" FNR
        if (before !~ /\*\/$/ && before !~ /;$/)
            print where[name] ": no comment says what " name "() does"
    }
}
FILENAME ~ /^src\// { if (!/^#define/) before = $0; next }
{
    rest = $0
    while (match(rest, /(^|[^a-z_0-9])brc_[a-z_0-9]+\(/)) {
        name = substr(rest, RSTART, RLENGTH - 1)
        sub(/^[^a-z_0-9]/, "", name)
        called[name] = 1
        rest = substr(rest, RSTART + RLENGTH)
    }
}
END {
    for (name in where)
        if (!(name in called) && name != "brc_plugin_init") # which a plug-in defines
            print where[name] ": no test calls " name "()"
}
