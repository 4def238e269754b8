// The unit that multiplies tiles is one of many. While it works, the others end the block before and lay out the panel after: a row, or
// half a step, behind every few of its instructions. Alone they would take as long as it does.
//
// 32 x 32 sums stay in four tiles while two panels pass through the others. The factor with fewer panels is laid out first, as much of it as
// stays in the second-level cache; panels of the other are laid out one ahead. A right factor whose rows are read across its panels is always
// the first: the processor foresees reads only where they follow each other.

#include "kernels/cpu/amx_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "kernels/cpu/isa.h"

#if TROUPE_HAS_AMX

#include "kernels/cpu/add_range.h"
#include "kernels/cpu/amx_ends.h"
#include "kernels/cpu/amx_panels.h"
#include "kernels/cpu/round_numbers.h"
#include "kernels/cpu/row_rules.h"

namespace troupe {
namespace {

constexpr int64_t kMaxSteps = 48;             // of a product in one round
constexpr int64_t kStepsOfRound = 32;         // of longer ones, whose sums wait in between
constexpr int64_t kMaxKeptSteps = 512;        // times panels: 1 MiB

constexpr int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// Work that is spread over the instructions of another unit.
struct Spread {
  void (*work)(const void* what, int64_t index) = nullptr;
  const void* what = nullptr;
  int64_t next = 0, end = 0;

