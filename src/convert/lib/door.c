/* Opens files for a process in the sandbox, see door.h. */
#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* ---- what may be opened -------------------------------- */

/* Writes the path without "." parts and repeated slashes. Returns 0 if the path is too long. */
static int write_plainly(char out[BRC_DOOR_PATH_MAX], const char *path)
{
    size_t n = 0;
    if (*path == '/')
        out[n++] = '/';
    while (*path) {
        size_t len = strcspn(path, "/");
        int is_part = len > 0 && !(len == 1 && *path == '.');
        int more = path[len] == '/';
        if (is_part && n + len + 2 > BRC_DOOR_PATH_MAX)
            return 0;
        if (is_part) {
            memcpy(out + n, path, len);
            n += len;
            if (more)
                out[n++] = '/';
        }
        path += len + (size_t)more;
    }
    out[n] = 0;
    return 1;
}

/* Finds the folder's real path. realpath() allocates the path, so no buffer limits its length. */
static void find_real_folder(brc_door *door)
{
    char *real = realpath(*door->folder ? door->folder : ".", NULL);
    size_t len = real ? strlen(real) : BRC_DOOR_PATH_MAX;
    if (len + 2 <= BRC_DOOR_PATH_MAX) {
        memcpy(door->real, real, len);
        memcpy(door->real + len, len > 1 ? "/" : "", len > 1 ? 2 : 1);
    }
    free(real);
}

int brc_door_init(brc_door *door, const char *file, int writing, brc_error *err)
{
    memset(door, 0, sizeof(*door));
    door->writing = writing;
    if (!write_plainly(door->file, file))
        return brc_fail(err, BRC_EINVAL, "the path %.100s... has more than %d bytes", file,
                        BRC_DOOR_PATH_MAX);
    const char *slash = strrchr(door->file, '/');
    if (slash)
        memcpy(door->folder, door->file, (size_t)(slash - door->file) + 1);
    find_real_folder(door);
    return BRC_OK;
}

/* Returns the part of the path beneath the folder; NULL if the path is not beneath it. */
static const char *beneath(const brc_door *door, const char *path)
{
    const char *const folders[] = { door->folder, door->real };
    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(folders[i]);
        if (len > 0 ? strncmp(path, folders[i], len) == 0 : i == 0 && *path != '/')
            return path + len;
    }
    return NULL;
}

/* Takes the next part of *rest, and moves *rest past it. Returns 0 for ".." and for hidden
 * files. */
static int next_part(char part[NAME_MAX + 1], const char **rest)
{
    size_t len = strcspn(*rest, "/");
    if (len == 0 || len > NAME_MAX || **rest == '.')
        return 0;
    memcpy(part, *rest, len);
    part[len] = 0;
    *rest += len + ((*rest)[len] == '/');
    return 1;
}

