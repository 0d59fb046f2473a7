/*
 * The program of `make fuzz`: libFuzzer around the harness that the program's own name
 * says, fuzz_npy. To repeat a finding: `build/fuzz/fuzz_npy FILE`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t max); /* libFuzzer's own */

static const fuzz_harness *harness;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *slash = strrchr((*argv)[0], '/');
    const char *name = slash != NULL ? slash + 1 : (*argv)[0];
    (void)argc;
    harness = fuzz_harness_named(strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name);
    if (harness == NULL) {
        fprintf(stderr, "%s: its name must be fuzz_ and a harness of tests/fuzz/harnesses.h\n",
                name);
        exit(2);
    }
    atexit(fuzz_end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t *own = fuzz_bytes(data, len);
    harness->run(own, len);
    free(own);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed)
{
    if (harness->run == fuzz_repository && seed % 4 != 0)
        return fuzz_mutate_repository(data, len, max, seed);
    return LLVMFuzzerMutate(data, len, max);
}
