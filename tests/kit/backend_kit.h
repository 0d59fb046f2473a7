/*
 * The rules that every backend must satisfy, as one function that can be called on a plug-in's:
 *
 *  - its full configuration is an object, or nothing; it opens again and is the same text; what
 *    is not an option is refused, and check() leaves nothing behind where it fails;
 *  - what was put is fetched again, one by one and many at once, in any order, of no bytes, of one
 *    and of many; through another state opened on the same place too, and after flush() and close();
 *  - what was never put is BRC_ENOTFOUND, and those that were asked for with it are read all the
 *    same; memory behind `into` is not touched; a wrong length is an error;
 *  - putting a name again changes nothing; two sums of one object are two things;
 *  - drop() removes what it is told to and nothing else, an object or a place with all that lies
 *    there, and an object that is gone already is not a fault;
 *  - list() gives all that is there, and nothing that was dropped (if the backend has it); what it
 *    calls its own, and is dropped as such, nobody else has put;
 *  - a state that may not write reads;
 *  - four threads may fetch, put and flush at once, where it says so;
 *  - a process that is killed after flush() has lost nothing;
 *  - where memory runs out, at whatever allocation, that is the error (with fail_after).
 */
#ifndef BACKEND_KIT_H
#define BACKEND_KIT_H

#include "../../src/breccia_backend.h"

typedef struct backend_kit {
    const brc_backend *backend;
    const char *config; /* JSON of the configuration; NULL: none                       */
    const char *folder; /* an empty one, in which the repository's file would be       */
    uint64_t seed;      /* every run with it is the same                               */
    int (*fail_after)(long n); /* as in codec_kit.h                                    */
    brc_credentials_fn credentials; /* of brc_backend_host, with a NULL ctx; NULL: none */
} backend_kit;

/* 0 if all holds; 1 with a sentence in `why`. */
int backend_kit_run(const backend_kit *kit, char *why, size_t why_size);

#endif
