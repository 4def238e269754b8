// Memory and tensors between processes.
#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "binding/arguments.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/init.h"
#include "binding/under_way.h"
#include "core/memory/allocator.h"
#include "core/device/device.h"
#include "core/tensors/exported_tensor.h"
#include "core/error.h"
#include "core/memory/shared_folder.h"
#include "core/memory/shared_segment.h"

namespace troupe {
namespace {

// mapShared(path): an ArrayBuffer over all of the file, which this process and others read and write.
Napi::Value MapShared(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  void* base = MAP_FAILED;
  if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
    base = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (descriptor >= 0) close(descriptor);
  if (base == MAP_FAILED) {
    throw CodedError("FILE_UNREADABLE", "[mapShared] expected a file that can be read and written, got " + path, {{"path", path}});
  }
  const auto length = static_cast<size_t>(status.st_size);
  return Napi::ArrayBuffer::New(info.Env(), base, length, [length](Napi::Env, void* data) { munmap(data, length); });
}

// enterSharedFolder(folder, processIndex)
Napi::Value EnterSharedFolder(const Napi::CallbackInfo& info) {
  enter_shared_folder(info[0].As<Napi::String>(), info[1].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

Napi::Value LeaveSharedFolder(const Napi::CallbackInfo& info) {
  leave_shared_folder();
  return info.Env().Undefined();
}

Napi::Value InSharedFolder(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), in_shared_folder()); }

// emptyShared(dtype, ndim): a tensor with the sizes in the frame.
Napi::Value EmptyShared(const Napi::CallbackInfo& info) {
  const auto dtype = static_cast<at::ScalarType>(info[0].As<Napi::Number>().Int32Value());
  const uint32_t ndim = info[1].As<Napi::Number>().Uint32Value();
  const double* frame = Environment::of(info.Env()).frame.data;
  std::vector<int64_t> sizes(frame, frame + ndim);
  std::vector<int64_t> strides(ndim, 1);
  int64_t numel = 1;
  for (size_t dim = ndim; dim-- > 0;) {
    strides[dim] = numel;
    numel *= sizes[dim];
  }
  if (!default_device().is_cpu()) return Environment::give(info, at::empty(sizes, at::TensorOptions().dtype(dtype).device(default_device())));
  const auto segment = Segment::create(numel * static_cast<int64_t>(c10::elementSize(dtype)), present_tag(), true);
  return Environment::give(info, segment->tensor(dtype, sizes, strides, 0));
}

class TagScope {
 public:
  explicit TagScope(int32_t tag) : before_(set_allocation_tag(tag)) {}
  ~TagScope() { set_allocation_tag(before_); }
  TagScope(const TagScope&) = delete;
  TagScope& operator=(const TagScope&) = delete;

 private:
  const int32_t before_;
};

// emptySharedOffThread(dtype, numel): a promise of a flat tensor. The system clears new pages in a thread of its own; at the usual
// priority, as it holds the allocator's lock for some of that. Charged as if this thread had taken it.
Napi::Value EmptySharedOffThread(const Napi::CallbackInfo& info) {
  const auto dtype = static_cast<at::ScalarType>(info[0].As<Napi::Number>().Int32Value());
  const int64_t numel = info[1].As<Napi::Number>().Int64Value();
  const std::string tag = present_tag();
  const auto made = std::make_shared<at::Tensor>();
  return UnderWay::of(info.Env())
      .begin(
          info.Env(), 1,
          [made, dtype, numel, tag](size_t) {
            const TagScope charged(allocation_tag(tag));
            const int64_t bytes = numel * static_cast<int64_t>(c10::elementSize(dtype));
            *made = in_shared_folder() ? Segment::create(bytes, tag, true)->tensor(dtype, {numel}, {1}, 0)
                                       : at::empty({numel}, at::TensorOptions().dtype(dtype));
          },
          [made](Napi::Env env) { return Environment::give(env, std::move(*made)); });
}

Napi::Array numbers(Napi::Env env, const std::vector<int64_t>& values) {
  auto array = Napi::Array::New(env, values.size());
  for (uint32_t i = 0; i < values.size(); ++i) array.Set(i, static_cast<double>(values[i]));
  return array;
}

// exportRef(id, generation): what travels, plain data.
Napi::Value ExportRef(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const ExportedTensor exported = export_ref(ref_argument(info));
  Napi::Object result = Napi::Object::New(env);
  result.Set("name", exported.name);
  result.Set("owner", exported.owner);
  result.Set("dtype", exported.dtype);
  result.Set("sizes", numbers(env, exported.sizes));
  result.Set("strides", numbers(env, exported.strides));
  result.Set("offset", static_cast<double>(exported.offset));
  result.Set("readOnly", exported.read_only);
  result.Set("slot", exported.slot);
  return result;
}

// importRef(exported): the ref's id; the frame then holds its generation.
Napi::Value ImportRef(const Napi::CallbackInfo& info) {
  const auto data = info[0].As<Napi::Object>();
  const RefId ref = import_ref({data.Get("name").As<Napi::String>(), data.Get("owner").As<Napi::String>(),
                                data.Get("dtype").As<Napi::Number>().Int32Value(), whole_numbers(data.Get("sizes")),
                                whole_numbers(data.Get("strides")), data.Get("offset").As<Napi::Number>().Int64Value(),
                                data.Get("readOnly").ToBoolean(), data.Get("slot").As<Napi::Number>().Int32Value()});
  Environment::of(info.Env()).frame.data[0] = ref.generation;
  return Napi::Number::New(info.Env(), ref.id);
}

}  // namespace

void InitSharing(Napi::Env env, Napi::Object exports) {
  define<MapShared>(env, exports, "mapShared");
  define<EnterSharedFolder>(env, exports, "enterSharedFolder");
  define<LeaveSharedFolder>(env, exports, "leaveSharedFolder");
  define<InSharedFolder>(env, exports, "inSharedFolder");
  define<EmptyShared>(env, exports, "emptyShared");
  define<EmptySharedOffThread>(env, exports, "emptySharedOffThread");
  define<ExportRef>(env, exports, "exportRef");
  define<ImportRef>(env, exports, "importRef");
}

}  // namespace troupe
