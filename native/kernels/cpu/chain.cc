#include "core/programs/chain.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/float_formats.h"
#include "kernels/cpu/halves.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/row_rules.h"

namespace troupe {
namespace {

// A tile of each value stays in the first cache.
constexpr int64_t kTile = 1024;

template <class Narrow, class Function>
void with_type(ChainType type, const Function& body) {
  if (type == ChainType::narrow) body(static_cast<Narrow*>(nullptr));
  else body(static_cast<float*>(nullptr));
}

size_t bytes_of(ChainType type) { return type == ChainType::narrow ? sizeof(uint16_t) : sizeof(float); }

// A step of one operand is given it twice.
template <class One, class Other, class To>
struct Apply {
  static TROUPE_INLINE void run(Elementwise op, const One* one, const Other* other, To* __restrict to, int64_t numel) {
    switch (op) {
#define TROUPE_EACH(name, arity, value)                                                                                 \
  case Elementwise::name:                                                                                               \
    if constexpr (arity == 2 || std::is_same_v<One, Other>) {                                                           \
      each_number(one, other, to, numel, [](float a, [[maybe_unused]] float b) TROUPE_INLINE_LAMBDA { return value; }); \
    }                                                                                                                   \
    return;
      TROUPE_ELEMENTWISE(TROUPE_EACH) TROUPE_ELEMENTARY(TROUPE_EACH)
#undef TROUPE_EACH
    }
  }

 private:
  template <class Value>
  static TROUPE_INLINE void each_number(const One* one, const Other* other, To* __restrict to, int64_t numel, const Value& value) {
    if constexpr (std::is_same_v<One, c10::Half> || std::is_same_v<Other, c10::Half> || std::is_same_v<To, c10::Half>) {
      const int64_t end = end_of_halves(numel);
      for (int64_t i = 0; i < end; i += kHalves) {
        float a[kHalves], b[kHalves], made[kHalves];
        load_eight(one + i, a);
        load_eight(other + i, b);
        for (int64_t j = 0; j < kHalves; j++) made[j] = value(a[j], b[j]);
        store_eight(made, to + i);
      }
      rest(one, other, to, end, numel, value);
    } else {
      for (int64_t i = 0; i < numel; i++) store(to, i, value(load(one, i), load(other, i)));
    }
  }

  // Out of line, so that it is compiled once and not for each instruction set.
  template <class Value>
  static __attribute__((noinline)) void rest(const One* one, const Other* other, To* __restrict to, int64_t first, int64_t end, const Value& value) {
    for (int64_t i = first; i < end; i++) store(to, i, value(load(one, i), load(other, i)));
  }
};

// One number for each row.
template <class From, class To>
struct ReduceRows {
  static TROUPE_INLINE void run(ChainWay way, const From* from, To* to, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; row++) store(to, row, way == ChainWay::max ? max(from + row * width, width) : sum(way, from + row * width, width));
  }

 private:
  static TROUPE_INLINE float sum(ChainWay way, const From* row, int64_t width) {
    const float sum = sum_terms<float, kChainLanes>(0, width, [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(row, i); });
    return way == ChainWay::mean ? sum / static_cast<float>(width) : sum;
  }

  static TROUPE_INLINE float max(const From* row, int64_t width) {
    float lanes[kChainLanes];
    for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
    const auto larger = [](float a, float b) TROUPE_INLINE_LAMBDA { return larger_of(a, b); };
    return fold_lanes(lanes, 0, width, [&](int64_t i) TROUPE_INLINE_LAMBDA { return load(row, i); }, larger);
  }
};

// Elements `begin` to `begin + numel - 1` of a source that repeats.
template <class Element>
void lay_out(const ChainSource& source, const Element* from, int64_t begin, int64_t numel, Element* to) {
  for (int64_t done = 0, length = 0; done < numel; done += length) {
    const int64_t at = begin + done, place = at / source.hold % source.period;
    if (source.hold == 1) {
      length = std::min(numel - done, source.period - place);
      std::copy_n(from + place, length, to + done);
    } else {
      length = std::min(numel - done, source.hold - at % source.hold);
      std::fill_n(to + done, length, from[place]);
    }
  }
}

// The part of a chain that one thread computes: rows, one behind the other.
template <class Narrow>
class Pass {
 public:
  Pass(const Chain& chain, const std::vector<const void*>& sources, const std::vector<void*>& outputs, int64_t begin, int64_t end)
      : chain_(chain),
        sources_(sources),
        outputs_(outputs),
        begin_(begin),
        end_(end),
        tile_(std::min(std::max<int64_t>(1, kTile / chain.width) * chain.width, end - begin)) {}

