// Tensors and operators: the argument frame, handles, bytes in and out.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstring>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/programs.h"
#include "binding/typed_array.h"
#include "core/dispatch/describe.h"
#include "core/device/device.h"
#include "core/dispatch/dispatch.h"
#include "core/error.h"
#include "core/memory/map_file.h"
#include "core/dispatch/operators.h"

namespace troupe {
namespace {

// connect(frame: Float64Array, schemas: string[], makeError): before anything else. A later copy of the module takes over.
Napi::Value Connect(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  environment.make_error = Napi::Persistent(info[2].As<Napi::Function>());
  auto frame = info[0].As<Napi::Float64Array>();
  environment.frame = Frame{frame.Data(), frame.ElementLength()};
  environment.frame_owner = Napi::Persistent(info[0].As<Napi::Object>());
  const auto table = info[1].As<Napi::Array>();
  std::vector<std::string> schemas;
  for (uint32_t i = 0; i < table.Length(); ++i) schemas.push_back(table.Get(i).As<Napi::String>());
  define_operators(schemas);
  return info.Env().Undefined();
}

// call(operatorIndex): first result. The hot path, hence without wrappers: every call of every operator comes through here.
napi_value Call(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument = nullptr;
  void* data = nullptr;
  uint32_t index = 0;
  napi_value result = nullptr;
  try {
    napi_get_cb_info(env, info, &count, &argument, nullptr, &data);
    napi_get_value_uint32(env, argument, &index);
    auto& environment = *static_cast<Environment*>(data);
    const double first = call_operator(index, environment.frame, environment.handles, environment.strings);
    if (Recording::present() != nullptr) note_refusal(env);
    napi_create_double(env, first, &result);
  } catch (...) {
    throw_into_javascript(env, "call");
  }
  return result;
}

// intern(text): the number that stands for the text in the frame.
Napi::Value Intern(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), Environment::of(info.Env()).strings.intern(info[0].As<Napi::String>()));
}

// release(handle): whether it named a tensor.
Napi::Value Release(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), Environment::of(info.Env()).handles.release(Environment::handle(info, 0)));
}

// releaseMany(count): the first `count` handles in the frame.
Napi::Value ReleaseMany(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const uint32_t count = info[0].As<Napi::Number>().Uint32Value();
  for (uint32_t i = 0; i < count; ++i) environment.handles.release(static_cast<Handle>(environment.frame.data[i]));
  return info.Env().Undefined();
}

// watch(handle): bytes of memory that V8 now reckons with, because only its collector will release them.
Napi::Value Watch(const Napi::CallbackInfo& info) {
  const auto bytes = static_cast<int64_t>(Environment::tensor(info, 0, "tensor").nbytes());
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), bytes);
  return Napi::Number::New(info.Env(), static_cast<double>(bytes));
}

// unwatch(bytes): takes that back.
Napi::Value Unwatch(const Napi::CallbackInfo& info) {
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), -info[0].As<Napi::Number>().Int64Value());
  return info.Env().Undefined();
}

Napi::Value LiveTensors(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(Environment::of(info.Env()).handles.live()));
}

// describe(handle): dtype number; the frame then holds ndim and the sizes.
Napi::Value Describe(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = Environment::tensor(info, 0, "shape");
  const Frame& frame = Environment::of(info.Env()).frame;
  frame.data[0] = static_cast<double>(tensor.dim());
  for (int64_t i = 0; i < tensor.dim(); ++i) frame.data[i + 1] = static_cast<double>(tensor.size(i));
  return Napi::Number::New(info.Env(), static_cast<double>(static_cast<int>(tensor.scalar_type())));
}

Napi::Value Device(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), Environment::tensor(info, 0, "device").device().str());
}

// item(handle): the one element of a tensor.
Napi::Value Item(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = Environment::tensor(info, 0, "item");
  if (tensor.numel() != 1) {
    throw CodedError("TENSOR_ARGUMENT", "[item] expected a tensor of one element, got " + describe_tensor(tensor));
  }
  refuse_reading(info.Env());
  if (!tensor.is_cpu()) count_read_back();
  return Napi::Number::New(info.Env(), tensor.item().toDouble());
}

// Copies from memory that is the caller's again at once.
void copy_from_host(const at::Tensor& target, const at::Tensor& source) {
  if (target.is_cpu()) {
    target.copy_(source);
    return;
  }
  // Converted by the host: a device would read both kinds late.
  const at::Tensor converted = source.to(target.scalar_type());
  // CUDA has read memory that is not pinned when the call returns; nobody else promises that.
  target.copy_(converted, /*non_blocking=*/target.is_cuda());
}

