# Checks what the objects really use, by nm: an include tells less, since a public header or
# a declaration by hand leads anywhere.
#
#   layers    an arrow points down (-v order=LAYERS, from the lowest), never up
#   rooms     cli/ uses what breccia.h and breccia_json.h declare and its own; a codec what the public headers
#             declare and codecs/lib/; only src/codec/builtin.c uses a codec; a converter
#             (src/convert/) uses what it may, and nothing uses a converter; the server (src/serve/) is a
#             program like any other, and uses cli/credentials.c besides
#   circles   no file leads back to itself
#   unused    what a file shows to others is used by another one, or by a test
#
# -v standing=FILE lists the faults that still stand; a line of it whose fault is gone is one.
#
# First the public headers, then the tests' sources, last the output of nm -A -g.

BEGIN {
    n = split(order, layer, " ")
    for (i = 1; i <= n; i++)
        rank[layer[i]] = i
}

FILENAME ~ /^src\// {
    if ($1 == "BRC_API" && match($0, /[a-z0-9_]+\(/))
        declared[substr($0, RSTART, RLENGTH - 1)] = FILENAME
    next
}

FILENAME ~ /^tests\// {
    rest = $0
    while (match(rest, /[a-z_][a-z0-9_]*/)) {
        in_tests[substr(rest, RSTART, RLENGTH)] = 1
        rest = substr(rest, RSTART + RLENGTH)
    }
    next
}

{
    file = $1
    sub(/\.o:.*$/, ".c", file)
    if ($(NF - 1) == "U") {
        user[++nuses] = file
        name_used[nuses] = $NF
    } else {
        home[$NF] = file
    }
}

function line_of(file, name,    line, at, found)
{
    while ((getline line < file) > 0) {
        at++
        if (line ~ ("(^|[^A-Za-z0-9_])" name "([^A-Za-z0-9_]|$)")) {
            found = at
            break
        }
    }
    close(file)
    return found ? found : 1
}

function fault(file, name, text) { printf "%s:%d: %s\n", file, line_of(file, name), text }

# "base" for src/base/buf.c, "cli" for cli/cmd/cmd_log.c.
function room_of(file,    part)
{
    split(file, part, "/")
    return part[1] == "src" ? part[2] : part[1]
}

function folder_of(file) { sub(/[^\/]*$/, "", file); return file }

function may_convert(from, to, to_room)
{
    return to_room ~ /^(base|nd|codec)$/ || to ~ /^src\/zarr\/doc\/(meta|grid)[^\/]*$/ ||
           to ~ /^src\/xfer\/tar\// || to ~ /^src\/convert\/lib\// || folder_of(to) == folder_of(from)
}

# Returns what is wrong with this arrow; "" if nothing is.
function wrong(from, to, name,    a, b)
{
    a = room_of(from)
    b = room_of(to)
    if (a == "convert")
        return may_convert(from, to, b) ? "" : "a converter does not use " to
    if (b == "convert")
        return "only converters use " to
    if (a == "serve")
        return b == "serve" || to == "cli/credentials.c" || name in declared ? "" : "a public header must declare what the server uses"
    if (b == "serve")
        return "only the server uses " to
    if (a == "cli")
        return b == "cli" || declared[name] ~ /breccia(_json)?\.h$/ ? "" : "breccia.h does not declare it"
    if (b == "cli")
        return "an arrow points up, to " to
    if (a == "codecs" && b == "codecs")
        return to ~ /^codecs\/lib\// ? "" : "what codecs share is in codecs/lib/, not in " to
    if (a == "codecs")
        return name in declared ? "" : "a public header must declare what a codec uses"
    if (a == "backends" && b != "backends")
        return name in declared ? "" : "a public header must declare what a backend uses"
    if (b == "codecs")
        return from == "src/codec/builtin.c" ? "" : "only src/codec/builtin.c uses codecs"
    return rank[b] > rank[a] ? "an arrow points up, from " a " to " b : ""
}

# Tarjan's strongly connected components; each with more than one file is a circle.
function visit(f,    n, i, to, next_of)
{
    number[f] = low[f] = ++visited
    stack[++depth] = f
    on_stack[f] = 1
    n = split(targets[f], next_of, " ")
    for (i = 1; i <= n; i++) {
        to = next_of[i]
        if (!(to in number))
            visit(to)
        if (on_stack[to] && low[to] < low[f])
            low[f] = low[to]
    }
    if (low[f] != number[f])
        return
    n = 0
    split("", component)
    do {
        to = stack[depth--]
        on_stack[to] = 0
        component[to] = 1
        n++
    } while (to != f)
    if (n > 1)
        circle(component, n)
}

# Does one "circle" of standing.txt have all these files?
function is_listed(files,    i, f, whole)
{
    for (i in listed) {
        if (listed[i] !~ /^circle /)
            continue
        whole = 1
        for (f in files)
            if (!index(listed[i] " ", " " f " "))
                whole = 0
        if (whole) {
            stands[i] = 1
            return 1
        }
    }
    return 0
}

function is_listed_line(line,    i)
{
    for (i in listed)
        if (listed[i] == line)
            return stands[i] = 1
    return 0
}

# The shortest way from the first of the files back to it, breadth first.
function circle(files, n,    f, first, queue, head, tail, came, i, m, next_of, way, start, all)
{
    if (is_listed(files))
        return
    first = all = ""
    for (f in files) {
        all = all " " f
        if (first == "" || f < first)
            first = f
    }
    queue[tail = 1] = first
    for (head = 1; head <= tail && !(first in came); head++) {
        m = split(targets[queue[head]], next_of, " ")
        for (i = 1; i <= m; i++)
            if ((next_of[i] in files) && !(next_of[i] in came)) {
                came[next_of[i]] = queue[head]
                queue[++tail] = next_of[i]
            }
    }
    f = first
    way = ""
    m = 0
    do {
        start = arrow[came[f], f]
        way = " -> " start "() of " f way
        f = came[f]
        m++
    } while (f != first)
    fault(first, start, "a circle: " substr(way, 5) (m < n ? " (and more, all of:" all ")" : ""))
}

END {
    while ((getline line < standing) > 0)
        if (line !~ /^(#|$)/)
            listed[++nlisted] = line
    close(standing)
    for (i = 1; i <= nuses; i++) {
        name = name_used[i]
        from = user[i]
        if (!(name in home) || home[name] == from)
            continue
        used[name] = 1
        text = wrong(from, home[name], name)
        if (text != "" && !is_listed_line("arrow " from " " home[name]))
            fault(from, name, "uses " name "(): " text)
        if (!((from, home[name]) in arrow))
            targets[from] = targets[from] " " home[name]
        arrow[from, home[name]] = name
    }
    for (f in targets)
        if (!(f in number))
            visit(f)
    for (name in home)
        if (!(name in used) && !(name in declared) && !(name in in_tests) && name != "main" &&
            !is_listed_line("unused " name))
            fault(home[name], name, "no other file uses " name "(): make it static or remove it")
    for (i = 1; i <= nlisted; i++)
        if (!stands[i])
            fault(standing, listed[i], "is gone, so its line goes: " listed[i])
}
