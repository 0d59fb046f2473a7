#include "bench.h"
void bench_commit(const bench_opts *o) { (void)o; }
