# Every example of the commands' pages runs, one after the other, on a page's own copy of a folder
# that has what the examples name. A function ahead_COMMAND or ahead_COMMAND_N does before a page,
# or before its Nth example, what somebody would have done by then.
. "$CLI_TESTS/common.inc"

# ---- the folder ----------------------------------------------------------------------

floats() { # FILE N: so many times 241 x 480
    breccia create made.brc "/$1" --shape "$2,241,480" --dtype float32 --chunks "$2,241,480" -q
    breccia write made.brc "/$1" --value 280 -q
    breccia export made.brc "/$1" "world/$1" -q
    breccia rm made.brc "/$1" -q
}
bytes() { head -c "$2" /dev/zero | npy "world/$1" '|u1' "$3"; }

plugin dirstore
mkdir world world/host
cp dirstore.so world
q init made.brc
floats t2m.npy 40
floats july.npy 31
breccia create made.brc /june --shape 241,480 --dtype float32 -q
breccia export made.brc /june world/june.npy -q
bytes train.npy 7840 '(10, 28, 28)'
bytes test.npy 784 '(1, 28, 28)'
head -c 20000000 /dev/zero >world/frames.raw
printf 'height,pressure\n12,1013.2\n640,\n' >world/stations.csv
printf '0,0,0,281.5\n-1,120,240,279\n' >world/fixes.csv
{
    printf '\000\000\010\003\000\000\000\012\000\000\000\034\000\000\000\034'
    head -c 7840 /dev/zero
} | gzip >world/train-images-idx3-ubyte.gz

(
    cd world
    q init climate.brc
    q config climate.brc codecs '["zstd"]'
    q group climate.brc /surface
    q import climate.brc t2m.npy /t2m --chunks 8,241,480
    q attrs climate.brc /t2m 'comment="raw"' 'units="degC"'
    q group climate.brc /era5
    q create climate.brc /era5/t --shape 4,6 --dtype float32 --dimension-names time,lat
    q attrs climate.brc /era5/t 'history="made"'
    q group climate.brc /era5/debug
    q create climate.brc /scratch --shape 4 --dtype uint8
    commit climate.brc May 08
    q export climate.brc /era5 era5.zarr
    q export climate.brc /era5 run.nc
    q export climate.brc /era5 next.zarr
    mv era5.zarr kept.zarr
    q tag climate.brc v1.0
    q tag climate.brc v1
    cp climate.brc backup.brc
    q branch climate.brc experiment
    for n in 1 2 3; do
        q write climate.brc /t2m "[$n]" --value "28$n"
        commit climate.brc "day $n" "1$n"
    done
    q switch climate.brc experiment
    for n in 11 12 13; do
        q write climate.brc /t2m "[$n]" --value "2$n"
        commit climate.brc "correction $n" "$n"
    done
    q switch climate.brc main
    q init mnist.brc
    q create mnist.brc /train/images --shape 10,28,28 --dtype uint8
    commit mnist.brc images 08
    q init old.brc
    q create old.brc /a --shape 4 --dtype uint8
    q init video.brc
    q create video.brc /frames --shape 5,2000,2000 --dtype uint8 --chunks 1,2000,2000
    cat >ssh <<'EOF'
#!/bin/sh
# The other machine is a folder.
cd host && shift && exec sh -c "$*"
EOF
    # No breccia itself: with a sanitizer that takes more memory than a --with command may have.
    breccia export old.brc - >run.tar
    cat >grib2zarr <<'EOF'
#!/bin/sh
cat run.tar
EOF
    cat >check.sh <<'EOF'
#!/bin/sh
[ "$1" = --strict ] && ! breccia read "$BRECCIA_FILE" /t2m '[2, 0, 0]' --at "$BRECCIA_REV" | grep -q 282
EOF
    chmod +x ssh grib2zarr check.sh
    touch run.grib
)

# ---- what comes before ---------------------------------------------------------------

