// What cerco-init uses of a C and C++ runtime, over system calls and nothing else.
//
// With the C library init would start five times slower: on virtual machines each of the CPUID
// instructions of its start-up leaves the guest. It would also be fifty times as large, all of it
// mapped beside hostile code. There is one thread, no exception, no locale, no environment and no
// dynamic linking.
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

int main(int count, char** words);

// Names that the compiler and the headers expect, and one cast that takes pointers and integers
// alike. NOLINTBEGIN(bugprone-reserved-identifier)

namespace {

int error_number = 0;

long raw(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#endif
}

// A system call as the C library gives it: -1 and errno on failure. Pointers and integers are taken
// alike.
template <class... T>
long call(long number, T... values) {
  const long args[6] = {(long)(values)...};
  const long result = raw(number, args[0], args[1], args[2], args[3], args[4], args[5]);
  if (result < 0 && result > -4096) {
    error_number = static_cast<int>(-result);
    return -1;
  }
  return result;
}

constexpr std::size_t kKernelSet = 8;  // bytes of a signal set in the kernel

// --- Memory: lists of free blocks by power of two, filled from pages; sizes come back at delete
// -----------

constexpr unsigned kSmallest = 5;  // 32 bytes
constexpr unsigned kLargest = 21;  // 2 MiB; above that, pages of its own
constexpr std::size_t kRefill = std::size_t{64} * 1024;

struct Block {
  Block* next;
};
Block* free_blocks[kLargest + 1];

void* pages(std::size_t size) {
  const long at =
      call(SYS_mmap, nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == -1) std::abort();
  return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): mmap's own answer
}

unsigned class_of(std::size_t size) {
  const auto bits = static_cast<unsigned>(std::bit_width(size == 0 ? 0 : size - 1));
  return bits < kSmallest ? kSmallest : bits;
}

void refill(unsigned index) {
  const std::size_t block = std::size_t{1} << index;
  const std::size_t whole = block < kRefill ? kRefill : block;
  char* at = static_cast<char*>(pages(whole));
  // Only the first word of each block is touched, and of a large block nothing beyond it.
  for (std::size_t offset = 0; offset < whole; offset += block) {
    auto* one = reinterpret_cast<Block*>(at + offset);
    one->next = free_blocks[index];
    free_blocks[index] = one;
  }
}

}  // namespace

void* operator new(std::size_t size) {
  const unsigned index = class_of(size);
  if (index > kLargest) return pages(size);
  if (free_blocks[index] == nullptr) refill(index);
  Block* block = free_blocks[index];
  free_blocks[index] = block->next;
  return block;
}

void operator delete(void* at, std::size_t size) noexcept {
  if (at == nullptr) return;
  const unsigned index = class_of(size);
  if (index > kLargest) {
    (void)call(SYS_munmap, at, size);
    return;
  }
  auto* block = static_cast<Block*>(at);
  block->next = free_blocks[index];
  free_blocks[index] = block;
}

namespace std {
// What the library throws is a mistake of ours: the process ends, and its sandbox with it.
void __throw_bad_alloc() {
  std::abort();
}
void __throw_bad_array_new_length() {
  std::abort();
}
void __throw_length_error(const char*) {
  std::abort();
}
void __throw_logic_error(const char*) {
  std::abort();
}
void __throw_out_of_range_fmt(const char*, ...) {
  std::abort();
}
}  // namespace std

