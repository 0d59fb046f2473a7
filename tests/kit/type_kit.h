/*
 * The rules that every data type must satisfy, as one function that can be called on a plug-in's
 * type as well as on the built-in ones:
 *
 *  - what print() writes as a fill value, parse() reads back to the same bits: of every
 *    element of one and two bytes, and of random ones of more;
 *  - what it writes as JSON is JSON;
 *  - the other byte order, twice, is the same as before;
 *  - values of the wrong kind are refused, with a message and without a trace.
 *
 * A bit pattern that is not a value of the type may be refused by print(); most must not.
 */
#ifndef TYPE_KIT_H
#define TYPE_KIT_H

#include "../../src/breccia_codec.h"

typedef struct type_kit {
    const brc_registry *reg; /* with the type in it                               */
    const char *type;        /* its name, or the JSON object of zarr.json         */
    uint64_t seed;
} type_kit;

/* 0 if all holds; 1 with a sentence in `why`. */
int type_kit_run(const type_kit *kit, char *why, size_t why_size);

#endif
