/* Says whether a sanitizer watches the tests. effort.h says what the tests then leave out. */
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

/* Says whether a child may allocate memory while its parent has threads: a lock of the address
 * sanitizer's allocator that a thread of the parent holds stays held in the child. */
#ifdef __SANITIZE_ADDRESS__
enum { CHILDREN_MAY_ALLOCATE = 0 };
#else
enum { CHILDREN_MAY_ALLOCATE = 1 };
#endif

#endif
