/*
 * Errors: a structure that belongs to the caller and is filled in on failure.
 *
 * Invariant: a message is one line of valid UTF-8. Names and paths inside it come
 * from files and users, so control characters and stray bytes become '?', and a
 * message that is too long is cut between two characters.
 */
#include "error.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"

const char *brc_strerror(int code)
{
    static const char *const words[] = {
        "no error",
        "invalid argument",
        "call not allowed in this state",
        "not found",
        "already exists",
        "ambiguous abbreviation",
        "conflict",
        "the ref has moved in the meantime",
        "busy",
        "read-only",
        "corrupt data",
        "not a breccia repository, or a newer one",
        "not supported by this build",
        "limit exceeded",
        "out of memory",
        "input/output error",
        "no space left",
        "interrupted",
        "internal error, a bug in breccia",
        "two different contents have the same hash",
    };
    if (code > 0 || code <= -(int)(sizeof(words) / sizeof(words[0])))
        return "unknown error";
    return words[-code];
}

/* Cleans a message in place, because the text never gets longer. `cut`: the text was cut
 * somewhere, so an incomplete character at the end is dropped. */
static void clean_message(char *text, int cut)
{
    uint8_t *p = (uint8_t *)text;
    size_t left = strlen(text);
    while (left > 0) {
        size_t step = brc_utf8_step(p, left);
        if (step == 0 && cut && left < 4 && *p >= 0xC0) {
            *p = 0;
            return;
        }
        if (step == 0 || *p < 0x20 || *p == 0x7F) {
            *p = '?';
            step = 1;
        }
        p += step;
        left -= step;
    }
}

static void format_message(char *out, size_t size, const char *format, va_list args)
{
    int n = vsnprintf(out, size, format, args);
    if (n < 0) {
        out[0] = 0;
        return;
    }
    clean_message(out, (size_t)n >= size);
}

/* Checks the size of an error. All versions so far have the same fields; memory without a valid
 * size is left alone. */
static int can_take_error(const brc_error *err)
{
    return err != NULL && (err->size == 0 || err->size >= sizeof(brc_error));
}

void brc_error_copy(brc_error *err, const brc_error *from)
{
    const size_t head = sizeof(err->size);
    if (can_take_error(err))
        memcpy((char *)err + head, (const char *)from + head, sizeof(*err) - head);
}

void brc_error_recode(brc_error *err, int code)
{
    if (can_take_error(err))
        err->code = code;
}

void brc_error_source(brc_error *err, const char *source, int detail)
{
    if (!can_take_error(err))
        return;
    err->detail = detail;
    snprintf(err->source, sizeof(err->source), "%s", source);
}

int brc_fail(brc_error *err, int code, const char *format, ...)
{
    if (!can_take_error(err))
        return code;
    char text[sizeof(err->message)]; /* an argument may be err->message itself */
    va_list args;
    va_start(args, format);
    format_message(text, sizeof(text), format, args);
    va_end(args);
    err->code = code;
    err->detail = 0;
    memset(err->source, 0, sizeof(err->source));
    memset(err->message, 0, sizeof(err->message));
    memcpy(err->message, text, strlen(text) + 1);
    return code;
}

void brc_context(brc_error *err, const char *format, ...)
{
    if (!can_take_error(err))
        return;
    char text[sizeof(err->message)];
    char old[sizeof(err->message)];
    va_list args;
    va_start(args, format);
    format_message(text, sizeof(text), format, args);
    va_end(args);
    memcpy(old, err->message, sizeof(old));
    old[sizeof(old) - 1] = 0;
    int n = snprintf(err->message, sizeof(err->message), "%s: %s", text, old);
    clean_message(err->message, n < 0 || (size_t)n >= sizeof(err->message));
}

int brc_nomem(brc_error *err)
{
    return brc_fail(err, BRC_ENOMEM, "out of memory");
}

static int code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return BRC_ENOSPACE;
    case ENOENT:
    case ENOTDIR:
        return BRC_ENOTFOUND;
    case EEXIST:
        return BRC_EEXISTS;
    case ENOMEM:
        return BRC_ENOMEM;
    default:
        return BRC_EIO;
    }
}

int brc_fail_os(brc_error *err, int errnum, const char *what, const char *path)
{
    int code = code_of_errno(errnum);
    if (!can_take_error(err))
        return code;
    /* The C locale: messages are English everywhere, and strerror() is not safe
     * with threads. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c != (locale_t)0) {
        brc_fail(err, code, "%s %s: %s", what, path, strerror_l(errnum, c));
        freelocale(c);
    } else {
        brc_fail(err, code, "%s %s: error %d", what, path, errnum);
    }
    brc_error_source(err, "os", errnum);
    return code;
}
