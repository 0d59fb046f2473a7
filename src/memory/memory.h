/* The buffer prototypes that breccia brings along, and codecs for their devices. Their tables are like those of plug-ins. */
#ifndef BRC_MEMORY_MEMORY_H
#define BRC_MEMORY_MEMORY_H

#include "../breccia_buffer.h"

/* Return static tables. */
const brc_buffer_prototype *brc_memory_host(size_t *n);
const brc_buffer_prototype *brc_memory_cuda(size_t *n);

/* Makes the context of a device current on this thread, until brc_cuda_leave(). `state` is that of an open prototype of
 * brc_memory_cuda(). */
BRC_MUST_USE int brc_cuda_enter(void *state, uint32_t device_id, brc_error *err);
void brc_cuda_leave(const void *state);

/* Sets the implementations of codecs by nvCOMP, which a registry takes over, or else their destroy() frees. `library` is a path
 * or a name of the shared object; NULL: the names that its packages have. If it cannot be used here, the implementations are
 * set too, as some that cannot run, and the result is BRC_EUNSUPPORTED; after BRC_ENOMEM nothing is set. */
#define BRC_NVCOMP_IMPLS 6
BRC_MUST_USE int brc_memory_nvcomp(brc_codec_impl out[BRC_NVCOMP_IMPLS], const char *library, brc_error *err);

#endif
