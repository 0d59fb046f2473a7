/* One chunk, and one small slice, anywhere in an array, with everything warm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

void bench_random(const bench_opts *o) { (void)o; }
