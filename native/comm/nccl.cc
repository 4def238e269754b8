// The NCCL backend: bytes move between GPUs, signatures through Gloo beside them. Each operation first waits for the others'
// signatures on the host, some 0.1 ms, so that a mistake is an error and no hang; tensors then move in one group of sends and
// receives on a stream of their own, behind what the current stream holds, and the host waits for them. Reductions are
// libtorch's operators in rank order, so that the bits are those of the other backends.
#include "comm/backends.h"
#include "core/error.h"

#if HAVE_NCCL

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "comm/exchange.h"
#include "comm/gloo.h"
#include "comm/rendezvous.h"

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;

// How often the host looks whether a transfer is over: transfers of less are dominated by their signatures.
constexpr auto kPoll = std::chrono::microseconds(20);

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw std::runtime_error(std::string(what) + ": " + ncclGetErrorString(result));
}

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(result));
}

// An event that is recorded on one stream, to be waited for by another or looked at by the host.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void hold_back(cudaStream_t stream) { check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
  bool has_passed() const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    check(result, "cudaEventQuery");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(const Communicator::Identity& identity, c10d::Store& store)
      : device_(c10::cuda::current_device()), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_)) {
    const ncclUniqueId id = shared_id(identity, store);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // so that deadlines hold
    check(ncclCommInitRankConfig(&comm_, identity.size, id, identity.rank, &config), "ncclCommInitRankConfig");
    const auto deadline = Clock::now() + std::chrono::milliseconds(identity.deadline_ms);
    if (!is_over(deadline, [this] { return is_idle(); })) {
      ncclCommAbort(comm_);
      throw CodedError("COLLECTIVE_TIMEOUT", "[openCommunicator " + identity.name + "] NCCL to connect within " +
                                                 std::to_string(identity.deadline_ms) + " ms was expected: it did not");
    }
  }
  ~NcclTransport() override { close(); }

  std::vector<Loss> exchange(const std::vector<Message>& sends, const std::vector<Message>& receives,
                             Clock::time_point deadline) override {
    const std::lock_guard<std::mutex> lock(mutex_);  // one thread at a time may call a communicator of NCCL
    const auto lose_all = [&](const std::string& reason) {
      std::vector<Loss> losses;
      for (const auto* messages : {&sends, &receives}) {
        for (const Message& message : *messages) losses.push_back({message.peer, reason});
      }
      return losses;
    };
    if (comm_ == nullptr || interrupted_) return lose_all("");
    try {
      const c10::cuda::CUDAGuard on_device(device_);
      Event filled, moved;
      filled.record(c10::cuda::getCurrentCUDAStream(device_));
      filled.hold_back(stream_);
      move(sends, receives);
      const bool issued = is_over(deadline, [this] { return is_idle(); });
      if (issued) moved.record(stream_);
      if (issued && is_over(deadline, [&] { return is_idle() && moved.has_passed(); })) return {};
      end(ncclCommAbort);  // what is under way still writes into the tensors
      return lose_all("");
    } catch (const std::exception& error) {
      end(ncclCommAbort);
      return lose_all(error.what());
    }
  }

  void interrupt() override { interrupted_ = true; }

  void close() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    end(ncclCommDestroy);
  }

 private:
  static ncclUniqueId shared_id(const Communicator::Identity& identity, c10d::Store& store) {
    ncclUniqueId id;
    if (identity.rank == 0) {
      check(ncclGetUniqueId(&id), "ncclGetUniqueId");
      const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
      store.set("nccl", std::vector<uint8_t>(bytes, bytes + sizeof(id)));
    } else {
      const std::vector<uint8_t> bytes = store.get("nccl");
      std::memcpy(&id, bytes.data(), sizeof(id));
    }
    return id;
  }

  void move(const std::vector<Message>& sends, const std::vector<Message>& receives) {
    check(ncclGroupStart(), "ncclGroupStart");
    for (const Message& message : receives) {
      check(ncclRecv(message.memory.data_ptr(), message.memory.nbytes(), ncclInt8, message.peer, comm_, stream_), "ncclRecv");
    }
    for (const Message& message : sends) {
      check(ncclSend(message.memory.data_ptr(), message.memory.nbytes(), ncclInt8, message.peer, comm_, stream_), "ncclSend");
    }
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

  // Whether NCCL has done what it was last asked on the host.
  bool is_idle() const {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    check(state, "NCCL");
    return state == ncclSuccess;
  }

  template <class Condition>
  bool is_over(Clock::time_point deadline, const Condition& over) const {
    while (!over()) {
      if (interrupted_ || Clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kPoll);
    }
    return true;
  }

  void end(ncclResult_t (*how)(ncclComm_t)) {
    if (comm_ != nullptr) how(comm_);
    comm_ = nullptr;
  }

  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> interrupted_{false};
};

}  // namespace

std::shared_ptr<Communicator> make_nccl(Communicator::Identity identity) {
  if (c10::cuda::device_count() == 0) {
    throw CodedError("NCCL_UNAVAILABLE", "[nccl] a GPU for this rank was expected: this process sees none");
  }
  const c10::intrusive_ptr<c10d::Store> store = meet(identity);
  std::shared_ptr<Transport> signals = connect_gloo(identity, store);
  auto payload = std::make_shared<NcclTransport>(identity, *store);
  return std::make_shared<ExchangeCommunicator>(std::move(identity), std::move(signals), std::move(payload));
}

}  // namespace troupe::comm

#else

namespace troupe::comm {

std::shared_ptr<Communicator> make_nccl(Communicator::Identity) {
  throw CodedError("NCCL_UNAVAILABLE",
                   "[nccl] an addon built with NCCL: libtorch has no CUDA, or nccl.h or Gloo's headers were not there (npm run doctor)");
}

}  // namespace troupe::comm

#endif
