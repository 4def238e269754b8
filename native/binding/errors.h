// The wall between C++ exceptions and JavaScript: every native function is registered through it.
#pragma once

#include <napi.h>

namespace troupe {

// Inside a catch block: the exception in flight as a JavaScript error. A CodedError becomes the TroupeError of its code, any
// other exception one of NATIVE_FAILED.
Napi::Value error_in_flight(Napi::Env env, const char* where);

// Inside a catch block: turns the exception in flight into a pending JavaScript error.
void throw_into_javascript(Napi::Env env, const char* where) noexcept;

using Body = Napi::Value (*)(const Napi::CallbackInfo& info);

// A Body that lets no exception through; `info.Data()` is its name, for errors that carry none of their own.
template <Body body>
Napi::Value walled(const Napi::CallbackInfo& info) {
  try {
    return body(info);
  } catch (...) {
    throw_into_javascript(info.Env(), static_cast<const char*>(info.Data()));
    return info.Env().Undefined();
  }
}

// Puts the function on the addon's exports. `name` must be a literal.
template <Body body>
void define(Napi::Env env, Napi::Object exports, const char* name) {
  exports.Set(name, Napi::Function::New<walled<body>>(env, name, const_cast<char*>(name)));
}

}  // namespace troupe
