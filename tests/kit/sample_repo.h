/* A small repository with a little of everything. */
#ifndef BRC_TESTS_SAMPLE_REPO_H
#define BRC_TESTS_SAMPLE_REPO_H

/* Makes it at `path`: two commits on three branches, a tag, nested groups, arrays of several
 * types and encodings, one of them with 140 chunks, and uncommitted changes of every kind.
 * Its ids are always the same. Ends the process if it cannot. */
void sample_repo_make(const char *path);

#endif
