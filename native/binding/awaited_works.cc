#include "binding/awaited_works.h"

#include <mutex>
#include <utility>

#include "binding/environment.h"
#include "binding/errors.h"
#include "comm/communicator.h"

namespace troupe {

// To the JavaScript thread, from any other, as long as there is one.
struct AwaitedWorks::Way {
  std::mutex mutex;
  napi_threadsafe_function back = nullptr;

  void call(std::unique_ptr<Waiter> waiter) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (back != nullptr && napi_call_threadsafe_function(back, waiter.get(), napi_tsfn_nonblocking) == napi_ok) waiter.release();
  }
};

struct AwaitedWorks::Waiter {
  Napi::Promise::Deferred promise;
  double work;

  void settle(Napi::Env env) noexcept {
    // A terminated worker refuses every call, also these: then nobody waits any more.
    try {
      auto node = Environment::of(env).works.extract(work);
      try {
        if (!node.empty()) node.mapped()->wait();
        promise.Resolve(env.Undefined());
      } catch (...) {
        promise.Reject(error_in_flight(env, "collective"));
      }
    } catch (...) {
    }
  }
};

AwaitedWorks& AwaitedWorks::of(Napi::Env env) {
  auto& awaited = Environment::of(env).awaited;
  if (!awaited) awaited = std::make_shared<AwaitedWorks>(env);
  return *awaited;
}

AwaitedWorks::AwaitedWorks(Napi::Env env) : way_(std::make_shared<Way>()) {
  napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "collective"), 0, 1, nullptr, nullptr, this,
                                  come_back, &way_->back);
  napi_unref_threadsafe_function(env, way_->back);
  // Made after the way back, so called before it is closed.
  env.AddCleanupHook([way = way_] {
    const std::lock_guard<std::mutex> lock(way->mutex);
    way->back = nullptr;
  });
}

Napi::Promise AwaitedWorks::await(Napi::Env env, double work) {
  auto waiter = std::make_unique<Waiter>(Waiter{Napi::Promise::Deferred::New(env), work});
  const Napi::Promise promise = waiter->promise.Promise();
  const auto& works = Environment::of(env).works;
  const auto found = works.find(work);
  if (found == works.end()) {
    waiter->settle(env);
    return promise;
  }
  try {
    found->second->when_done([way = way_, waiter = std::make_shared<std::unique_ptr<Waiter>>(std::move(waiter))] { way->call(std::move(*waiter)); });
  } catch (...) {
    Environment::of(env).works.erase(work);
    throw;
  }
  // The call back comes in this thread, and later.
  if (count_++ == 0) napi_ref_threadsafe_function(env, way_->back);
  return promise;
}

void AwaitedWorks::come_back(napi_env env, napi_value, void* context, void* data) {
  const std::unique_ptr<Waiter> waiter(static_cast<Waiter*>(data));
  if (!env) return;
  auto& awaited = *static_cast<AwaitedWorks*>(context);
  // Only what is under way keeps a program alive.
  if (--awaited.count_ == 0) napi_unref_threadsafe_function(env, awaited.way_->back);
  waiter->settle(env);
}

}  // namespace troupe
