// Work for the disk that JavaScript awaits as a promise.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>

#include "io/transfer_threads.h"

namespace troupe {

// The transfers that native threads carry out for one JavaScript thread, and those threads.
class UnderWay {
 public:
  // To and from files.
  static UnderWay& of(Napi::Env env);
  // In memory, by one thread of a lower priority than those that compute.
  static UnderWay& off_thread(Napi::Env env);
  UnderWay(Napi::Env env, const char* name, std::unique_ptr<TransferThreads> threads);

  // In the JavaScript thread: makes the value of a promise.
  using Result = std::function<Napi::Value(Napi::Env)>;

  // Begins a transfer. The promise is settled with the result of `result`, or with the error that `move` threw. The memory
  // that `result` captures is kept until then, and released in the JavaScript thread.
  Napi::Promise begin(Napi::Env env, size_t num_pieces, std::function<void(size_t)> move, Result result);

  TransferThreads& threads() { return *threads_; }

 private:
  struct Ended;
  static void come_back(napi_env env, napi_value, void* context, void* data);

  napi_threadsafe_function back_ = nullptr;
  int count_ = 0;
  std::unique_ptr<TransferThreads> threads_;
};

}  // namespace troupe
