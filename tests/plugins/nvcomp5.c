/* nvCOMP 5, which is none: nvcomp.h. */
#define MAJOR 5
#include "nvcomp.h"