  void run() const {
    const size_t num_sources = chain_.sources.size();
    thread_local std::vector<float> tiles;
    thread_local std::vector<const void*> values;
    tiles.resize(std::max(tiles.size(), (static_cast<size_t>(chain_.num_scratch) + num_sources) * static_cast<size_t>(tile_)));
    values.resize(num_sources + chain_.steps.size());
    float* const own = tiles.data() + chain_.num_scratch * tile_;  // of the sources
    for (int64_t at = begin_; at < end_; at += tile_) {
      const int64_t numel = std::min(tile_, end_ - at);
      for (size_t i = 0; i < num_sources; i++) values[i] = read(i, at, numel, own + static_cast<int64_t>(i) * tile_);
      auto output = outputs_.begin();
      for (size_t i = 0; i < chain_.steps.size(); i++) {
        const ChainStep& step = chain_.steps[i];
        void* const to = step.scratch < 0 ? static_cast<char*>(*output++) + static_cast<size_t>(count(step.is_row, at)) * bytes_of(step.type)
                                          : static_cast<void*>(tiles.data() + step.scratch * tile_);
        apply(step, values[static_cast<size_t>(step.one)], values[static_cast<size_t>(step.other)], to, numel);
        values[num_sources + i] = to;
      }
    }
  }

 private:
  // How many numbers so many elements are.
  int64_t count(bool is_row, int64_t numel) const { return is_row ? numel / chain_.width : numel; }

  // Where a tile of a source is; in `tile`, unless it is read in place.
  const void* read(size_t index, int64_t at, int64_t numel, float* tile) const {
    const ChainSource& source = chain_.sources[index];
    const bool is_first = at == begin_;
    const int64_t place = count(source.is_row, at), here = count(source.is_row, numel);
    if (source.period == 0) {
      if (is_first) std::fill_n(tile, here, source.scalar);
      return tile;
    }
    const void* const from = sources_[index];
    if (source.period == count(source.is_row, chain_.numel)) {
      return static_cast<const char*>(from) + static_cast<size_t>(place) * bytes_of(source.type);
    }
    // The same in every tile.
    if (!is_first && count(source.is_row, tile_) % source.period == 0 && source.hold == 1) return tile;
    with_type<Narrow>(source.type, [&](auto* type) {
      using Element = std::remove_pointer_t<decltype(type)>;
      lay_out(source, static_cast<const Element*>(from), place, here, reinterpret_cast<Element*>(tile));
    });
    return tile;
  }

  ChainType type_of(int32_t value) const {
    const auto num_sources = static_cast<int32_t>(chain_.sources.size());
    return value < num_sources ? chain_.sources[static_cast<size_t>(value)].type : chain_.steps[static_cast<size_t>(value - num_sources)].type;
  }

  void apply(const ChainStep& step, const void* one, const void* other, void* to, int64_t numel) const {
    with_type<Narrow>(type_of(step.one), [&](auto* first) {
      with_type<Narrow>(step.type, [&](auto* made) {
        using One = std::remove_pointer_t<decltype(first)>;
        using To = std::remove_pointer_t<decltype(made)>;
        const One* const a = static_cast<const One*>(one);
        To* const y = static_cast<To*>(to);
        if (step.way == ChainWay::spread) return spread(a, y, numel);
        if (step.way != ChainWay::each) return run_best<ReduceRows<One, To>>(step.way, a, y, count(true, numel), chain_.width);
        with_type<Narrow>(type_of(step.other), [&](auto* second) {
          using Other = std::remove_pointer_t<decltype(second)>;
          run_best<Apply<One, Other, To>>(step.op, a, static_cast<const Other*>(other), y, count(step.is_row, numel));
        });
      });
    });
  }

  template <class One, class To>
  void spread(const One* rows, To* to, int64_t numel) const {
    for (int64_t row = 0; row < numel / chain_.width; row++) {
      store(to, row * chain_.width, load(rows, row));
      std::fill_n(to + row * chain_.width + 1, chain_.width - 1, to[row * chain_.width]);
    }
  }

  const Chain& chain_;
  const std::vector<const void*>& sources_;
  const std::vector<void*>& outputs_;
  const int64_t begin_, end_, tile_;
};

}  // namespace

void run_chain(const Chain& chain, const std::vector<const void*>& sources, const std::vector<void*>& outputs) {
  const int64_t width = chain.width;
  at::parallel_for(0, chain.numel / width, grain_rows(width), [&](int64_t begin, int64_t end) {
    if (chain.narrow == ChainNarrow::float16) Pass<c10::Half>(chain, sources, outputs, begin * width, end * width).run();
    else Pass<c10::BFloat16>(chain, sources, outputs, begin * width, end * width).run();
  });
}

}  // namespace troupe