changed() { q write climate.brc /t2m '[5]' --value 300; }
ahead_init() { rm climate.brc; }
ahead_create() {
    q rm climate.brc /t2m
    q rm mnist.brc /train
}
ahead_import() {
    cp -r kept.zarr era5.zarr
    q rm climate.brc /t2m
    q rm climate.brc /era5
    commit climate.brc 'without copies' 14
    q rm mnist.brc /train
    q group mnist.brc /train
}
ahead_import_12() { q rm climate.brc /run; }
ahead_import_10() { mkdir archive && cp run.nc archive/2020.nc; }
ahead_commit() { changed; }
ahead_commit_2() { q write climate.brc /t2m '[6]' --value 300; }
ahead_commit_3() { q write climate.brc /t2m '[7]' --value 300; }
ahead_status() { changed; }
ahead_diff() { changed; }
ahead_switch_2() { q branch climate.brc -D experiment; }
ahead_branch() { q branch climate.brc -D experiment; }
ahead_tag() { q tag climate.brc -d v1.0; }
ahead_backend_4() {
    mkdir -p archive/2020 disk2
    cp t2m.npy archive/2020/t2m.npy
    q import climate.brc archive/2020/t2m.npy /moving --external
    mv archive/2020 disk2
}
ahead_backend_5() { q config climate.brc backend inline; }
conflict() { # REV DAY: behind REV the day is not what the other branch has
    q reset climate.brc "$1" --hard
    q write climate.brc /t2m "[$2]" --value 301
    q commit climate.brc -m "day $2"
}
ahead_merge_2() { conflict main~1 11; }
ahead_merge_3() {
    conflict v1.0 11
    breccia merge climate.brc experiment >quiet.log
    q merge climate.brc --theirs
}
ahead_restore() { changed; }
ahead_rebase() { q switch climate.brc experiment; }
ahead_rebase_2() {
    conflict v1.0 1
    breccia rebase climate.brc main >quiet.log
    q rebase climate.brc --ours
}
ahead_revert_2() { q merge climate.brc experiment; }
ahead_reset_2() { changed; }
ahead_undo() { q branch climate.brc one; }
# A write is killed, and what it had written stays.
ahead_drafts() {
    q create climate.brc /big --shape 160,1048576 --dtype uint8 --chunks 1,65536 --compress none
    mkfifo input
    breccia write climate.brc /big --from - <input >quiet.log 2>&1 &
    writer=$!
    exec 3>input
    head -c 134217728 /dev/urandom >&3
    until breccia drafts climate.brc | grep -q private; do
        kill -0 "$writer" || break
    done
    kill -KILL "$writer"
    wait "$writer" 2>quiet.log
    exec 3>&-
}
ahead_backup() { mkdir -p media/disk; }

# ---- the pages -----------------------------------------------------------------------

# Puts our paths and numbers in place of those that stand for the reader's own.
own_names() {
    draft=$(breccia drafts climate.brc 2>quiet.log | awk '/private/ { print $1 }')
    commit=$(breccia log climate.brc experiment~1 -1 --oneline 2>quiet.log | cut -d ' ' -f 1)
    sed -e "s|--adopt 7|--adopt $draft|" -e "s|1a2b3c|$commit|" -e "s|/media|$PWD/media|" -e "s|/data --port 8080|$PWD|"
}

ahead() { ! command -v "$1" >/dev/null || "$1"; }

run_page() { # COMMAND
    n=0
    ahead "ahead_$(echo "$1" | tr - _)"
    breccia help "$1" | sed -n -e '/^breccia help /q' -e '/^Examples:/,$p' | sed -n 's/^  //p' | own_names >examples
    while read -r example; do
        n=$((n + 1))
        case $1 in serve | ui) example="$example --watch-stdin" ;; esac # which ends at once
        ahead "ahead_$(echo "$1" | tr - _)_$n"
        PATH=$PWD:$PATH BROWSER=true sh -c "$example" >said 2>&1 </dev/null
        status=$?
        case $example in *--exit-code) status=$((status - 1)) ;; esac
        [ "$status" -eq 0 ] || { echo "$example"; cat said; echo "status $status"; }
    done <examples
    echo "$1: $n"
}

for command in $(breccia help | awk '/^  [a-z-]+ / && !/breccia/ { print $1 }'); do
    rm -rf page
    cp -r world page
    (cd page && run_page "$command")
done