extern "C" {

// --- Start and end
// --------------------------------------------------------------------------------

std::uintptr_t __stack_chk_guard = 0;
[[noreturn]] void __stack_chk_fail() {
  std::abort();
}

void _exit(int status) {
  while (true) (void)call(SYS_exit_group, status);
}
// Signals do not end pid 1.
void abort() noexcept {
  _exit(134);
}

// `stack` as the kernel leaves it: argc, argv, null, environment, null, auxiliary vector.
__attribute__((no_stack_protector, used, noreturn)) void start_here(const std::uintptr_t* stack) {
  const std::uintptr_t* at = stack + 1 + stack[0] + 1;
  while (*at != 0) ++at;
  const auto* vector = reinterpret_cast<const Elf64_auxv_t*>(at + 1);
  for (; vector->a_type != AT_NULL; ++vector) {
    if (vector->a_type == AT_RANDOM) {
      __stack_chk_guard =
          // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel hands it over as a number
          *reinterpret_cast<const std::uintptr_t*>(vector->a_un.a_val) & ~std::uintptr_t{0xff};
    }
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): and so are these
  _exit(main(static_cast<int>(stack[0]),
             reinterpret_cast<char**>(const_cast<std::uintptr_t*>(stack + 1))));
}

#if defined(__x86_64__)
__asm__(
    ".globl _start\n.type _start,@function\n_start:\n  xor %ebp,%ebp\n  mov %rsp,%rdi\n  and "
    "$-16,%rsp\n  call start_here\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n.type _start,%function\n_start:\n  mov x29,#0\n  mov x30,#0\n  mov x0,sp\n  bl "
    "start_here\n");
#endif

int* __errno_location() noexcept {
  return &error_number;
}

// --- Bytes
// ----------------------------------------------------------------------------------------

void* memcpy(void* to, const void* from, std::size_t size) noexcept {
#if defined(__x86_64__)
  void* const result = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return result;
#else
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < size; ++i) out[i] = in[i];
  return to;
#endif
}
void* memmove(void* to, const void* from, std::size_t size) noexcept {
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  if (reinterpret_cast<std::uintptr_t>(out) - reinterpret_cast<std::uintptr_t>(in) >= size) {
    return memcpy(to, from, size);
  }
  while (size > 0) {
    --size;
    out[size] = in[size];
  }
  return to;
}
void* memset(void* to, int value, std::size_t size) noexcept {
#if defined(__x86_64__)
  void* const result = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
  return result;
#else
  auto* out = static_cast<unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(value);
  return to;
#endif
}
int memcmp(const void* left, const void* right, std::size_t size) noexcept {
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}
int bcmp(const void* left, const void* right, std::size_t size) noexcept {
  return memcmp(left, right, size);
}
void* memchr(const void* from, int value, std::size_t size) noexcept {
  const auto* in = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < size; ++i) {
    if (in[i] == static_cast<unsigned char>(value)) return const_cast<unsigned char*>(in + i);
  }
  return nullptr;
}
std::size_t strlen(const char* text) noexcept {
  std::size_t size = 0;
  while (text[size] != 0) ++size;
  return size;
}
char* strncpy(char* to, const char* from, std::size_t size) noexcept {
  std::size_t i = 0;
  for (; i < size && from[i] != 0; ++i) to[i] = from[i];
  for (; i < size; ++i) to[i] = 0;
  return to;
}

// --- System calls
// ---------------------------------------------------------------------------------

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long args[6];
  for (long& arg : args) arg = va_arg(list, long);
  va_end(list);
  return call(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long args[4];
  for (unsigned long& arg : args) arg = va_arg(list, unsigned long);
  va_end(list);
  return static_cast<int>(call(SYS_prctl, option, args[0], args[1], args[2], args[3]));
}
int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  const long arg = va_arg(list, long);
  va_end(list);
  return static_cast<int>(call(SYS_ioctl, fd, request, arg));
}
int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const long arg = va_arg(list, long);
  va_end(list);
  return static_cast<int>(call(SYS_fcntl, fd, command, arg));
}

// Without a mode: nothing is made.
int open(const char* path, int flags, ...) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags, 0));
}
int openat(int dir, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const long mode = va_arg(list, long);
  va_end(list);
  return static_cast<int>(call(SYS_openat, dir, path, flags, mode));
}
int close(int fd) {
  return static_cast<int>(call(SYS_close, fd));
}
ssize_t read(int fd, void* to, std::size_t size) {
  return call(SYS_read, fd, to, size);
}
ssize_t write(int fd, const void* from, std::size_t size) {
  return call(SYS_write, fd, from, size);
}
ssize_t pread(int fd, void* to, std::size_t size, off_t at) {
  return call(SYS_pread64, fd, to, size, at);
}
ssize_t pwrite(int fd, const void* from, std::size_t size, off_t at) {
  return call(SYS_pwrite64, fd, from, size, at);
}
int dup2(int from, int to) noexcept {
  if (from == to) return fcntl(from, F_GETFD) < 0 ? -1 : to;
  return static_cast<int>(call(SYS_dup3, from, to, 0));
}
int pipe2(int ends[2], int flags) noexcept {
  return static_cast<int>(call(SYS_pipe2, ends, flags));
}
int poll(pollfd* list, nfds_t count, int milliseconds) {
  timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
  return static_cast<int>(
      call(SYS_ppoll, list, count, milliseconds < 0 ? nullptr : &time, nullptr, kKernelSet));
}

int fstat(int fd, struct stat* about) noexcept {
  return static_cast<int>(call(SYS_fstat, fd, about));
}
int fstatat(int dir, const char* name, struct stat* about, int flags) noexcept {
  return static_cast<int>(call(SYS_newfstatat, dir, name, about, flags));
}
int fstatfs(int fd, struct statfs* about) noexcept {
  return static_cast<int>(call(SYS_fstatfs, fd, about));
}
int mkdirat(int dir, const char* name, mode_t mode) noexcept {
  return static_cast<int>(call(SYS_mkdirat, dir, name, mode));
}
int symlinkat(const char* text, int dir, const char* name) noexcept {
  return static_cast<int>(call(SYS_symlinkat, text, dir, name));
}
ssize_t readlinkat(int dir, const char* name, char* to, std::size_t size) noexcept {
  return call(SYS_readlinkat, dir, name, to, size);
}
int unlinkat(int dir, const char* name, int flags) noexcept {
  return static_cast<int>(call(SYS_unlinkat, dir, name, flags));
}
mode_t umask(mode_t mask) noexcept {
  return static_cast<mode_t>(call(SYS_umask, mask));
}
int chdir(const char* path) noexcept {
  return static_cast<int>(call(SYS_chdir, path));
}

