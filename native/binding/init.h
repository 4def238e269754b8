// One line per domain: each adds its functions to the addon's exports.
#pragma once

#include <napi.h>

namespace troupe {

void InitTensor(Napi::Env env, Napi::Object exports);
void InitAutograd(Napi::Env env, Napi::Object exports);
void InitRefs(Napi::Env env, Napi::Object exports);
void InitCollectives(Napi::Env env, Napi::Object exports);
void InitStores(Napi::Env env, Napi::Object exports);
void InitSharing(Napi::Env env, Napi::Object exports);
void InitLock(Napi::Env env, Napi::Object exports);
void InitMemory(Napi::Env env, Napi::Object exports);
void InitScratch(Napi::Env env, Napi::Object exports);
void InitSummed(Napi::Env env, Napi::Object exports);
void InitOffThread(Napi::Env env, Napi::Object exports);
void InitBeside(Napi::Env env, Napi::Object exports);
void InitPaging(Napi::Env env, Napi::Object exports);
void InitSystem(Napi::Env env, Napi::Object exports);
void InitDevice(Napi::Env env, Napi::Object exports);
void InitPrograms(Napi::Env env, Napi::Object exports);
void InitSim(Napi::Env env, Napi::Object exports);

}  // namespace troupe