  void finish() {
    while (next < end) work(what, next++);
  }
};

#define TROUPE_LOAD_TILE(tile, from) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(int64_t{64}))
#define TROUPE_STORE_TILE(tile, to) __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(int64_t{64}) : "memory")
#define TROUPE_CLEAR_TILE(tile) __asm__ volatile("tilezero %%tmm" #tile ::)
#define TROUPE_MULTIPLY_TILES(sum, left, right) __asm__ volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::)

// While it lives, all tiles of this thread have 16 rows of 64 bytes.
class TileShapes {
 public:
  TileShapes() {
    Shapes shapes;
    std::fill_n(shapes.row_bytes, 8, uint16_t{64});
    std::fill_n(shapes.rows, 8, uint8_t{kTileHeight});
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~TileShapes() { __asm__ volatile("tilerelease" ::); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;

 private:
  // As the processor reads it.
  struct alignas(64) Shapes {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
};

// sums (+)= left right, for laid panels of `steps` steps. The pieces are spread over the steps.
void multiply_panels(const uint16_t* left, const uint16_t* right, int64_t steps, float* sums, bool adds, Spread& ending, Spread& laying) {
  __asm__ volatile("" ::: "memory");  // what was laid out is read here
  if (adds) {
    TROUPE_LOAD_TILE(0, sums);
    TROUPE_LOAD_TILE(1, sums + kTileSums);
    TROUPE_LOAD_TILE(2, sums + 2 * kTileSums);
    TROUPE_LOAD_TILE(3, sums + 3 * kTileSums);
  } else {
    TROUPE_CLEAR_TILE(0);
    TROUPE_CLEAR_TILE(1);
    TROUPE_CLEAR_TILE(2);
    TROUPE_CLEAR_TILE(3);
  }
  const int64_t num_ends = ending.end - ending.next, num_lays = laying.end - laying.next;
  int64_t ends_due = 0, lays_due = steps / 2;
  for (int64_t step = 0; step < steps; step++) {
    TROUPE_LOAD_TILE(4, left);
    TROUPE_LOAD_TILE(6, right);
    TROUPE_MULTIPLY_TILES(0, 4, 6);
    TROUPE_LOAD_TILE(7, right + kTileNumel);
    TROUPE_MULTIPLY_TILES(1, 4, 7);
    TROUPE_LOAD_TILE(5, left + kTileNumel);
    TROUPE_MULTIPLY_TILES(2, 5, 6);
    TROUPE_MULTIPLY_TILES(3, 5, 7);
    left += kStepNumel;
    right += kStepNumel;
    for (ends_due += num_ends; ends_due >= steps; ends_due -= steps) ending.work(ending.what, ending.next++);
    for (lays_due += num_lays; lays_due >= steps; lays_due -= steps) laying.work(laying.what, laying.next++);
  }
  TROUPE_STORE_TILE(0, sums);
  TROUPE_STORE_TILE(1, sums + kTileSums);
  TROUPE_STORE_TILE(2, sums + 2 * kTileSums);
  TROUPE_STORE_TILE(3, sums + 3 * kTileSums);
  ending.finish();
  laying.finish();
}

// Memory begins with a line of the cache.
template <class T>
T* aligned(T* memory) {
  return reinterpret_cast<T*>(divide_up(reinterpret_cast<intptr_t>(memory), 64) * 64);
}

template <class T>
T* aligned_scratch(int64_t numel) {
  return aligned(scratch<T, Spread>(static_cast<size_t>(numel) + 64 / sizeof(T)));
}

bool begins_line(const at::Tensor& tensor) { return reinterpret_cast<intptr_t>(tensor.const_data_ptr()) % 64 == 0; }

class AmxProduct {
 public:
  AmxProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue)
      : a_(a, true),
        b_(b, false),
        epilogue_(epilogue),
        out_(out.scalar_type() == at::kBFloat16 ? out.mutable_data_ptr<at::BFloat16>() : nullptr),
        added_(out_ == nullptr ? out.mutable_data_ptr<float>() : nullptr),
        out_stride_(out.dim() == 2 ? out.stride(0) : b_.size()),
        streams_(static_cast<int64_t>(out.nbytes()) >= kStreamedBytes && out_stride_ % kPanelWidth == 0 && begins_line(out) &&
                 (!epilogue.product.defined() || begins_line(epilogue.product))),
        keeps_a_(!b_.reads_across() && a_.num_panels() <= b_.num_panels()),
        kept_(keeps_a_ ? a_ : b_),
        passing_(keeps_a_ ? b_ : a_) {
    if (epilogue.bias.defined()) {
      bias_ = at::zeros({num_columns()}, at::TensorOptions(at::kFloat));
      bias_.narrow(0, 0, b_.size()).copy_(epilogue.bias);
    }
    if (epilogue.dropout) {
      const TileDropout& dropout = *epilogue.dropout;
      dropout_ = DropoutMask::of(dropout.p, dropout.seed, dropout.stream).at(static_cast<uint64_t>(dropout.offset));
    }
    if (epilogue.column_sums.defined()) sums_ = at::empty({a_.num_panels(), num_columns()}, at::TensorOptions(at::kFloat));
    end_row_ = chosen_end();
  }

  void run() {
    const int64_t steps = divide_up(a_.inner(), kStep), num_rounds = steps <= kMaxSteps ? 1 : divide_up(steps, kStepsOfRound);
    const int64_t steps_of_round = divide_up(steps, num_rounds);
    const int64_t num_chunks = divide_up(kept_.num_panels(), std::max<int64_t>(1, kMaxKeptSteps / steps_of_round));
    const int64_t chunk = divide_up(kept_.num_panels(), num_chunks);
    const auto bytes = [](int64_t numel, at::ScalarType dtype) { return at::empty({numel + 64}, at::TensorOptions(dtype)); };
    const at::Tensor laid = bytes(chunk * steps_of_round * kStepNumel, at::kShort);
    at::Tensor waiting;
    if (num_rounds > 1) waiting = bytes(chunk * passing_.num_panels() * kBlockSums, at::kFloat);
    for (int64_t first = 0; first < kept_.num_panels(); first += chunk) {
      for (int64_t step = 0; step < steps; step += steps_of_round) {
        Round round;
        round.first = first;
        round.count = std::min(chunk, kept_.num_panels() - first);
        round.k = step * kStep;
        round.steps = std::min(steps_of_round, steps - step);
        round.is_first = step == 0;
        round.is_last = step + steps_of_round >= steps;
        round.kept = aligned(reinterpret_cast<uint16_t*>(laid.mutable_data_ptr<int16_t>()));
        round.waiting = num_rounds > 1 ? aligned(waiting.mutable_data_ptr<float>()) : nullptr;
        lay_kept(round);
        at::parallel_for(0, passing_.num_panels(), 1, [&](int64_t from, int64_t to) { pass(round, from, to); });
      }
    }
    if (!sums_.defined()) return;
    float* const total = epilogue_.column_sums.mutable_data_ptr<float>();
    for (int64_t panel = 0; panel < a_.num_panels(); panel++) {
      add_range(total, sums_.const_data_ptr<float>() + panel * num_columns(), b_.size(), panel > 0);
    }
  }

 private:
  // Some panels of the one factor stay, from `k` on, and all of the other pass by.
  struct Round {
    int64_t first, count;  // panels that stay
    int64_t k, steps;
    bool is_first, is_last;
    uint16_t* kept;
    float* waiting;  // the sums of all blocks between rounds, null if there is one
  };

  int64_t num_columns() const { return b_.num_panels() * kPanelWidth; }

  void (*chosen_end() const)(const void*, int64_t) {
    const TileEpilogue& epilogue = epilogue_;
    if (added_) return add_row;
    const bool is_exact = epilogue.gelu == GeluForm::exact;
    if (epilogue.gelu && !epilogue.activated.defined()) return is_exact ? end_row<ExactGelu, true> : end_row<TanhGelu, true>;
    const bool rounds = !bias_.defined() && !dropout_ && !epilogue.product.defined() && !epilogue.activated.defined() &&
                        !epilogue.residual.defined() && !sums_.defined();
    if (rounds) return round_row;
    return is_exact ? end_row<ExactGelu, false> : end_row<TanhGelu, false>;
  }

  void lay_kept(const Round& round) const {
    at::parallel_for(0, 2 * round.steps, 1, [&](int64_t from, int64_t to) {
      for (int64_t piece = from; piece < to; piece++) {
        for (int64_t i = 0; i < round.count; i++) {
          const Panel panel{&kept_, round.first + i, round.k, round.kept + i * round.steps * kStepNumel};
          Panel::lay(&panel, piece);
        }
      }
    });
  }

  static void lay(const Panel& panel, const Round& round) { Spread{Panel::lay, &panel, 0, 2 * round.steps}.finish(); }

  void pass(const Round& round, int64_t from, int64_t to) const {
    const TileShapes shapes;
    const int64_t panel_numel = round.steps * kStepNumel;
    uint16_t* const laid = aligned_scratch<uint16_t>(2 * panel_numel);
    float* const own_sums = aligned_scratch<float>(2 * kBlockSums);
    lay({&passing_, from, round.k, laid}, round);
    BlockEnds ends{};
    Spread ending;
    int64_t turn = 0;
    for (int64_t index = from; index < to; index++) {
      const uint16_t* const passing = laid + (index - from) % 2 * panel_numel;
      const Panel next{&passing_, index + 1, round.k, laid + (index - from + 1) % 2 * panel_numel};
      const int64_t num_lays = index + 1 < to ? 2 * round.steps : 0;
      for (int64_t i = 0; i < round.count; i++, turn++) {
        const uint16_t* const kept = round.kept + i * panel_numel;
        float* const sums = round.waiting ? round.waiting + (index * round.count + i) * kBlockSums : own_sums + turn % 2 * kBlockSums;
        Spread laying{Panel::lay, &next, num_lays * i / round.count, num_lays * (i + 1) / round.count};
        multiply_panels(keeps_a_ ? kept : passing, keeps_a_ ? passing : kept, round.steps, sums, !round.is_first, ending, laying);
        if (!round.is_last) continue;
        ends = ends_of(keeps_a_ ? round.first + i : index, keeps_a_ ? index : round.first + i, sums);
        ends.ahead = i + 1 < round.count ? kPanelWidth * (keeps_a_ ? b_.size() : 1) : 0;
        ending = {end_row_, &ends, 0, ends.rows};
      }
    }
    ending.finish();
    fence_streams();
  }

  BlockEnds ends_of(int64_t row_panel, int64_t column_panel, const float* sums) const {
    const int64_t row = row_panel * kPanelWidth, column = column_panel * kPanelWidth, at = row * b_.size() + column;
    const auto place = [at](const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<at::BFloat16>() + at : nullptr; };
    BlockEnds ends{};
    ends.sums = sums;
    ends.out = out_ ? out_ + row * out_stride_ + column : nullptr;
    ends.added = added_ ? added_ + row * out_stride_ + column : nullptr;
    ends.product = const_cast<at::BFloat16*>(place(epilogue_.product));
    ends.bias = bias_.defined() ? bias_.const_data_ptr<float>() + column : nullptr;
    ends.activated = place(epilogue_.activated);
    ends.residual = place(epilogue_.residual);
    ends.column_sums = sums_.defined() ? sums_.mutable_data_ptr<float>() + row_panel * num_columns() + column : nullptr;
    ends.dropout = dropout_ ? &*dropout_ : nullptr;
    ends.place = at;
    ends.stride = b_.size();
    ends.out_stride = out_stride_;
    ends.rows = std::min(kPanelWidth, a_.size() - row);
    ends.columns = std::min(kPanelWidth, b_.size() - column);
    ends.streams = streams_;
    return ends;
  }

  const Factor a_, b_;
  const TileEpilogue& epilogue_;
  at::BFloat16* const out_;
  float* const added_;
  const int64_t out_stride_;
  const bool streams_, keeps_a_;
  const Factor &kept_, &passing_;
  at::Tensor bias_;  // float32, zeros beyond the edge
  std::optional<DropoutMask> dropout_;
  at::Tensor sums_;  // of each panel of rows
  void (*end_row_)(const void* ends, int64_t row) = nullptr;
};

}  // namespace

void multiply_by_amx(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue) {
  AmxProduct(a, b, out, epilogue).run();
}

}  // namespace troupe

#endif
