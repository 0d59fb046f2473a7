/*
 * A codec that calls a function of the test whenever it encodes or decodes, so that the test does
 * something while a chunk is at work.
 */
#ifndef BRC_TESTS_HOOK_CODEC_H
#define BRC_TESTS_HOOK_CODEC_H

#include "watched_codec.h"

#define HOOK_CODEC "{\"name\":\"https://breccia.example/hook\"}"

typedef void (*hook_fn)(void *ctx);

/* The next `times` calls of decode(), or of encode(), call it, one at a time; what it does itself
 * does not. The last of these two calls counts. */
void hook_decode(hook_fn fn, void *ctx, int times);
void hook_encode(hook_fn fn, void *ctx, int times);
/* How often it has been called since. */
int hook_calls(void);

/* Built-ins and this. */
brc_registry *hook_registry(brc_error *err);

#endif
