. "$CLI_TESTS/common.inc"
# Names that no node may have: imported under an escaped name, which export takes back, in every
# format; and names that look escaped, which are kept as they are.

group='{"zarr_format":3,"node_type":"group"}'
array='{"zarr_format":3,"node_type":"array","shape":[3],"data_type":"uint8",
 "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[3]}},
 "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}'
n=0

# name NAME: an array in the hierarchy.
name() {
    n=$((n + 1))
    mkdir -p "foreign.zarr/$1/c"
    printf %s "$array" >"foreign.zarr/$1/zarr.json"
    u1 $n $n $n >"foreign.zarr/$1/c/0"
}

mkdir foreign.zarr
printf %s "$group" >foreign.zarr/zarr.json
name __categories
name %5F_categories
name ...
name "$(printf 'tab\there')"
name 'tab%09here'
name '100%'
name '50%20off'
mkdir foreign.zarr/__group
printf %s "$group" >foreign.zarr/__group/zarr.json
name __group/__array

q init a.brc
t import a.brc foreign.zarr /
t ls a.brc -r
t read a.brc /%5F_categories
t read a.brc /%255F_categories
t read a.brc /tab%09here
t read a.brc /tab%2509here
t read a.brc /%5F_group/%5F_array

echo '# a directory and a zip have the names of the source, and so has a stream'
t export a.brc / back.zarr
(cd foreign.zarr && find . | sort) >names.was
(cd back.zarr && find . | sort) | diff names.was - && echo same names
q export a.brc / back.v2.zarr --format zarr2
find back.v2.zarr -name .zarray | wc -l
breccia export a.brc / - | tar t >names.txt
grep -c '^__group/__array/zarr.json$' names.txt

echo '# every format gives the same nodes again, with their elements'
for form in zarr v2.zarr zip npz h5; do
    case $form in
    zarr | v2.zarr) ;;
    *) q export a.brc / back.$form ;;
    esac
    q init b.$form.brc
    q import b.$form.brc back.$form /
    for path in /%5F_categories /%255F_categories '/%2E..' /tab%09here /tab%2509here '/100%' \
        '/50%20off' /%5F_group/%5F_array; do
        [ "$(breccia read b.$form.brc "$path")" = "$(breccia read a.brc "$path")" ] ||
            echo "$form: $path differs"
    done
    breccia ls b.$form.brc -r | wc -l
done
breccia export a.brc / - | breccia import b.zarr.brc - /stream --quiet
t ls b.zarr.brc /stream
echo '# NetCDF has no names that begin with %, and no control characters: what escapes these stays'
for path in '/%255F_categories' '/%2E..'; do q rm a.brc "$path"; done
q export a.brc / back.nc
q init nc.brc
q import nc.brc back.nc /
t ls nc.brc -r

echo '# names made here that look like an escape'
q init c.brc
q group c.brc /%5F_mine
q group c.brc /%255F_mine
q group c.brc /a%2Fb
q export c.brc / mine.zarr
ls mine.zarr
q init d.brc
q import d.brc mine.zarr /
t ls d.brc

echo '# --exclude has the names of the source'
q init e.brc
t import e.brc foreign.zarr / --exclude __group --exclude __categories
t ls e.brc

echo '# the files themselves have the names of the source'
for form in zip npz h5 nc; do grep -qa __categories back.$form && echo $form has __categories; done
