// The unit that multiplies tiles is one of many. While it works, the others end the block before and pack what follows: a row, or half
// a step, behind every few of its instructions. Alone they would take as long as it does.
//
// 32 x 32 sums stay in four tiles while two panels pass through the others. The factor with fewer panels is packed first, and all its
// panels pass by each group of the other's, of which the next is packed meanwhile. A group stays in the second-level cache, and a part of the
// panel that is read again soonest in the first: its loads would take longer than the products.

#include "kernels/cpu/amx_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/cpu/isa.h"

#if TROUPE_HAS_AMX

#include "kernels/cpu/amx_panels.h"
#include "kernels/cpu/product_ends.h"

namespace troupe {
namespace {

constexpr int64_t kTileSums = kTileHeight * kTileHeight;  // of one tile; a block has two by two, one behind the other
constexpr int64_t kBlockSums = 4 * kTileSums;
static_assert(kPanelWidth == kRounded, "a block ends by rows of its width");
constexpr int64_t kMaxSteps = 48;       // of a product in one round
constexpr int64_t kStepsOfRound = 24;   // of longer ones, whose sums wait in between
constexpr int64_t kGroupSteps = 288;    // times panels: 576 KiB, and as much for the next group
constexpr int64_t kStayingSteps = 512;  // times panels: 1 MiB of the second-level cache
constexpr int64_t kNearSteps = 12;      // of a panel: 24 KiB of the first-level cache

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
// The same without a place in the first-level cache.
#define TROUPE_LOAD_FAR_TILE(tile, from) __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(int64_t{64}))
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

// Lines of the cache that will be read soon.
struct Lines {
  const uint16_t* next = nullptr;
  int64_t count = 0;
};

// sums (+)= left right, for packed panels of `steps` steps. With each step a little of the block before is ended, of the next group packed, and
// of `ahead` prefetched. The next block reads the near panel again, so a part of it has the first-level cache for itself.
template <bool left_is_near>
void multiply_panels(const uint16_t* left, const uint16_t* right, int64_t steps, float* sums, bool adds, Spread ending, Spread packing,
                     Lines ahead) {
  __asm__ volatile("" ::: "memory");  // what was packed is read here
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
  const int64_t num_ends = ending.end - ending.next, num_packs = packing.end - packing.next, num_prefetches = divide_up(ahead.count, steps);
  int64_t ends_due = 0, packs_due = steps / 2;
  for (int64_t step = 0; step < steps; step++) {
    const bool is_near = step < kNearSteps;
    if (left_is_near && is_near) {
      TROUPE_LOAD_TILE(4, left);
      TROUPE_LOAD_TILE(5, left + kTileNumel);
    } else {
      TROUPE_LOAD_FAR_TILE(4, left);
      TROUPE_LOAD_FAR_TILE(5, left + kTileNumel);
    }
    if (!left_is_near && is_near) {
      TROUPE_LOAD_TILE(6, right);
      TROUPE_LOAD_TILE(7, right + kTileNumel);
    } else {
      TROUPE_LOAD_FAR_TILE(6, right);
      TROUPE_LOAD_FAR_TILE(7, right + kTileNumel);
    }
    TROUPE_MULTIPLY_TILES(0, 4, 6);
    TROUPE_MULTIPLY_TILES(1, 4, 7);
    TROUPE_MULTIPLY_TILES(2, 5, 6);
    TROUPE_MULTIPLY_TILES(3, 5, 7);
    left += kStepNumel;
    right += kStepNumel;
    for (int64_t i = 0; i < num_prefetches; i++, ahead.next += kRounded) __builtin_prefetch(ahead.next, 0, 2);
    for (ends_due += num_ends; ends_due >= steps; ends_due -= steps) ending.work(ending.what, ending.next++);
    for (packs_due += num_packs; packs_due >= steps; packs_due -= steps) packing.work(packing.what, packing.next++);
  }
  TROUPE_STORE_TILE(0, sums);
  TROUPE_STORE_TILE(1, sums + kTileSums);
  TROUPE_STORE_TILE(2, sums + 2 * kTileSums);
  TROUPE_STORE_TILE(3, sums + 3 * kTileSums);
  ending.finish();
  packing.finish();
}

// Memory for so many numbers, which begins with a line of the cache.
template <class T>
struct Lined {
  explicit Lined(int64_t numel) : memory(at::empty({numel * static_cast<int64_t>(sizeof(T)) + 64}, at::TensorOptions(at::kByte))) {}

  T* data() const { return reinterpret_cast<T*>(divide_up(reinterpret_cast<intptr_t>(memory.data_ptr()), 64) * 64); }

