/* nvCOMP 4, which is none: nvcomp.h. */
#define MAJOR 4
#include "nvcomp.h"
