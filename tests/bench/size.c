#include "bench.h"
void bench_size(const bench_opts *o) { (void)o; }
