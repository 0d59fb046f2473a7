/*
 * Calls that the kernel hands back to this process (seccomp's SECCOMP_RET_TRAP), as a signal in
 * place of the call: what opens a file is asked for at the door, and fstat(), which the C library
 * makes of newfstatat() with an empty path, becomes the call that takes no path. The kernel's
 * filter cannot look at the path itself. libhdf5 asks about a file by its path once it has opened
 * the file: the answer is that for a descriptor from the door, so there is one about no other.
 */
#include "sandbox.h"

#include "door.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__has_include)
#if __has_include(<seccomp.h>)
#define CAN_TRAP 1
#endif
#endif

#ifndef CAN_TRAP

int brc_sandbox_trap(brc_error *err)
{
    (void)err;
    return BRC_OK;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* The arguments of a call, and where its result goes. */
typedef struct call_registers {
    uint64_t arg[4];
    ucontext_t *context;
} call_registers;

static call_registers read_registers(ucontext_t *context)
{
    call_registers call = { { 0 }, context };
#ifdef __x86_64__
    static const int from[4] = { REG_RDI, REG_RSI, REG_RDX, REG_R10 };
    for (int i = 0; i < 4; i++)
        call.arg[i] = (uint64_t)context->uc_mcontext.gregs[from[i]];
#else
    for (int i = 0; i < 4; i++)
        call.arg[i] = context->uc_mcontext.regs[i];
#endif
    return call;
}

static void set_result(const call_registers *call, long result)
{
#ifdef __x86_64__
    call->context->uc_mcontext.gregs[REG_RAX] = result;
#else
    call->context->uc_mcontext.regs[0] = (unsigned long long)result;
#endif
}

static long open_by_asking(int folder, uint64_t path, int flags)
{
    const char *text = (const char *)(uintptr_t)path;
    return folder == AT_FDCWD || *text == '/' ? brc_door_ask(text, flags) : -EPERM;
}

static long stat_of(int fd, uint64_t to)
{
    return syscall(SYS_fstat, fd, (void *)(uintptr_t)to) < 0 ? -errno : 0;
}

static long stat_by_asking(const call_registers *call)
{
    const char *path = (const char *)(uintptr_t)call->arg[1];
    if (*path == 0)
        return call->arg[3] == AT_EMPTY_PATH ? stat_of((int)call->arg[0], call->arg[2]) : -EPERM;
    long fd = open_by_asking((int)call->arg[0], call->arg[1], O_RDONLY);
    if (fd < 0)
        return fd;
    long result = stat_of((int)fd, call->arg[2]);
    close((int)fd);
    return result;
}

static void answer_call(int signal, siginfo_t *info, void *context)
{
    call_registers call = read_registers(context);
    int saved = errno;
    (void)signal;
    if (info->si_syscall == SYS_openat)
        set_result(&call, open_by_asking((int)call.arg[0], call.arg[1], (int)call.arg[2]));
#ifdef SYS_open
    else if (info->si_syscall == SYS_open)
        set_result(&call, open_by_asking(AT_FDCWD, call.arg[0], (int)call.arg[1]));
#endif
    else if (info->si_syscall == SYS_newfstatat)
        set_result(&call, stat_by_asking(&call));
    else
        set_result(&call, -EPERM);
    errno = saved;
}

int brc_sandbox_trap(brc_error *err)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = answer_call;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) < 0
               ? brc_fail_os(err, errno, "cannot limit", "the system calls of this process")
               : BRC_OK;
}

#endif

int brc_sandbox_can_trap(void)
{
#ifdef CAN_TRAP
    return 1;
#else
    return 0;
#endif
}
