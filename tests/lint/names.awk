# Every function of src/, codecs/ and cli/ has a name of its own, static ones too:
# a name then leads to one place. What other files can see begins with brc_ (but
# for cli/, and src/serve/, where it is serve_), what they cannot see does not.
#
# Every program has its main().
#
# A definition is a `{` outside all braces after text that ends in `)`.

function fault(line, text) { printf "%s:%d: %s\n", FILENAME, line, text }

function definition(text, line,    name, is_static)
{
    gsub(/__attribute__ *\(\(.*\)\)/, "", text)
    gsub(/BRC_[A-Z_]+ *(\([^)]*\))?/, "", text)
    if (text !~ /\)[ \t]*$/ || text ~ /=/ || !match(text, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/))
        return
    name = substr(text, RSTART, RLENGTH - 1)
    sub(/[ \t]+$/, "", name)
    is_static = text ~ /(^|[ \t])static[ \t]/
    if (name != "main" && name in where && file_of[name] != FILENAME)
        fault(line, "the name " name "() is taken by " where[name])
    where[name] = FILENAME ":" line
    file_of[name] = FILENAME
    if (FILENAME ~ /^cli\// || name == "main")
        return
    if (FILENAME ~ /^src\/serve\//) {
        if (is_static == (name ~ /^serve_/))
            fault(line, name "(): what other files of the server see is named serve_..., and nothing else")
        return
    }
    if (!is_static && name !~ /^brc_/)
        fault(line, name "() is neither static nor named brc_...")
    if (is_static && name ~ /^brc_/ && FILENAME ~ /\.c$/)
        fault(line, name "() is static: it goes without brc_")
}

FNR == 1 { depth = 0; text = ""; directive = 0 }

{
    rest = strip($0)
    if (directive || rest ~ /^[ \t]*#/) {
        directive = rest ~ /\\$/
        next
    }
    while (match(rest, /[{};]/)) {
        mark = substr(rest, RSTART, 1)
        if (depth == 0 && text ~ /^[ \t]*$/)
            begun = FNR
        if (depth == 0)
            text = text " " substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + 1)
        if (mark == "{") {
            if (text ~ /^[ \t]*extern ""[ \t]*$/ && depth == 0) {
                text = ""
                continue
            }
            if (depth == 0)
                definition(text, begun)
            depth++
            text = ""
        } else {
            if (mark == "}" && depth > 0)
                depth--
            if (depth == 0)
                text = ""
        }
    }
    if (depth == 0) {
        if (text ~ /^[ \t]*$/)
            begun = FNR
        text = text " " rest
    }
}
