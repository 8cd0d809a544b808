// Stands in the V8 engine's place and tries what native code of an attacker would try; one line
// each.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kAgain = 42 };
static char* const kArgv[] = {"workerd", "again", NULL};
static char* const kEnv[] = {"LD_LIBRARY_PATH=/lib", NULL};

// A line of the loader's kind; its text has a line end of its own.
static void say(const char* name, int works) {
  const char* why = strerrorname_np(errno);
  printf("o%s=%s\\n\n", name, works ? "works" : (why != NULL && errno != 0 ? why : "no"));
  fflush(stdout);
}

static void execute(int way) {
  if (way == 0) execve("/engine/workerd", kArgv, kEnv);
  if (way == 1)
    syscall(SYS_execveat, open("/engine/workerd", O_PATH), "", kArgv, kEnv, AT_EMPTY_PATH);
}

// In a child where there can be one; else here, where success would be the end of all further
// lines.
static void try_exec(const char* name, int way) {
  const int pid = fork();
  if (pid == 0) {
    execute(way);
    _exit(1);
  }
  if (pid < 0) {
    execute(way);
    say(name, 0);
    return;
  }
  int how = 0;
  waitpid(pid, &how, 0);
  errno = 0;
  say(name, WIFEXITED(how) && WEXITSTATUS(how) == kAgain);
}

static void try_fork(void) {
  const int pid = fork();
  if (pid == 0) _exit(0);
  say("fork", pid > 0);
  if (pid > 0) waitpid(pid, NULL, 0);
}

static void try_socket(const char* name, int family, int type, int protocol) {
  const int fd = socket(family, type, protocol);
  say(name, fd >= 0);
  if (fd >= 0) close(fd);
}

static void try_listen(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in here = {.sin_family = AF_INET};
  say("listen", bind(fd, (struct sockaddr*)&here, sizeof here) == 0 && listen(fd, 1) == 0);
  close(fd);
}

static void try_connect(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(80)};
  there.sin_addr.s_addr = htonl(0xA9FEA9FE);  // 169.254.169.254
  say("connect_out", connect(fd, (struct sockaddr*)&there, sizeof there) == 0);
  close(fd);
}

static void try_open(const char* name, const char* path, int flags) {
  const int fd = open(path, flags, 0600);
  say(name, fd >= 0);
  if (fd >= 0) close(fd);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "again") == 0) return kAgain;
  try_exec("execve", 0);
  try_exec("execveat", 1);
  try_fork();
  say("kill_starter", kill(getppid(), 0) == 0);
  say("ptrace_starter", ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0);
  try_open("write_file", "/workspace/new", O_WRONLY | O_CREAT);
  try_open("host_passwd", "/etc/passwd", O_RDONLY);
  try_open("shell", "/bin/sh", O_RDONLY);
  try_open("usr", "/usr", O_RDONLY);
  say("memfd", memfd_create("code", 0) >= 0);
  try_socket("unix_socket", AF_UNIX, SOCK_STREAM, 0);
  try_socket("raw_socket", AF_INET, SOCK_RAW, 1);
  try_socket("netlink", AF_NETLINK, SOCK_RAW, 0);
  try_listen();
  try_connect();
  // The number that its own exec was allowed from.
  say("dup_above", dup2(0, 1000) == 1000 || fcntl(0, F_DUPFD, 1000) >= 0);
  const struct rlimit more = {2000, 2000};
  say("raise_limit", setrlimit(RLIMIT_NOFILE, &more) == 0);
  printf("x0\n");
  fflush(stdout);
  pause();
  return 0;
}