static int is_regular(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Opens a file part by part, and follows no links. */
static int open_beneath(const char *folder, const char *rest)
{
    char part[NAME_MAX + 1];
    int at = open(*folder ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return -errno;
    do {
        if (!next_part(part, &rest)) {
            close(at);
            return -EACCES;
        }
        int how = *rest ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
        int next = openat(at, part, how | O_NOFOLLOW | O_CLOEXEC), code = errno;
        close(at);
        if (next < 0)
            return code == ELOOP || code == ENOTDIR ? -EACCES : -code;
        at = next;
    } while (*rest);
    if (is_regular(at))
        return at;
    close(at);
    return -EACCES;
}

/* Returns whether the path is that of the file itself, as it was given or from the root. */
static int is_the_file(const brc_door *door, const char *plain)
{
    size_t folder = strlen(door->folder), real = strlen(door->real);
    return strcmp(plain, door->file) == 0 || (real > 0 && strncmp(plain, door->real, real) == 0 &&
                                              strcmp(plain + real, door->file + folder) == 0);
}

/* Returns a new descriptor, or -errno. `flags` are those of open(2). */
static int open_for(const brc_door *door, const char *path, int flags)
{
    char plain[BRC_DOOR_PATH_MAX];
    const int kept = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC;
    if (!write_plainly(plain, path))
        return -ENAMETOOLONG;
    if ((flags & O_PATH) == O_PATH && O_PATH != O_RDONLY)
        return -EPERM;
    if (!door->writing && (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != O_RDONLY)
        return -EPERM;
    if (is_the_file(door, plain)) {
        int fd = open(door->file, (flags & kept) | O_CLOEXEC, 0666);
        return fd < 0 ? -errno : fd;
    }
    const char *rest = door->writing ? NULL : beneath(door, plain);
    return rest ? open_beneath(door->folder, rest) : -EACCES;
}

int brc_door_open(const brc_door *door, const char *path)
{
    return open_for(door, path, O_RDONLY);
}

/* ---- requests -------------------------------- */

typedef union fd_message {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
} fd_message;

static void answer(int socket, int fd)
{
    int code = fd < 0 ? -fd : 0;
    struct iovec bytes = { &code, sizeof(code) };
    struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
    fd_message room;
    if (fd >= 0) {
        memset(&room, 0, sizeof(room));
        message.msg_control = room.room;
        message.msg_controllen = sizeof(room.room);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    }
    (void)!sendmsg(socket, &message, MSG_NOSIGNAL);
    if (fd >= 0)
        close(fd);
}

/* Answers until the other process closes its end. */
static void serve(const brc_door *door, int socket)
{
    char path[BRC_DOOR_PATH_MAX];
    int flags;
    struct iovec bytes[] = { { &flags, sizeof(flags) }, { path, sizeof(path) - 1 } };
    struct msghdr message = { .msg_iov = bytes, .msg_iovlen = 2 };
    ssize_t n;
    while ((n = recvmsg(socket, &message, 0)) != 0) {
        if (n < 0 && errno != EINTR)
            return;
        if (n < (ssize_t)sizeof(flags) + 1)
            continue;
        path[(size_t)n - sizeof(flags)] = 0;
        answer(socket, open_for(door, path, flags));
    }
}

int brc_door_ask(const char *path, int flags)
{
    size_t len = strlen(path);
    int code = 0, fd = -1;
    fd_message room;
    struct iovec asked[] = { { &flags, sizeof(flags) }, { (void *)(uintptr_t)path, len } };
    struct iovec got = { &code, sizeof(code) };
    struct msghdr to = { .msg_iov = asked, .msg_iovlen = 2 };
    struct msghdr from = { .msg_iov = &got,
                           .msg_iovlen = 1,
                           .msg_control = room.room,
                           .msg_controllen = sizeof(room.room) };
    if (len == 0)
        return -ENOENT;
    if (len >= BRC_DOOR_PATH_MAX)
        return -ENAMETOOLONG;
    if (sendmsg(BRC_DOOR_FD, &to, MSG_NOSIGNAL) < 0 ||
        recvmsg(BRC_DOOR_FD, &from, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(code))
        return -EACCES;
    if (code != 0)
        return -code;
    struct cmsghdr *head = CMSG_FIRSTHDR(&from);
    if (!head || head->cmsg_type != SCM_RIGHTS) /* this process cannot have another descriptor */
        return -EMFILE;
    memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    return fd;
}

/* ---- two processes -------------------------------- */

static int start_inside(const int ends[2], pid_t outside)
{
#ifdef __linux__
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return 0;
#endif
    if (getppid() != outside)
        return 0;
    close(ends[0]);
    if (ends[1] != BRC_DOOR_FD) {
        if (dup2(ends[1], BRC_DOOR_FD) < 0)
            return 0;
        close(ends[1]);
    }
    return 1;
}

static void leave_streams(void)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
        if (nowhere < 0 || dup2(nowhere, fd) < 0)
            close(fd);
    if (nowhere > STDERR_FILENO)
        close(nowhere);
}

int brc_door_keep(const brc_door *door, int *status, brc_error *err)
{
    int ends[2];
    pid_t outside = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return brc_fail_os(err, errno, "cannot open", "a socket");
    pid_t inside = fork();
    if (inside == 0) {
        if (!start_inside(ends, outside))
            _exit(1);
        return 0;
    }
    int code = errno;
    close(ends[1]);
    if (inside < 0) {
        close(ends[0]);
        return brc_fail_os(err, code, "cannot start", "a process");
    }
    leave_streams();
    serve(door, ends[0]);
    close(ends[0]);
    while (waitpid(inside, status, 0) < 0)
        if (errno != EINTR)
            return brc_fail_os(err, errno, "cannot wait for", "a process");
    return 1;
}
