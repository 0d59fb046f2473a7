# statements.awk FILE...: every SQL statement in these C sources as an item of the C
# array `sql_statements`, for a test that looks at SQLite's plans. A statement is one
# literal (docs/HACKING.md), in pieces perhaps, with named pieces between.
BEGIN { print "/* From the sources by tests/kit/statements.awk. */" }

/^#define [A-Z_]+ / {
    while ($0 ~ /\\$/) { # it goes on in the next line
        head = substr($0, 1, length($0) - 1)
        getline
        $0 = head $0
    }
}
/^#define [A-Z_]+ +["A-Z]/ { print; next }
/^#/ { next }
{ text = text $0 "\n" }

function is_sql(s) { return s ~ /^"(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH) / }

END {
    print "static const char *const sql_statements[] = {"
    while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\/|\/\/[^\n]*|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|[A-Za-z_][A-Za-z_0-9]*|[^ \n]/)) {
        token = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (token ~ /^\/[*\/]/)
            continue
        if (token ~ /^"/ || (pieces != "" && token ~ /^[A-Z_]+$/)) {
            pieces = pieces (pieces == "" ? "" : " ") token
            continue
        }
        if (is_sql(pieces))
            printf "    %s,\n", pieces
        pieces = ""
    }
    print "};"
}
