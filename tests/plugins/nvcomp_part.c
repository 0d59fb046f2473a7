/* A library of nvCOMP that lacks a codec: nvcomp.h. */
#define MAJOR 6
#define LACKS_DEFLATE
#include "nvcomp.h"
