#include "binding/errors.h"

#include <exception>
#include <string>

#include "binding/environment.h"
#include "core/dispatch/describe.h"
#include "core/error.h"

namespace troupe {
namespace {

Napi::Value coded_error(Napi::Env env, const std::string& code, const std::string& message, const CodedError::Fields& fields) {
  Environment& environment = Environment::of(env);
  if (environment.make_error.IsEmpty()) return Napi::Error::New(env, message).Value();
  Napi::Object bag = Napi::Object::New(env);
  for (const auto& [key, value] : fields) bag.Set(key, value);
  return environment.make_error.Call({Napi::String::New(env, code), Napi::String::New(env, message), bag});
}

}  // namespace

Napi::Value error_in_flight(Napi::Env env, const char* where) {
  try {
    throw;
  } catch (const Napi::Error& error) {
    return error.Value();
  } catch (const CodedError& error) {
    return coded_error(env, error.code, error.what(), error.fields);
  } catch (const std::exception& error) {
    return coded_error(env, "NATIVE_FAILED", std::string("[") + where + "] " + plain_message(error), {});
  } catch (...) {
    return coded_error(env, "NATIVE_FAILED", std::string("[") + where + "] an unknown C++ exception", {});
  }
}

void throw_into_javascript(Napi::Env env, const char* where) noexcept {
  // A terminated worker refuses every call, also this one: then the thread is ending and nobody waits for the error.
  try {
    napi_throw(env, error_in_flight(env, where));
  } catch (...) {
  }
}

}  // namespace troupe
