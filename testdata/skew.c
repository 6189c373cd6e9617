/* skew FILE CMD ...: runs CMD with a wall clock of its own (Linux, x86-64). FILE holds the seconds that are added, read anew each time.
 * It hides the vDSO at exec, so that clock reads become system calls, and changes their answers; children are traced, too. Only
 * reads of the wall clock stop: there are few of them beside those of the monotonic clock, and a stop is slow. For tests that give
 * each node another date. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <sys/user.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <linux/auxvec.h>
static long off(const char *f) {
  long a = 0; FILE *h = fopen(f, "r");
  if (h) { if (fscanf(h, "%ld", &a) < 1) a = 0; fclose(h); }
  return a;
}
int main(int c, char **v) {
  if (c < 3) return 2;
  pid_t p = fork();
  if (!p) {
    ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP);
    struct sock_filter f[] = {               // stop only on clock_gettime(0)
      BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, SYS_clock_gettime, 0, 3),
      BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_TRACE),
      BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog g = { sizeof f / sizeof *f, f };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &g)) _exit(9);
    execvp(v[2], v + 2); _exit(9);
  }
  int st, rc = 0; waitpid(p, &st, 0);
  ptrace(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACESECCOMP|PTRACE_O_TRACEEXEC|PTRACE_O_TRACECLONE|
    PTRACE_O_TRACEFORK|PTRACE_O_TRACEVFORK|PTRACE_O_EXITKILL|PTRACE_O_TRACESYSGOOD);
  ptrace(PTRACE_CONT, p, 0, 0);
  for (;;) {
    struct user_regs_struct r; pid_t t = waitpid(-1, &st, __WALL);
    if (t < 0) return rc;
    if (!WIFSTOPPED(st)) { if (t == p) rc = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st); continue; }
    int s = WSTOPSIG(st), ev = st >> 16;
    if (ev == PTRACE_EVENT_SECCOMP) { ptrace(PTRACE_SYSCALL, t, 0, 0); continue; }
    if (s == (SIGTRAP|0x80)) {
      ptrace(PTRACE_GETREGS, t, 0, &r);
      if (r.orig_rax == SYS_clock_gettime && r.rdi == 0 && (long)r.rax == 0)
        ptrace(PTRACE_POKEDATA, t, r.rsi, ptrace(PTRACE_PEEKDATA, t, r.rsi, 0) + off(v[1]));
      ptrace(PTRACE_CONT, t, 0, 0); continue;
    }
    if (ev == PTRACE_EVENT_EXEC) {           // hide the vDSO so that clock reads are real system calls
      ptrace(PTRACE_GETREGS, t, 0, &r); unsigned long a = r.rsp;
      a += 8 * (ptrace(PTRACE_PEEKDATA, t, a, 0) + 2);
      while (ptrace(PTRACE_PEEKDATA, t, a, 0)) a += 8;
      for (a += 8; ; a += 16) { long k = ptrace(PTRACE_PEEKDATA, t, a, 0);
        if (!k) break;
        if (k == AT_SYSINFO_EHDR) ptrace(PTRACE_POKEDATA, t, a, 1L); }
    }
    ptrace(PTRACE_CONT, t, 0, (ev || s == SIGSTOP || s == SIGTRAP) ? 0 : s);
  }
}
