// The addon's door: what JavaScript can call, by domain.
#include <napi.h>

#include "binding/environment.h"
#include "binding/init.h"
#include "core/memory/allocator.h"
#include "core/dispatch/meter.h"
#include "core/pin_library.h"

namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  troupe::pin_library();
  troupe::install_allocator();
  troupe::install_meter();
  env.SetInstanceData(new troupe::Environment);
  troupe::InitTensor(env, exports);
  troupe::InitAutograd(env, exports);
  troupe::InitRefs(env, exports);
  troupe::InitCollectives(env, exports);
  troupe::InitStores(env, exports);
  troupe::InitSharing(env, exports);
  troupe::InitLock(env, exports);
  troupe::InitMemory(env, exports);
  troupe::InitScratch(env, exports);
  troupe::InitSummed(env, exports);
  troupe::InitPaging(env, exports);
  troupe::InitOffThread(env, exports);
  troupe::InitBeside(env, exports);
  troupe::InitSystem(env, exports);
  troupe::InitDevice(env, exports);
  troupe::InitPrograms(env, exports);
  troupe::InitSim(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(troupe, Init)