  const at::Tensor memory;
};

class AmxProduct {
 public:
  AmxProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue)
      : a_(a, true),
        b_(b, false),
        ends_(out, a_.size(), b_.size(), kPanelWidth, epilogue),
        end_row_(ends_.row_end()),
        a_passes_(a_.num_panels() <= b_.num_panels()),
        passing_(a_passes_ ? a_ : b_),
        grouped_(a_passes_ ? b_ : a_),
        steps_(divide_up(a_.inner(), kStep)),
        num_rounds_(steps_ <= kMaxSteps ? 1 : divide_up(steps_, kStepsOfRound)),
        steps_of_round_(divide_up(steps_, num_rounds_)),
        stays_(passing_.num_panels() * steps_ <= kStayingSteps && grouped_.reads_near()),
        group_(stays_ ? 1 : std::clamp<int64_t>(divide_up(grouped_.num_panels(), 4 * at::get_num_threads()), 1, kGroupSteps / steps_of_round_)),
        packed_(passing_.num_panels() * steps_ * kStepNumel) {}

  void run() {
    const Panels all{&passing_, 0, passing_.num_panels(), 0, steps_, packed_.data()};
    at::parallel_for(0, all.num_pieces(), 2 * steps_, [&](int64_t from, int64_t end) { Spread{Panels::pack, &all, from, end}.finish(); });
    at::parallel_for(0, divide_up(grouped_.num_panels(), group_), 1, [&](int64_t from, int64_t end) { multiply_groups(from, end); });
    ends_.add_columns();
  }

 private:
  // A group's panels in one of its rounds.
  Panels group_at(int64_t round, uint16_t* to) const {
    const int64_t first = round / num_rounds_ * group_, step = round % num_rounds_ * steps_of_round_;
    return {&grouped_, first, std::min(group_, grouped_.num_panels() - first), step * kStep, std::min(steps_of_round_, steps_ - step), to};
  }

  void multiply_groups(int64_t from, int64_t end) const {
    const TileShapes shapes;
    const int64_t group_numel = group_ * steps_of_round_ * kStepNumel;
    const Lined<uint16_t> packed(2 * group_numel);
    const Lined<float> sums((num_rounds_ > 1 ? group_ * passing_.num_panels() : 2) * kBlockSums);
    Panels group = group_at(from * num_rounds_, packed.data());
    Spread{Panels::pack, &group, 0, group.num_pieces()}.finish();
    for (int64_t round = from * num_rounds_; round < end * num_rounds_; round++) {
      Panels next{};
      if (round + 1 < end * num_rounds_) next = group_at(round + 1, packed.data() + (group.to == packed.data() ? group_numel : 0));
      multiply_group(group, next, sums.data());
      group = next;
    }
    fence_streams();
  }

  // All blocks of a group in a round.
  void multiply_group(const Panels& group, const Panels& next, float* sums) const {
    const int64_t panel_numel = group.steps * kStepNumel, num_lines = panel_numel / kRounded;  // of the cache
    const int64_t num_panels = passing_.num_panels(), num_blocks = num_panels * group.count;
    const bool left_is_near = a_passes_ != stays_, adds = group.k > 0, is_last = group.k / kStep + group.steps == steps_;
    BlockEnds ends{};
    Spread ending;
    for (int64_t block = 0; block < num_blocks; block++) {
      const int64_t index = block / group.count, i = block % group.count, own_index = group.first + i;
      const uint16_t* const passing = packed_.data() + (index * steps_ + group.k / kStep) * kStepNumel;
      const uint16_t* const own = group.to + i * panel_numel;
      const uint16_t *const left = a_passes_ ? passing : own, *const right = a_passes_ ? own : passing;
      float* const block_sums = sums + (num_rounds_ > 1 ? block : block % 2) * kBlockSums;
      const Spread packing{Panels::pack, &next, next.num_pieces() * block / num_blocks, next.num_pieces() * (block + 1) / num_blocks};
      Lines ahead;  // a share of the panel that passes next
      if (!stays_ && index + 1 < num_panels) {
        const int64_t line = num_lines * i / group.count;
        ahead = {passing + steps_ * kStepNumel + line * kRounded, num_lines * (i + 1) / group.count - line};
      }
      if (left_is_near) multiply_panels<true>(left, right, group.steps, block_sums, adds, ending, packing, ahead);
      else multiply_panels<false>(left, right, group.steps, block_sums, adds, ending, packing, ahead);
      if (!is_last) continue;
      const int64_t row = kPanelWidth * (a_passes_ ? index : own_index), column = kPanelWidth * (a_passes_ ? own_index : index);
      ends = ends_.of({block_sums, kTileHeight, kTileSums, kTileSums}, row, column);
      const bool is_followed = group.count > 1 ? i + 1 < group.count : index + 1 < num_panels;
      if (is_followed) ends.ahead = kPanelWidth * (a_passes_ == (group.count > 1) ? 1 : b_.size());
      ends.streams = ends_.fits_streams();
      ending = {end_row_, &ends, 0, ends.rows};
    }
    ending.finish();
  }

  const Factor a_, b_;
  const ProductEnds ends_;
  void (*const end_row_)(const void* block, int64_t row);
  const bool a_passes_;
  const Factor &passing_, &grouped_;
  const int64_t steps_, num_rounds_, steps_of_round_;
  const bool stays_;               // all that passes, in the second-level cache
  const int64_t group_;            // panels
  const Lined<uint16_t> packed_;   // all that passes
};

}  // namespace

void multiply_by_amx(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, const TileEpilogue& epilogue) {
  AmxProduct(a, b, out, epilogue).run();
}

}  // namespace troupe

#endif
