# The commands of docs/TOUR.md print what it says they print.
. "$CLI_TESTS/common.inc"

transcript "$CLI_TESTS/../../docs/TOUR.md"
grep -o '"shape":\[6,8\]' sky.zarr/sky/zarr.json
ls sky.zarr/sky/c
