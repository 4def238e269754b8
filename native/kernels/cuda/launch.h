// The launchers of the kernels for CUDA: they take plain pointers and numbers, so that a .cu file needs nothing of libtorch. Each
// launch is queued on `stream` of the current device and returns at once; sizes are in elements. Kernels keep to the CPU's
// order of operations on each element and give its bits there; sums over many elements have a fixed order of their own.
#pragma once

#include <cstdint>

#include "kernels/cpu/drawing.h"
#include "kernels/cpu/gradient_scale.h"
#include "kernels/cpu/page_layout.h"
#include "kernels/cpu/step_coefficients.h"
#include "kernels/cpu/vocabulary_classes.h"

struct CUstream_st;

namespace troupe::cuda {

using Stream = CUstream_st*;

enum class Format : int { float32, bfloat16, float16 };

// An array whose format is known at run time. `data` is null where there is none.
struct Array {
  void* data = nullptr;
  Format format = Format::float32;
};

// Throws std::runtime_error with CUDA's reason when the last launch was refused.
void check_launch(const char* kernel);

// --- rows: R rows of D features, contiguous ---

struct Rows {
  int64_t rows;
  int64_t dim;
};

// Where rows are added before their norm: x + residual, rounded to their format, is written to `sum` and normalised. Null where
// nothing is added.
struct Residual {
  const void* residual = nullptr;
  void* sum = nullptr;
};

// y = (x - mean) * rstd * weight + bias; mean, rstd [R]. `bias` may be null.
void launch_layer_norm(Stream stream, Format format, Rows rows, const void* x, Residual added, Array weight, Array bias, float eps,
                       void* y, float* mean, float* rstd);
// dx, plus dsum where it is not null; sums of rows: dweight and dbias [D] by way of `partial` [2, row_blocks, D].
void launch_layer_norm_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, Array weight,
                                const float* mean, const float* rstd, const void* dsum, void* dx, float* partial,
                                Array dweight, Array dbias);

void launch_rms_norm(Stream stream, Format format, Rows rows, const void* x, Residual added, Array weight, float eps, void* y,
                     float* rstd);
void launch_rms_norm_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, Array weight,
                              const float* rstd, const void* dsum, void* dx, float* partial, Array dweight);

void launch_bias_gelu(Stream stream, Format format, Rows rows, const void* x, Array bias, void* y);
void launch_bias_gelu_backward(Stream stream, Format format, Rows rows, const void* dy, const void* x, Array bias,
                               void* dx, float* partial, Array dbias);

// sums [D] of all rows, by way of `partial` [row_blocks, D].
void launch_sum_rows(Stream stream, Format format, Rows rows, const void* x, float* partial, Array sums);

// Row blocks that sums over rows are made in: decided by the shape alone, so that the bits are.
int64_t row_blocks(int64_t rows);

// --- elements ---

void launch_swiglu(Stream stream, Format format, int64_t numel, const void* gate, const void* up, void* y);
void launch_swiglu_backward(Stream stream, Format format, int64_t numel, const void* dy, const void* gate, const void* up,
                            void* dgate, void* dup);

// x [B,H,T,K] with strides of B, H and T, to y [B,T,H,K]; cosines and sines [T, half].
struct RotaryShape {
  int64_t batches, heads, time, width, half;
  int64_t of_batch, of_head, of_time;
};
void launch_rotary(Stream stream, Format format, const RotaryShape& shape, const void* x, const float* cosines,
                   const float* sines, float sign, void* y);

struct PhiloxPlace {
  uint64_t seed, stream, offset;
};
void launch_dropout(Stream stream, Format format, int64_t numel, const void* x, PhiloxPlace place, int64_t run,
                    int64_t stride, uint64_t threshold, float scale, void* y);
void launch_philox_uniform(Stream stream, Array to, int64_t numel, PhiloxPlace place, float low, float high);
void launch_philox_normal(Stream stream, Array to, int64_t numel, PhiloxPlace place, float mean, float std);
void launch_round_stochastic(Stream stream, Array to, const float* from, int64_t numel, PhiloxPlace place);

// to = from, or to + from where `accumulate` is set: the sum is float32, rounded once.
void launch_add_range(Stream stream, Array to, Array from, int64_t numel, bool accumulate);

