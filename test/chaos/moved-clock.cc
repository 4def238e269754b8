// Loaded before all else (LD_PRELOAD): the time of day is as many seconds ahead as the file of TROUPE_CHAOS_CLOCK says. Clocks that only
// measure are left alone, as they are where a person or NTP sets a machine's clock.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

// Mapped, so that a program sees the clock move while it runs.
time_t seconds_ahead() {
  static const volatile int64_t* const ahead = [] {
    static const int64_t none = 0;
    const char* path = getenv("TROUPE_CHAOS_CLOCK");
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return const_cast<const volatile int64_t*>(&none);
    void* mapped = mmap(nullptr, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return mapped == MAP_FAILED ? &none : static_cast<const volatile int64_t*>(mapped);
  }();
  return *ahead;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) {
  static const auto read = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int failed = read(clock, now);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds_ahead();
  return failed;
}

extern "C" int gettimeofday(timeval* now, void* zone) {
  static const auto read = next<int (*)(timeval*, void*)>("gettimeofday");
  const int failed = read(now, zone);
  if (failed == 0) now->tv_sec += seconds_ahead();
  return failed;
}

extern "C" time_t time(time_t* now) {
  static const auto read = next<time_t (*)(time_t*)>("time");
  const time_t moved = read(nullptr) + seconds_ahead();
  if (now != nullptr) *now = moved;
  return moved;
}
