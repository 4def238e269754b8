// NCCL's interface, as far as it is used, and the library behind it: found when the first group asks for it, so that the addon
// neither needs its headers nor fails to load without it.
#pragma once

#include <cstddef>
#include <string>

namespace troupe::comm::nccl {

// As nccl.h has them; library.cc compares them with it where it is at hand.
struct UniqueId {
  char bytes[128];
};
struct OpaqueComm;
using Comm = OpaqueComm*;
enum Result : int { success = 0, in_progress = 7 };
enum DataType : int { int8 = 0, uint8 = 1, int32 = 2, int64 = 4, float16 = 6, float32 = 7, float64 = 8, bfloat16 = 9 };
enum ReduceOp : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };
// That of NCCL 2.14, which the later ones read too.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;  // so that deadlines hold
};

struct Library {
  Result (*get_unique_id)(UniqueId*);
  Result (*comm_init_rank_config)(Comm*, int size, UniqueId, int rank, Config*);
  Result (*comm_get_async_error)(Comm, Result*);
  Result (*comm_finalize)(Comm);
  Result (*comm_destroy)(Comm);
  Result (*comm_abort)(Comm);
  const char* (*get_error_string)(Result);
  const char* (*get_last_error)(Comm);
  Result (*group_start)();
  Result (*group_end)();
  Result (*send)(const void*, size_t, DataType, int peer, Comm, void* stream);
  Result (*recv)(void*, size_t, DataType, int peer, Comm, void* stream);
  Result (*all_gather)(const void*, void*, size_t, DataType, Comm, void* stream);
  Result (*broadcast)(const void*, void*, size_t, DataType, int root, Comm, void* stream);
  Result (*all_reduce)(const void*, void*, size_t, DataType, ReduceOp, Comm, void* stream);
  Result (*reduce)(const void*, void*, size_t, DataType, ReduceOp, int root, Comm, void* stream);
  Result (*reduce_scatter)(const void*, void*, size_t, DataType, ReduceOp, Comm, void* stream);
};

// The library that TROUPE_NCCL names, else the one that libtorch has loaded, else the system's. Thread-safe. Throws CodedError
// NCCL_UNAVAILABLE.
const Library& library();

// Throws what NCCL says of a result that is neither success nor "in progress".
void check(Result result, const char* what);

}  // namespace troupe::comm::nccl
