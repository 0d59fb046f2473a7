/* on_terminal COLUMNS ROWS LINE: runs a line of shell on a pseudo-terminal of this size, 0 0 for a
 * terminal that does not know its size; prints all that the line writes there and ends with its
 * status. Nobody types: the terminal has no input, and no end of it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* To the end: the kernel keeps what was written until it is read, whether or not the writer lives,
 * and then answers EIO. */
static int copy_all(int terminal)
{
    char bytes[4096];
    for (;;) {
        ssize_t n = read(terminal, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 || errno == EIO ? 0 : -1;
        if (fwrite(bytes, 1, (size_t)n, stdout) != (size_t)n)
            return -1;
    }
}

static unsigned short cells(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end || n > 10000) {
        fprintf(stderr, "on_terminal: '%s' is not a valid number of columns or rows\n", text);
        exit(2);
    }
    return (unsigned short)n;
}

int main(int argc, char **argv)
{
    struct winsize size = { 0 };
    int terminal, how;
    if (argc != 4) {
        fputs("usage: on_terminal COLUMNS ROWS LINE\n", stderr);
        return 2;
    }
    size.ws_col = cells(argv[1]);
    size.ws_row = cells(argv[2]);
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", argv[3], (char *)NULL);
        _exit(127);
    }
    if (child < 0 || copy_all(terminal) < 0 || fflush(stdout) != 0 ||
        waitpid(child, &how, 0) != child) {
        perror("on_terminal");
        return 125;
    }
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}
