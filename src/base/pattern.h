/*
 * Patterns of nodes' paths, and of attributes ("PATH@NAME"), as in import's --exclude.
 *
* A pattern that is a path names that node. Otherwise '*' stands for any characters within a
 * name, '?' for one character, [a-z] for one of these and [!a-z] for any other, and a name that
 * is '**' stands for any number of names, also none. Slashes at the start and the end do not count. '@'
 * divides a path from the name of an attribute, in which '*' stands for '/' too.
 */
#ifndef BRC_BASE_PATTERN_H
#define BRC_BASE_PATTERN_H

#include <stddef.h>

/* Returns 1 if the pattern matches the node "a/b" or "/a/b". The root does not count as a node here. */
int brc_pattern_has_node(const char *pattern, const char *path, size_t len);
/* Returns 1 if the pattern matches the attribute of the node, which may be the root: "", "/". */
int brc_pattern_has_attribute(const char *pattern, const char *path, size_t len, const char *name);

#endif