// The same of several arrays of one format, each to its own place, at once.
struct Piece {
  const void* from;
  int64_t begin, numel;
};
constexpr int kMostPieces = 64;
void launch_add_pieces(Stream stream, Array to, Format from, const Piece* pieces, int count, bool accumulate);

// Sets *bad where an element is infinite or NaN.
void launch_find_bad(Stream stream, Array from, int64_t numel, int* bad);

// --- sums that are exact, or in an order that the elements' places decide ---

// sums [chunks] of 1,024 elements each: the CPU's lanes.
void launch_chunk_square_sums(Stream stream, Array from, int64_t numel, double* sums);

// Adds a block's sums of each kind to sums [kinds].
void launch_add_square_sums(Stream stream, const BlockSquares& block, int64_t kinds, double* sums);
// to [2]: see scale_of.
void launch_gradient_scale(Stream stream, const GradientParts& gradient, int64_t kind, double limit, bool leaves_out, double* to);

// Segment i is [begins[i], ends[i]), arrays of the device; maxima [segments].
void launch_segment_maxima(Stream stream, const float* from, const int64_t* begins, const int64_t* ends, int64_t segments,
                           double* maxima);
// bins [segments, 2]: what ExactBins splits by; sums [segments, 2] are zeros before.
void launch_exact_square_sums(Stream stream, const float* from, const int64_t* begins, const int64_t* ends,
                              const double* bins, int64_t segments, double* sums);
// Matrices of `rows` x `columns`; `from` holds elements `begin` and on. All sums are zeros before.
struct MatrixSlice {
  int64_t matrices, rows, columns, begin, numel;
};
void launch_factored_square_sums(Stream stream, const float* from, const MatrixSlice& slice, float scale, double coarse,
                                 double fine, double* row_sums, double* column_sums);
void launch_adafactor_matrix(Stream stream, float* grad, const MatrixSlice& slice, const float* row_factors,
                             const float* column_factors, float scale);

// --- cross entropy ---

// Rows of logits, each `stride` elements after the one before. What lies between two rows is no class.
struct LogitRows {
  int64_t rows;
  int64_t classes;
  int64_t stride;
};

// Statistics [4, R] of each row: the largest logit, the sum of exp(x - largest), the target's logit where it is here and else 0, the
// weighted sum of the logits (0 without weights); 0, 1, 0, 0 for an ignored one.
void launch_vocabulary_statistics(Stream stream, Format format, LogitRows rows, const void* logits, const Classes& classes,
                                  float* statistics);
// logits = a p - b [target] - c weights; coefficients [3, R]: a, b, c.
void launch_vocabulary_gradient(Stream stream, Format format, LogitRows rows, void* logits, const float* logsumexp,
                                const Classes& classes, const float* coefficients);
// logsumexp [R] and the losses [R] of rows; 0 where ignored, NaN for a target that is no class.
void launch_cross_entropy_rows(Stream stream, Format format, LogitRows rows, const void* logits, const int64_t* targets,
                               int64_t ignore_index, float* logsumexp, double* losses);
// dlogits = (p - [target]) * *row_weight * *upstream; either may be null (1). `to` may be `logits`; its rows lie as theirs do, and
// what is between them becomes 0.
void launch_cross_entropy_gradient(Stream stream, Format format, LogitRows rows, const void* logits, const float* logsumexp,
                                   const int64_t* targets, int64_t ignore_index, const float* row_weight,
                                   const float* upstream, void* to);
// *row_weight = 1 / rows that count (0 where none does), *count as double.
void launch_count_targets(Stream stream, const int64_t* targets, int64_t rows, int64_t ignore_index, float* row_weight,
                          double* count);
// *loss = sum of losses / *count, in a fixed order.
void launch_mean_loss(Stream stream, const double* losses, int64_t rows, const double* count, float* loss);

// --- products and attention that are computed row by row, with the CPU's bits ---

