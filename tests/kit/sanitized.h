/* Whether a sanitizer watches the tests, and what they do less then. */
#ifndef BRC_KIT_SANITIZED_H
#define BRC_KIT_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KIT_SANITIZED 1
#endif
#endif
#if !defined(KIT_SANITIZED) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define KIT_SANITIZED 1
#endif
#ifndef KIT_SANITIZED
#define KIT_SANITIZED 0
#endif

/* Of what a test may do for as long as somebody likes, it does one in so many: random inputs, moments
 * to be killed at. Each takes several times as long, and all are tried without a sanitizer. */
enum { KIT_ONE_IN = KIT_SANITIZED ? 4 : 1 };

#endif