int socketpair(int family, int type, int protocol, int ends[2]) noexcept {
  return static_cast<int>(call(SYS_socketpair, family, type, protocol, ends));
}
int shutdown(int socket, int how) noexcept {
  return static_cast<int>(call(SYS_shutdown, socket, how));
}
int getsockopt(int socket, int level, int name, void* value, socklen_t* size) noexcept {
  return static_cast<int>(call(SYS_getsockopt, socket, level, name, value, size));
}
ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  return call(SYS_sendmsg, socket, message, flags);
}
ssize_t recvmsg(int socket, msghdr* message, int flags) {
  return call(SYS_recvmsg, socket, message, flags);
}
ssize_t recv(int socket, void* to, std::size_t size, int flags) {
  return call(SYS_recvfrom, socket, to, size, flags, nullptr, nullptr);
}
ssize_t send(int socket, const void* from, std::size_t size, int flags) {
  return call(SYS_sendto, socket, from, size, flags, nullptr, 0);
}
int socket(int domain, int type, int protocol) noexcept {
  return static_cast<int>(call(SYS_socket, domain, type, protocol));
}
int connect(int socket, const sockaddr* address, socklen_t size) {
  return static_cast<int>(call(SYS_connect, socket, address, size));
}
int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  return static_cast<int>(call(SYS_bind, socket, address, size));
}
int setsockopt(int socket, int level, int name, const void* value, socklen_t size) noexcept {
  return static_cast<int>(call(SYS_setsockopt, socket, level, name, value, size));
}
// cmsg(3): the next header, null where the rest of the buffer does not hold one.
cmsghdr* __cmsg_nxthdr(msghdr* message, cmsghdr* header) noexcept {
  if (header->cmsg_len < sizeof(cmsghdr)) return nullptr;
  auto* next = reinterpret_cast<unsigned char*>(header) + CMSG_ALIGN(header->cmsg_len);
  auto* end = static_cast<unsigned char*>(message->msg_control) + message->msg_controllen;
  if (next > end || static_cast<std::size_t>(end - next) < sizeof(cmsghdr)) return nullptr;
  auto* found = reinterpret_cast<cmsghdr*>(next);
  if (found->cmsg_len > static_cast<std::size_t>(end - next)) return nullptr;
  return found;
}

pid_t getpid() noexcept {
  return static_cast<pid_t>(call(SYS_getpid));
}
pid_t setsid() noexcept {
  return static_cast<pid_t>(call(SYS_setsid));
}
pid_t fork() noexcept {
  return static_cast<pid_t>(call(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}
int execve(const char* path, char* const argv[], char* const env[]) noexcept {
  return static_cast<int>(call(SYS_execve, path, argv, env));
}
pid_t wait4(pid_t pid, int* status, int options, rusage* used) noexcept {
  return static_cast<pid_t>(call(SYS_wait4, pid, status, options, used));
}
int kill(pid_t pid, int signal) noexcept {
  return static_cast<int>(call(SYS_kill, pid, signal));
}
int setrlimit(__rlimit_resource_t resource, const rlimit* limit) noexcept {
  return static_cast<int>(call(SYS_prlimit64, 0, resource, limit, nullptr));
}

// --- Signals: sets are the kernel's first 64 bits of the C library's
// ------------------------------------

int sigemptyset(sigset_t* set) noexcept {
  memset(set, 0, sizeof *set);
  return 0;
}
int sigfillset(sigset_t* set) noexcept {
  memset(set, 0xff, sizeof *set);
  return 0;
}
int sigaddset(sigset_t* set, int number) noexcept {
  set->__val[0] |= 1UL << (number - 1);
  return 0;
}
int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return static_cast<int>(call(SYS_rt_sigprocmask, how, set, old, kKernelSet));
}
int signalfd(int fd, const sigset_t* set, int flags) noexcept {
  return static_cast<int>(call(SYS_signalfd4, fd, set, kKernelSet, flags));
}
// Only for SIG_DFL and SIG_IGN: a handler would need a restorer.
__sighandler_t signal(int number, __sighandler_t handler) noexcept {
  struct {
    __sighandler_t handler;
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } const action = {handler, 0, nullptr, 0};
  if (handler != SIG_DFL && handler != SIG_IGN) std::abort();
  return call(SYS_rt_sigaction, number, &action, nullptr, kKernelSet) < 0 ? SIG_ERR : SIG_DFL;
}

}  // extern "C"

// NOLINTEND(bugprone-reserved-identifier)
