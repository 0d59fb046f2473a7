/* Whether a sanitizer watches the tests. What they do less then is said by effort.h. */
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

#endif
