#include "binding/under_way.h"

#include <exception>
#include <utility>

#include "binding/environment.h"
#include "binding/errors.h"

namespace troupe {
namespace {

// Pieces under way at once: enough to keep an NVMe queue from running dry, few enough to cost nothing while they wait.
constexpr int kNumThreads = 8;
// A third of the share of a thread that computes, where both want the same processor: a step's time is enough to copy its state.
constexpr int kLowerPriority = 5;

Napi::Value error_of(Napi::Env env, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return error_in_flight(env, "file");
  }
}

}  // namespace

// The end of one transfer, on its way back to the thread that asked for it.
struct UnderWay::Ended {
  Napi::Promise::Deferred promise;
  Result result;
  std::exception_ptr error;

  void settle(Napi::Env env) noexcept {
    // A terminated worker refuses every call, also these: then nobody waits any more.
    try {
      if (!error) {
        try {
          promise.Resolve(result(env));
          return;
        } catch (...) {
          error = std::current_exception();
        }
      }
      promise.Reject(error_of(env, error));
    } catch (...) {
    }
  }
};

UnderWay& UnderWay::of(Napi::Env env) {
  auto& under_way = Environment::of(env).under_way;
  if (!under_way) under_way = std::make_shared<UnderWay>(env, "file", std::make_unique<TransferThreads>(kNumThreads));
  return *under_way;
}

UnderWay& UnderWay::off_thread(Napi::Env env) {
  auto& own = Environment::of(env).off_thread;
  if (!own) own = std::make_shared<UnderWay>(env, "copy", std::make_unique<TransferThreads>(1, kLowerPriority));
  return *own;
}

UnderWay::UnderWay(Napi::Env env, const char* name, std::unique_ptr<TransferThreads> threads) : threads_(std::move(threads)) {
  const Napi::String told_as = Napi::String::New(env, name);
  napi_create_threadsafe_function(env, nullptr, nullptr, told_as, 0, 1, nullptr, nullptr, this, come_back, &back_);
  napi_unref_threadsafe_function(env, back_);
  // Made after the way back, so called before it is closed: no thread is left that could still take it.
  env.AddCleanupHook([this] { threads_.reset(); });
}

Napi::Promise UnderWay::begin(Napi::Env env, size_t num_pieces, std::function<void(size_t)> move, Result result) {
  const auto ended = std::make_shared<Ended>(Ended{Napi::Promise::Deferred::New(env), std::move(result), nullptr});
  if (num_pieces == 0) {
    ended->settle(env);
    return ended->promise.Promise();
  }
  const napi_threadsafe_function back = back_;
  if (count_++ == 0) napi_ref_threadsafe_function(env, back);
  // A member of its own type: a copy of the constant above could not be moved on, and would outlive the promise here.
  threads_->submit({num_pieces, std::move(move), [held = std::shared_ptr<Ended>(ended), back](std::exception_ptr error) mutable {
                      held->error = std::move(error);
                      napi_call_threadsafe_function(back, new std::shared_ptr<Ended>(std::move(held)), napi_tsfn_nonblocking);
                    }});
  return ended->promise.Promise();
}

// Runs in the JavaScript thread; without `env` that thread is ending, and nobody waits any more.
void UnderWay::come_back(napi_env env, napi_value, void* context, void* data) {
  const std::unique_ptr<std::shared_ptr<Ended>> ended(static_cast<std::shared_ptr<Ended>*>(data));
  if (!env) return;
  auto& under_way = *static_cast<UnderWay*>(context);
  // Only what is under way keeps a program alive.
  if (--under_way.count_ == 0) napi_unref_threadsafe_function(env, under_way.back_);
  (*ended)->settle(env);
}

}  // namespace troupe
