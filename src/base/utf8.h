/* UTF-8. */
#ifndef BRC_BASE_UTF8_H
#define BRC_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Returns the length of the sequence at `at`, or 0 if it is not valid or goes past `left`. */
size_t brc_utf8_step(const uint8_t *at, size_t left);
/* Returns the code of the valid character of `len` bytes. */
uint32_t brc_utf8_code(const uint8_t *at, size_t len);
/* Returns 1 if the bytes are valid UTF-8. */
int brc_utf8_valid_bytes(const uint8_t *at, size_t len);
/* Returns 1 if the text is valid UTF-8 without NUL. */
int brc_utf8_valid(const char *text, size_t len);
/* Writes the character's bytes and returns how many they are. `code` is at most U+10FFFF. */
size_t brc_utf8_encode(uint8_t out[4], uint32_t code);

#endif
