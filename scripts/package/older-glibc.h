// Included before everything else when an addon is built for others (native-package.mjs): it then runs where libtorch's own wheels
// run, from glibc 2.28 and the libstdc++ of GCC 8 on, whatever this machine has. Each entry takes the place of a symbol that came
// later; the package is refused if one is left.
#pragma once

#ifdef __cplusplus
#include <bits/c++config.h>
#endif
#include <sys/stat.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17"
#define STAT_VERSION 0
#endif

// The same functions under the version that they have always had.
__asm__(".symver dlopen,dlopen@" BASE);
__asm__(".symver dlsym,dlsym@" BASE);
__asm__(".symver dlerror,dlerror@" BASE);
__asm__(".symver dladdr,dladdr@" BASE);
#ifdef __cplusplus
__asm__(".symver log,log@" BASE);
__asm__(".symver pow,pow@" BASE);
__asm__(".symver pthread_once,pthread_once@" BASE);
__asm__(".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
        "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
__asm__(".symver __xstat,__xstat@" BASE);
__asm__(".symver __fxstat,__fxstat@" BASE);

extern "C" {
int __xstat(int version, const char* path, struct stat* result);
int __fxstat(int version, int descriptor, struct stat* result);
__attribute__((weak, visibility("hidden"))) int stat(const char* path, struct stat* result) {
  return __xstat(STAT_VERSION, path, result);
}
__attribute__((weak, visibility("hidden"))) int fstat(int descriptor, struct stat* result) {
  return __fxstat(STAT_VERSION, descriptor, result);
}
// Counters of references are then always atomic.
__attribute__((weak, visibility("hidden"))) char __libc_single_threaded = 0;
}

// libstdc++ then waits by the wall clock, in a loop that looks at its own.
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#endif

#undef BASE
#undef STAT_VERSION
