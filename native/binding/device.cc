// Devices: which there are, where a thread computes, and copies between them.
#include <ATen/core/Tensor.h>

#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "core/device/device.h"
#include "core/error.h"
#include "core/device/late_values.h"
#include "core/device/timeline.h"

namespace troupe {
namespace {

// A device as one number, so that switching between two of them costs no text.
double number_of(c10::Device device) {
  return static_cast<int32_t>(device.type()) * 256 + (device.has_index() ? device.index() : 0);
}

c10::Device device_of(const Napi::Value& value) {
  const int32_t number = value.As<Napi::Number>().Int32Value();
  const auto type = static_cast<c10::DeviceType>(number / 256);
  if (type == c10::DeviceType::CPU) return c10::Device(type);
  return {type, static_cast<c10::DeviceIndex>(number % 256)};
}

// deviceNumber(name): what the functions below take.
Napi::Value DeviceNumber(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), number_of(device_named(info[0].As<Napi::String>())));
}

// deviceCount(kind)
Napi::Value DeviceCount(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(device_count(info[0].As<Napi::String>())));
}

// setDefaultDevice(device): the one before, in this thread.
Napi::Value SetDefaultDevice(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), number_of(set_default_device(device_of(info[0]))));
}

// enterDevice(device), for the rest of this thread's life.
Napi::Value EnterDevice(const Napi::CallbackInfo& info) {
  enter_device(device_of(info[0]));
  return info.Env().Undefined();
}

// toDevice(handle, device): a handle, of the same tensor where it is there already.
Napi::Value ToDevice(const Napi::CallbackInfo& info) {
  HandleTable& handles = Environment::of(info.Env()).handles;
  const at::Tensor& tensor = Environment::tensor(info, 0, "to");
  const c10::Device device = device_of(info[1]);
  if (tensor.device() == device) return Environment::give(info, tensor, handles.guard(Environment::handle(info, 0)));
  if (device.is_cpu()) count_read_back();
  // CUDA has read memory that is not pinned when the call returns; nobody else promises that.
  return Environment::give(info, tensor.to(tensor.options().device(device), /*non_blocking=*/device.is_cuda()));
}

Napi::Value SayPlace(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), static_cast<double>(say_place())); }

// followPlace(place)
Napi::Value FollowPlace(const Napi::CallbackInfo& info) {
  follow_place(info[0].As<Napi::Number>().Int64Value());
  return info.Env().Undefined();
}

// beginReading(handle): the number of what `endReading` waits for.
Napi::Value BeginReading(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  environment.late_values.emplace(environment.next_late_value, std::make_shared<LateValues>(Environment::tensor(info, 0, "readLater")));
  return Napi::Number::New(info.Env(), environment.next_late_value++);
}

// endReading(number): a handle of the elements, in host memory; once.
Napi::Value EndReading(const Napi::CallbackInfo& info) {
  const auto node = Environment::of(info.Env()).late_values.extract(info[0].As<Napi::Number>().DoubleValue());
  if (node.empty()) throw CodedError("TENSOR_ARGUMENT", "[readLater] expected values that were not asked for yet, got those that were");
  return Environment::give(info, node.mapped()->wait());
}

Napi::Value ReadBacks(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(read_backs()));
}

}  // namespace

void InitDevice(Napi::Env env, Napi::Object exports) {
  define<DeviceNumber>(env, exports, "deviceNumber");
  define<DeviceCount>(env, exports, "deviceCount");
  define<SetDefaultDevice>(env, exports, "setDefaultDevice");
  define<EnterDevice>(env, exports, "enterDevice");
  define<ToDevice>(env, exports, "toDevice");
  define<SayPlace>(env, exports, "sayPlace");
  define<FollowPlace>(env, exports, "followPlace");
  define<BeginReading>(env, exports, "beginReading");
  define<EndReading>(env, exports, "endReading");
  define<ReadBacks>(env, exports, "readBacks");
}

}  // namespace troupe
