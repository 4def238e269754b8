// Collectives that JavaScript awaits as promises.
#pragma once

#include <napi.h>

#include <memory>

namespace troupe {

// The works that one JavaScript thread awaits. The thread that completes a work passes only its number on; the environment owns the
// work meanwhile, so that neither it nor its communicator is destroyed in one of the communicator's threads.
class AwaitedWorks {
 public:
  static AwaitedWorks& of(Napi::Env env);
  explicit AwaitedWorks(Napi::Env env);

  // In the JavaScript thread: settled as the work's wait() would end; resolved at once for one that was waited for before.
  Napi::Promise await(Napi::Env env, double work);

 private:
  struct Way;
  struct Waiter;
  static void come_back(napi_env env, napi_value, void* context, void* data);

  const std::shared_ptr<Way> way_;
  int count_ = 0;
};

}  // namespace troupe
