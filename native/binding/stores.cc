// Stores of c10d, by number: where hosts find each other.
#include "binding/arguments.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "comm/store.h"

namespace troupe {
namespace {

std::string string_at(const Napi::CallbackInfo& info, size_t place) { return info[place].As<Napi::String>().Utf8Value(); }

// openStore(host, port, listens, timeoutMs): its number.
Napi::Value OpenStore(const Napi::CallbackInfo& info) {
  const int64_t opened =
      comm::open_store(string_at(info, 0), static_cast<int>(whole_number(info, 1)), info[2].As<Napi::Boolean>(), whole_number(info, 3));
  return Napi::Number::New(info.Env(), static_cast<double>(opened));
}

// setInStore(store, key, value)
Napi::Value SetInStore(const Napi::CallbackInfo& info) {
  comm::set_in_store(whole_number(info, 0), string_at(info, 1), string_at(info, 2));
  return info.Env().Undefined();
}

// readFromStore(store, key): undefined where nobody has set it.
Napi::Value ReadFromStore(const Napi::CallbackInfo& info) {
  const auto value = comm::read_from_store(whole_number(info, 0), string_at(info, 1));
  if (!value) return info.Env().Undefined();
  return Napi::String::New(info.Env(), *value);
}

// addInStore(store, key, amount)
Napi::Value AddInStore(const Napi::CallbackInfo& info) {
  const int64_t sum = comm::add_in_store(whole_number(info, 0), string_at(info, 1), whole_number(info, 2));
  return Napi::Number::New(info.Env(), static_cast<double>(sum));
}

// storePort(store)
Napi::Value StorePort(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), comm::store_port(whole_number(info, 0)));
}

Napi::Value CloseStore(const Napi::CallbackInfo& info) {
  comm::close_store(whole_number(info, 0));
  return info.Env().Undefined();
}

// setHostAddress(address)
Napi::Value SetHostAddress(const Napi::CallbackInfo& info) {
  comm::set_host_address(string_at(info, 0));
  return info.Env().Undefined();
}

// hostAddress(): empty where nobody has set it.
Napi::Value HostAddress(const Napi::CallbackInfo& info) { return Napi::String::New(info.Env(), comm::host_address()); }

}  // namespace

void InitStores(Napi::Env env, Napi::Object exports) {
  define<OpenStore>(env, exports, "openStore");
  define<SetInStore>(env, exports, "setInStore");
  define<ReadFromStore>(env, exports, "readFromStore");
  define<AddInStore>(env, exports, "addInStore");
  define<StorePort>(env, exports, "storePort");
  define<CloseStore>(env, exports, "closeStore");
  define<SetHostAddress>(env, exports, "setHostAddress");
  define<HostAddress>(env, exports, "hostAddress");
}

}  // namespace troupe
