// Makes Node a server that forks: preloaded into it (LD_PRELOAD), this library takes the place of its `main`. It loads the addon, and
// libtorch with it, and forks whenever it is asked to; in a child `main` is Node's own. Loading takes 0.4 s, a fork a few milliseconds. Node
// itself cannot fork, since it has threads; here it has not begun.
//
// TROUPE_FORK_SERVER names the addon. A request on standard input is its length (uint32) and strings, each with a zero behind it: the path
// of a Unix socket, to which the child connects twice, for its standard output and error; its working folder; its environment. Answers on
// standard output are lines: "ready"; "began PID", one for each request and in their order; "ended PID STATUS SIGNAL", one of which is -1.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Main(int argc, char** argv, char** environment);

static Main* main_of_node;
static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};  // which terminals and schedulers send to all processes

static void interrupt(int signal) { (void)signal; }

// A fork has only the thread that makes it.
static int count_threads(void) {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 0;
  int count = 0;
  for (const struct dirent* task; (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static int read_all(void* to, size_t count) {
  for (size_t done = 0; done < count;) {
    const ssize_t got = read(STDIN_FILENO, (char*)to + done, count - done);
    if (got == 0 || (got < 0 && errno != EINTR)) return 0;
    if (got > 0) done += (size_t)got;
  }
  return 1;
}

static int connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, path);
  const int to = socket(AF_UNIX, SOCK_STREAM, 0);
  return to >= 0 && connect(to, (const struct sockaddr*)&address, sizeof address) == 0 ? to : -1;
}

// Ends a child before libtorch takes back its operators one by one, which copies most of the memory that it shares.
static void leave(int status, void* unused) {
  (void)unused;
  fflush(NULL);
  _exit(status);
}

static void begin_child(pid_t server, char* request, size_t size) {
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // Ends a fork that still loads with its parent, as where a process is started by itself; later its sockets do.
  prctl(PR_SET_PDEATHSIG, SIGUSR2);
  const int nothing = open("/dev/null", O_RDONLY), output = connect_to(request), error = connect_to(request);
  if (getppid() != server || nothing < 0 || output < 0 || error < 0) _exit(127);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  close(nothing);
  close(output);
  close(error);
  char* const folder = request + strlen(request) + 1;
  if (chdir(folder) != 0) _exit(127);
  size_t count = 0;
  for (size_t i = 0; i < size; i++) count += request[i] == 0;
  char** const environment = calloc(count, sizeof *environment);
  size_t next = 0;
  for (char* at = folder + strlen(folder) + 1; at < request + size; at += strlen(at) + 1) environment[next++] = at;
  environ = environment;
  on_exit(leave, NULL);
}

static void report_ends(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    dprintf(STDOUT_FILENO, "ended %d %d %d\n", pid, WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : -1);
  }
}

static int serve(int argc, char** argv, char** environment) {
  (void)environment;
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  // A child's end comes only while requests are waited for.
  sigset_t ends, others;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ends, &others);
  signal(SIGCHLD, interrupt);
  if (dlopen(getenv("TROUPE_FORK_SERVER"), RTLD_LAZY) == NULL || count_threads() != 1) _exit(1);
  dprintf(STDOUT_FILENO, "ready\n");
  const pid_t server = getpid();
  for (;;) {
    report_ends();
    struct pollfd requests = {.fd = STDIN_FILENO, .events = POLLIN};
    if (ppoll(&requests, 1, NULL, &others) < 0) continue;
    uint32_t size;
    if (!read_all(&size, sizeof size)) _exit(0);
    char* const request = malloc(size);
    if (request == NULL || !read_all(request, size)) _exit(0);
    const pid_t pid = fork();
    if (pid == 0) {
      begin_child(server, request, size);
      return main_of_node(argc, argv, environ);
    }
    free(request);
    dprintf(STDOUT_FILENO, "began %d\n", pid);
  }
}

// The C library's first call in every program.
int __libc_start_main(Main* main, int argc, char** argv, void (*init)(void), void (*fini)(void), void (*end_loader)(void), void* stack) {
  typedef int Start(Main*, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  Start* const start = (Start*)dlsym(RTLD_NEXT, "__libc_start_main");
  main_of_node = main;
  return start(getenv("TROUPE_FORK_SERVER") == NULL ? main : serve, argc, argv, init, fini, end_loader, stack);
}
