#include "devices/sim/fault.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "core/torch_version.h"
#include "devices/sim/device.h"

#if TROUPE_TORCH_AT_LEAST(2, 9)

namespace troupe::sim {
namespace {

struct sigaction before;

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// Nothing here may take a lock or memory: the fault can be anywhere.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (arena_of(info->si_addr) != nullptr) {
    say("[sim] expected the CPU to touch its own memory, got a touch of the device's (copy the tensor to the host first); where:\n");
    void* frames[32];
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
  } else if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    return before.sa_sigaction(signal, info, context);
  }
  // Touched again on return, it ends the process.
  ::signal(SIGSEGV, SIG_DFL);
}

}  // namespace

void name_faults() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs, while that may still be done
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace troupe::sim

#endif
