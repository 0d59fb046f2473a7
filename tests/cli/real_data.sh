# The digits and the winds of the shared data.
. "$CLI_TESTS/common.inc"

data=$BRECCIA_TEST_DATA
[ -f "$data/mnist-t10k-images-idx3-ubyte.gz" ] || skip "there is no $data/mnist-t10k-images-idx3-ubyte.gz"
[ -f "$data/era-u-wind-f32.npy" ] || skip "there is no $data/era-u-wind-f32.npy"
cp "$data"/*.gz "$data"/*.npy .

q init r.brc
t import r.brc mnist-t10k-images-idx3-ubyte.gz /mnist/images --chunks 100,28,28
t import r.brc mnist-t10k-labels-idx1-ubyte.gz /mnist/labels
t import r.brc era-u-wind-f32.npy /era/u
breccia ls r.brc -rl | sed 's| *[0-9.]* [KMG]*i*B\>||'
t read r.brc /mnist/labels
t read r.brc /mnist/images '[0, 5:12, 5:20]'
breccia read r.brc /mnist/images --format raw | cksum
gzip -dc mnist-t10k-images-idx3-ubyte.gz | tail -c +17 | cksum
t read r.brc /era/u '[0, 0, ::60, ::96]'
commit r.brc 'real data' 10
t export r.brc /era/u u.npy
cmp era-u-wind-f32.npy u.npy && echo 'the same bytes'
t export r.brc /mnist mnist.zarr
t import r.brc mnist.zarr /again
t diff r.brc --stat
breccia read r.brc /again/images --format raw | cksum
breccia info r.brc --json | sed 's/.*"chunks":\([0-9]*\),.*/chunks: \1, those of the copy are shared/'
q write r.brc /mnist/images '[17, 3, 4]' --value 255
t diff r.brc --elements -- /mnist
t fsck r.brc | sed 's/[0-9]* objects/N objects/'