// Lines of `inner` numbers, of any strides: the rows of a product's left operand, the columns of its right one.
struct Lines {
  const void* data;
  int64_t of_line, of_inner;
};
struct ProductShape {
  int64_t rows, columns, inner;
};
// Null: none is added.
struct ProductBias {
  const void* data = nullptr;
  int64_t of_row = 0, of_column = 0;
};
// to [rows, columns] = a b + bias.
void launch_multiply_rows(Stream stream, Format format, const ProductShape& shape, Lines a, Lines b, ProductBias bias, void* to);

// q [B,H,T,D], k and v [B,G,S,D]; features lie side by side.
struct AttentionShape {
  int64_t batches, heads, groups, rows, keys, width;
};
struct HeadRows {
  const void* data;
  int64_t of_batch, of_head, of_row;
};
// `before` [B, S + 1]: how many keys that may be seen come before each; null where all may. `bias`: float32 rows of scores, added to them;
// null: none. `window` 0: none.
struct Sight {
  const int64_t* before;
  int64_t of_batch;
  HeadRows bias;
  bool causal;
  int64_t window;
  float scale;
};
constexpr int64_t kMostAttending = 132 * 16;  // blocks that attend at once: each has scores of its own
// out [B,T,H,D]. scratch [blocks, S].
void launch_attend_rows(Stream stream, Format format, const AttentionShape& shape, HeadRows q, HeadRows k, HeadRows v, const Sight& sight,
                        int64_t blocks, float* scratch, void* out);

// --- texts under way ---

// Keys [P,G,D,X] and values [P,G,X,D] of one attention: `count` slabs of P pages, of X positions each.
constexpr int kMostSlabs = 216;  // of keys and of values: what a launch carries
struct PageSlabs {
  void* of[kMostSlabs];
  int64_t count, pages, groups, width;
};

// Token n is at positions[n] of the text texts[n]; row texts[n] of table [num_texts, columns] has what it shares and its pages.
struct PagePlaces {
  const int64_t *table, *texts, *positions;
  int64_t num_texts, columns, tokens;
};

// Strides of heads (or groups) and tokens.
struct PageHeads {
  int64_t of_head, of_token;
};

// Writes k and v [G,N,D] to the tokens' places; a token whose place is none is left out.
void launch_write_pages(Stream stream, Format format, const PageSlabs& keys, const PageSlabs& values, const PagePlaces& places,
                        const void* k, PageHeads of_k, const void* v, PageHeads of_v);
// Added to the scores of keys by how far they lie before the token, [H, distances]; the last stands for all beyond. Null: nothing is.
struct PageBias {
  const float* of;
  int64_t distances;
};

// out [N,H,D]: NaN for a token whose place is none. scratch [blocks, X * columns].
void launch_attend_pages(Stream stream, Format format, const PageSlabs& keys, const PageSlabs& values, const PagePlaces& places,
                         const void* q, PageHeads of_q, int64_t heads, PageBias bias, int64_t window, float scale, int64_t blocks,
                         float* scratch, void* out);

// tokens [R]. weights [R,V]; sums [R, drawn_pieces(V)].
void launch_draw_tokens(Stream stream, Format format, Rows rows, const void* logits, const float* uniforms,
                        const Restriction& restriction, float* weights, float* sums, int64_t* tokens);

// --- optimizers: a pass over flat float32 parameters and states ---

struct StepOf {
  float* param;
  float* states[3];
  Array grad;           // read only
  Array low_precision;  // written where there is one
  const int64_t* ends;  // of the segments, on the host
  int64_t segments;
  const double* scale;  // what `scale_of` gives, on the device; null where the host knows it
};
#define TROUPE_STEP(name, Coefficients) void launch_step(Stream stream, const StepOf& step, const Coefficients* of_segments)
TROUPE_STEP(adamw, AdamWCoefficients);
TROUPE_STEP(adam, AdamCoefficients);
TROUPE_STEP(bmtrain_adam, BMTrainAdamCoefficients);
TROUPE_STEP(sgd, SgdCoefficients);
TROUPE_STEP(lion, LionCoefficients);
TROUPE_STEP(lamb_direction, LambCoefficients);
TROUPE_STEP(step_along, AlongCoefficients);
TROUPE_STEP(blend_direction, BlendCoefficients);
TROUPE_STEP(adafactor_vector, SecondMomentCoefficients);
#undef TROUPE_STEP

}  // namespace troupe::cuda
