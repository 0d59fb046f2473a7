/* nvCOMP 6, which is none: nvcomp.h. */
#define MAJOR 6
#include "nvcomp.h"