// tensor(array, dtype, ndim): a new tensor of the sizes in the frame; 16-bit floats are taken as raw bits.
Napi::Value FromArray(const Napi::CallbackInfo& info) {
  const Frame& frame = Environment::of(info.Env()).frame;
  const auto dtype = static_cast<at::ScalarType>(info[1].As<Napi::Number>().Int32Value());
  std::vector<int64_t> sizes(info[2].As<Napi::Number>().Uint32Value());
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<int64_t>(frame.data[i]);
  const at::NoGradGuard no_grad;
  const at::Tensor source = view_of_typed_array(info[0], dtype);
  const auto make = [&] {
    at::Tensor made = at::empty(sizes, at::TensorOptions().dtype(dtype).device(default_device()));
    copy_from_host(made, source.view(sizes));
    return made;
  };
  Recording* const recording = Recording::present();
  return Environment::give(info, recording == nullptr ? make() : recording->literal(make));
}

void check_length(const char* op, const at::Tensor& tensor, const at::Tensor& array) {
  if (array.numel() == tensor.numel()) return;
  throw CodedError("TENSOR_ARGUMENT", std::string("[") + op + "] expected an array of " + std::to_string(tensor.numel()) + " elements for " +
                                          describe_tensor(tensor) + ", got one of " + std::to_string(array.numel()));
}

// copyFrom(handle, array): overwrites the tensor's elements, converting to its dtype.
Napi::Value CopyFrom(const Napi::CallbackInfo& info) {
  const at::Tensor& target = Environment::writable_tensor(info, 0, "copyFrom");
  const at::Tensor source = view_of_typed_array(info[1], target.scalar_type());
  check_length("copyFrom", target, source);
  const at::NoGradGuard no_grad;
  copy_from_host(target, source.view(target.sizes()));
  return info.Env().Undefined();
}

// toTypedArray(handle, array): the tensor's elements into an array of the matching kind.
Napi::Value ToTypedArray(const Napi::CallbackInfo& info) {
  const at::Tensor& source = Environment::tensor(info, 0, "toTypedArray");
  refuse_reading(info.Env());
  const at::NoGradGuard no_grad;
  const at::Tensor target = view_of_typed_array(info[1], source.scalar_type());
  check_length("toTypedArray", source, target);
  if (source.is_cpu() && source.is_contiguous() && source.scalar_type() == target.scalar_type()) {
    // One plain copy: libtorch's own waits at a barrier of all its threads, which costs many times that on busy cores.
    if (source.numel() > 0) std::memcpy(target.data_ptr(), source.data_ptr(), source.nbytes());
  } else {
    if (!source.is_cpu()) count_read_back();
    target.view(source.sizes()).copy_(source);
  }
  return info.Env().Undefined();
}

// mapFile(path, dtype, numel, offsetBytes)
Napi::Value MapFile(const Napi::CallbackInfo& info) {
  const auto dtype = static_cast<at::ScalarType>(info[1].As<Napi::Number>().Int32Value());
  at::Tensor tensor = map_file(info[0].As<Napi::String>(), dtype, info[2].As<Napi::Number>().Int64Value(),
                               info[3].As<Napi::Number>().Int64Value());
  return Environment::give(info, std::move(tensor), Guard{/*read_only=*/true, {}, {}});
}

// schemas(namespace): every operator registered under it.
Napi::Value Schemas(const Napi::CallbackInfo& info) {
  const auto texts = registered_schemas(info[0].As<Napi::String>());
  Napi::Array result = Napi::Array::New(info.Env(), texts.size());
  for (uint32_t i = 0; i < texts.size(); ++i) result.Set(i, texts[i]);
  return result;
}

}  // namespace

void InitTensor(Napi::Env env, Napi::Object exports) {
  napi_value call = nullptr;
  napi_create_function(env, "call", NAPI_AUTO_LENGTH, Call, &Environment::of(env), &call);
  exports.Set("call", call);
  define<Connect>(env, exports, "connect");
  define<Intern>(env, exports, "intern");
  define<Release>(env, exports, "release");
  define<ReleaseMany>(env, exports, "releaseMany");
  define<Watch>(env, exports, "watch");
  define<Unwatch>(env, exports, "unwatch");
  define<LiveTensors>(env, exports, "liveTensors");
  define<Describe>(env, exports, "describe");
  define<Device>(env, exports, "device");
  define<Item>(env, exports, "item");
  define<FromArray>(env, exports, "tensor");
  define<CopyFrom>(env, exports, "copyFrom");
  define<ToTypedArray>(env, exports, "toTypedArray");
  define<MapFile>(env, exports, "mapFile");
  define<Schemas>(env, exports, "schemas");
}

}  // namespace troupe
