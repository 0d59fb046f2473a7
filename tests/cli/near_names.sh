# Names like those that are there, and words of git.
. "$CLI_TESTS/common.inc"

q init r.brc
q create r.brc /images/train --shape 4 --dtype int8
q create r.brc /images/test --shape 4 --dtype int8
q create r.brc /era5/temperature --shape 4 --dtype int8
commit r.brc one 10
q branch r.brc experiment
q tag r.brc v1.0

echo '# nodes'
t read r.brc /images/trian
t read r.brc /images/tes
t info r.brc /imagse
t write r.brc /temperature --value 1
t read r.brc /train
t rm r.brc /images/xyz
t read r.brc /zzz/temperature
t ls r.brc /era
t read r.brc /images/trian --json

echo '# branches, tags and versions'
t read r.brc /images/train --at experimnet
t log r.brc --at v1
t log r.brc --at main~1x
t switch r.brc mian
t merge r.brc experiment2
t diff r.brc v1.1 main
t show r.brc nothinglikeit
t show r.brc HAED
t branch r.brc -d expriment
t tag r.brc -d v10
t branch r.brc -d v1.1
t switch r.brc v1.0
t switch r.brc HEAD~0
t diff r.brc images
t diff r.brc HEAD images/train
t merge r.brc images

echo '# words of git and of file systems'
for word in add cat checkout clone delete draw dump head image list mkdir pull push reflog stash view; do
    t $word r.brc
done
t comit r.brc

t stats r.brc
t plot r.brc

echo '# options of git and of file systems'
for words in 'config --global' 'config --list' 'config -l' 'diff --cached' 'diff --staged' 'diff --name-only' 'log --after' 'log --all' \
    'log --before' 'log -p' 'log --patch' 'ls -R' 'ls -a' 'reset --soft' 'reset --mixed' 'rm -r' 'rm -rf' 'rm --recursive' 'show -p' \
    'tag -a' 'status --cached'; do
    t $words r.brc /a
done

echo '# pages, settings and dimensions'
t help slice
t help version
t help codec
t help sice
t config r.brc codec
t config r.brc codec '["zstd"]'
t config r.brc codecs zstd:5
t codecs r.brc /images/train zstd:5
q create r.brc /month/rain --shape 2 --dtype int32 --dimension-names month
q export r.brc /month month.zarr
t append r.brc /month --axis months --from month.zarr
t append r.brc /month --axis x --from month.zarr
