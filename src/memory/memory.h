/* The buffer prototypes that breccia brings along. Their tables are like those of plug-ins. */
#ifndef BRC_MEMORY_MEMORY_H
#define BRC_MEMORY_MEMORY_H

#include "../breccia_buffer.h"

/* Return static tables. */
const brc_buffer_prototype *brc_memory_host(size_t *n);
const brc_buffer_prototype *brc_memory_cuda(size_t *n);

#endif
