/* In the place of cerco-init: says what a guest's kernel could say that the code inside has taken
 * over. ACT names it. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONTROL = 3, EXEC = 0, SERVE_FILES = 2, KILL_ALL = 3 };
enum { READY, STARTED, NOT_STARTED, ENDED, ALL_DEAD };

static char out[4096];
static size_t length;

static void number(uint64_t value) {
  memcpy(out + length, &value, sizeof value);
  length += sizeof value;
}

static void text(const char* value) {
  number(strlen(value));
  memcpy(out + length, value, strlen(value));
  length += strlen(value);
}

static void send_to(int fd) {
  (void)!send(fd, out, length, MSG_NOSIGNAL);
  length = 0;
}

static void started(void) {
  number(STARTED), number(1), send_to(CONTROL);
}

static void not_started(const char* step, uint64_t error) {
  number(NOT_STARTED), number(1), text(step), number(error), send_to(CONTROL);
}

static void ended(uint64_t signalled, uint64_t code, uint64_t cpu_ms) {
  number(ENDED), number(1), number(signalled), number(code), number(cpu_ms), send_to(CONTROL);
}

static void on_exec(void) {
  started();
  if (!strcmp(ACT, "status")) ended(0, 256, 1);
  if (!strcmp(ACT, "signal")) ended(1, 300, 1);
  if (!strcmp(ACT, "time")) ended(0, 0, ~UINT64_C(0));
  if (!strcmp(ACT, "step")) not_started("\033[2J\n", 2);
  if (!strcmp(ACT, "never")) not_started("execve", 2);
  if (!strcmp(ACT, "words") || !strcmp(ACT, "true")) ended(0, 0, 1);
}

static void on_kill_all(void) {
  while (!strcmp(ACT, "words")) {
    started();
    usleep(1000);
  }
  number(ALL_DEAD), send_to(CONTROL);
}

static void on_serve_files(int fd) {
  char request[256];
  (void)!recv(fd, request, sizeof request, 0);
  number(6), send_to(fd); /* Done */
}

int main(void) {
  static char in[200000];
  number(READY), number(1), send_to(CONTROL);
  while (1) {
    char control[256];
    struct iovec bytes = {in, sizeof in};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (recvmsg(CONTROL, &message, 0) <= 0) return 0;
    uint64_t what;
    memcpy(&what, in, sizeof what);
    int fd = -1;
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (head) memcpy(&fd, CMSG_DATA(head), sizeof fd);
    if (what == EXEC) on_exec();
    if (what == KILL_ALL) on_kill_all();
    if (what == SERVE_FILES) on_serve_files(fd);
  }
}
