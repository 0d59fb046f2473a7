/* UTF-8. */
#ifndef BRC_BASE_UTF8_H
#define BRC_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the sequence at `at`, 0 where it is not valid or goes past `left`. */
size_t brc_utf8_step(const uint8_t *at, size_t left);
/* 1 where the bytes are valid UTF-8 without NUL. */
int brc_utf8_valid(const char *text, size_t len);

#endif
