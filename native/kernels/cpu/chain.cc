#include "core/programs/chain.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/cpu/isa.h"

namespace troupe {
namespace {

// A tile of each value stays in the first cache.
constexpr int64_t kTile = 1024;

struct Apply {
  static TROUPE_INLINE void run(Elementwise op, const float* one, const float* other, float* to, int64_t numel) {
    switch (op) {
      case Elementwise::add:
        for (int64_t i = 0; i < numel; i++) to[i] = one[i] + other[i];
        return;
      case Elementwise::subtract:
        for (int64_t i = 0; i < numel; i++) to[i] = one[i] - other[i];
        return;
      case Elementwise::multiply:
        for (int64_t i = 0; i < numel; i++) to[i] = one[i] * other[i];
        return;
      case Elementwise::divide:
        for (int64_t i = 0; i < numel; i++) to[i] = one[i] / other[i];
        return;
      case Elementwise::negate:
        for (int64_t i = 0; i < numel; i++) to[i] = -one[i];
        return;
    }
  }
};

void copy_repeated(const float* from, int64_t period, int64_t begin, int64_t numel, float* to) {
  for (int64_t done = 0; done < numel;) {
    const int64_t place = (begin + done) % period;
    const int64_t length = std::min(numel - done, period - place);
    std::copy_n(from + place, length, to + done);
    done += length;
  }
}

void run_range(const Chain& chain, const std::vector<const float*>& sources, const std::vector<float*>& outputs, int64_t begin,
               int64_t end) {
  const size_t num_sources = chain.sources.size();
  const int64_t tile = std::min(kTile, end - begin);
  const auto repeats = [&](size_t i) { return chain.sources[i].period != chain.numel; };
  size_t num_tiles = static_cast<size_t>(chain.num_scratch);
  for (size_t i = 0; i < num_sources; i++) num_tiles += repeats(i);
  thread_local std::vector<float> tiles;
  thread_local std::vector<const float*> values;
  tiles.resize(std::max(tiles.size(), num_tiles * static_cast<size_t>(tile)));
  values.resize(num_sources + chain.steps.size());
  float* const own = tiles.data() + chain.num_scratch * tile;  // of the sources that repeat
  float* next = own;
  for (size_t i = 0; i < num_sources; i++) {
    if (!repeats(i)) continue;
    if (chain.sources[i].period == 0) std::fill_n(next, tile, chain.sources[i].scalar);
    values[i] = next;
    next += tile;
  }
  for (int64_t at = begin; at < end; at += tile) {
    const int64_t numel = std::min(tile, end - at);
    for (size_t i = 0; i < num_sources; i++) {
      const int64_t period = chain.sources[i].period;
      if (!repeats(i)) values[i] = sources[i] + at;
      else if (period != 0) copy_repeated(sources[i], period, at, numel, const_cast<float*>(values[i]));
    }
    size_t output = 0;
    for (size_t i = 0; i < chain.steps.size(); i++) {
      const ChainStep& step = chain.steps[i];
      float* const to = step.scratch < 0 ? outputs[output++] + at : tiles.data() + step.scratch * tile;
      run_best<Apply>(step.op, values[step.one], values[step.other], to, numel);
      values[num_sources + i] = to;
    }
  }
}

}  // namespace

void run_chain(const Chain& chain, const std::vector<const float*>& sources, const std::vector<float*>& outputs) {
  at::parallel_for(0, chain.numel, kGrainElements, [&](int64_t begin, int64_t end) { run_range(chain, sources, outputs, begin, end); });
}

}  // namespace troupe
