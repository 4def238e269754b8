// Locks on open files, which the kernel gives up with the process that holds them, however it ends.
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "binding/errors.h"
#include "binding/init.h"
#include "core/error.h"

namespace troupe {
namespace {

// tryLock(descriptor): whether the lock is ours now; undefined where the file system knows no locks.
Napi::Value TryLock(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  int result = 0;
  do result = flock(info[0].As<Napi::Number>().Int32Value(), LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result == 0) return Napi::Boolean::New(env, true);
  if (errno == EWOULDBLOCK) return Napi::Boolean::New(env, false);
  // Some network file systems are mounted without them.
  if (errno == ENOSYS || errno == ENOTSUP || errno == EOPNOTSUPP || errno == ENOLCK) return env.Undefined();
  throw CodedError("FILE_WRITE", std::string("[lock] expected a file that can be locked, got \"") + std::strerror(errno) + "\"");
}

}  // namespace

void InitLock(Napi::Env env, Napi::Object exports) { define<TryLock>(env, exports, "tryLock"); }

}  // namespace troupe
