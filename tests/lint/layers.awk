# An include points down, never up (-v order=LAYERS, from the lowest). cli/ sees the
# public header alone, codecs/ the plug-ins' header alone, src/convert/ a part of the
# library, and some libraries have one place where they are used. A .c file sees at most
# MOST headers of ours, those that its headers include among them.

BEGIN {
    n = split(order, layer, " ")
    for (i = 1; i <= n; i++)
        rank[layer[i]] = i
    most = 40
    home["sqlite3.h"] = "src/store/"
    home["cJSON.h"] = home["cjson/cJSON.h"] = "src/base/"
    home["xxhash.h"] = "src/base/ src/backends/ src/serve/made.c"
    home["pthread.h"] = "src/base/ src/backends/ src/serve/"
    home["microhttpd.h"] = "src/serve/http.c"
    home["netcdf.h"] = home["hdf5.h"] = home["hdf5_hl.h"] = "src/xfer/ src/convert/"
    home["archive.h"] = home["archive_entry.h"] = "src/xfer/tar/"
    home["zip.h"] = "src/xfer/zip.h"
    home["zlib.h"] = "codecs/ src/xfer/input.c src/backends/s3_http.c cli/png.c"
    home["curl/curl.h"] = "src/backends/s3_http.c"
    home["zstd.h"] = "codecs/ src/codec/delta_frame.c"
    home["blosc.h"] = home["lz4.h"] = home["lzma.h"] = home["bzlib.h"] = "codecs/"
    home["spawn.h"] = "src/serve/serve_main.c src/xfer/foreign/ cli/cmd/cmd_bisect.c cli/pager.c"
    home["seccomp.h"] = "src/convert/lib/"
    home["zfp.h"] = "codecs/zfp.c"
    home["dlfcn.h"] = "src/base/library.c src/codec/plugin_file.c src/convert/hdf5/hdf5_lib.c"
}

function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }

function directory(path) { sub(/[^\/]*$/, "", path); return path }

# "src/tree/" and "../base/buf.h" give "src/base/buf.h".
function resolve(dir, name)
{
    while (substr(name, 1, 3) == "../" && dir != "") {
        name = substr(name, 4)
        sub(/[^\/]*\/$/, "", dir)
    }
    return dir name
}

function layer_of(path,    part)
{
    split(path, part, "/")
    return part[2]
}

function exists(path,    line, status)
{
    status = (getline line < path)
    close(path)
    return status >= 0
}

function is_public(path) { return path ~ /^src\/[^\/]*\.h$/ }

function is_home(places,    n, i, place)
{
    n = split(places, place, " ")
    for (i = 1; i <= n; i++)
        if (index(FILENAME, place[i]) == 1)
            return 1
    return 0
}

# The same list is in symbols.awk; protocol.h is what host and converters agree on.
function may_convert(path)
{
    return path ~ /^src\/(base|nd|codec|xfer\/tar|convert\/lib)\// || path ~ /^src\/zarr\/doc\/(meta|grid)[^\/]*$/ ||
           path == "src/xfer/foreign/protocol.h" || directory(path) == directory(FILENAME)
}

function library_include(name)
{
    if (name in home && !is_home(home[name]))
        fault("<" name "> is for " home[name] " alone")
}

function generated_include(name,    source)
{
    source = name
    sub(/\.h$/, "", source)
    if (FILENAME !~ /^src\/store\//)
        fault("\"" name "\" is for src/store/ alone")
    else if (!exists("schema/" source))
        fault("\"" name "\": there is no schema/" source)
}

function own_include(name,    path, from, to)
{
    path = resolve(directory(FILENAME), name)
    below[FILENAME] = below[FILENAME] " " path
    if (!exists(path)) {
        fault("\"" name "\": there is no " path)
    } else if (FILENAME ~ /^cli\//) {
        if (path !~ /^src\/breccia(_json)?\.h$/ && path !~ /^cli\//)
            fault("cli/ includes src/breccia.h, breccia_json.h and its own headers alone, not " path)
    } else if (FILENAME ~ /^codecs\//) {
        if (path != "src/breccia_codec.h" && path !~ /^codecs\/lib\// &&
            (path != "codecs/builtin.h" || FILENAME ~ /^codecs\/lib\//))
            fault("codecs/ includes src/breccia_codec.h, builtin.h and lib/ alone, not " path)
    } else if (is_public(FILENAME)) {
        if (!is_public(path))
            fault("a public header includes public headers alone, not " path)
    } else if (path == "codecs/builtin.h") {
        if (FILENAME !~ /^src\/codec\//)
            fault("codecs/builtin.h is for src/codec/ alone")
    } else if (FILENAME ~ /^src\/convert\//) {
        if (!is_public(path) && !may_convert(path))
            fault("a converter does not include " path)
    } else if (path ~ /^src\/convert\//) {
        fault("only converters include " path)
    } else if (FILENAME ~ /^src\/serve\//) {
        if (!is_public(path) && path !~ /^src\/serve\// && path != "cli/credentials.h")
            fault("the server includes public headers and its own, not " path)
    } else if (path ~ /^src\/serve\//) {
        fault("only the server includes " path)
    } else if (!is_public(path)) {
        from = layer_of(FILENAME)
        to = layer_of(path)
        if (path !~ /^src\// || !(to in rank))
            fault(path " is in no layer")
        else if (rank[to] > rank[from])
            fault("an include points down: " from " must not see " to " (" path ")")
    }
}

FNR == 1 && FILENAME ~ /^src\/.*\// && FILENAME !~ /^src\/(convert|serve)\// && !(layer_of(FILENAME) in rank) {
    fault("src/" layer_of(FILENAME) " is not a layer: see tests/lint/run")
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    split($0, part, /[<">]/)
    if ($0 ~ /include[ \t]*</)
        library_include(part[2])
    else if (part[2] == "libexec_path.h" && FILENAME == "src/xfer/foreign/libexec_default.c")
        next
    else if (part[2] == "page_files.h" && FILENAME == "src/serve/page.c")
        next
    else if (part[2] ~ /\.sql\.h$/)
        generated_include(part[2])
    else
        own_include(part[2])
}

# Marks the headers that `path` includes in seen[], and returns how many are new there.
function count_headers(path,    n, i, part, count)
{
    n = split(below[path], part, " ")
    for (i = 1; i <= n; i++)
        if (!(part[i] in seen)) {
            seen[part[i]] = 1
            count += 1 + count_headers(part[i])
        }
    return count
}

END {
    for (path in below)
        if (path ~ /^src\/.*\.c$/) {
            split("", seen)
            count = count_headers(path)
            if (count > most)
                printf "%s:1: sees %d headers, %d are allowed\n", path, count, most
        }
}
