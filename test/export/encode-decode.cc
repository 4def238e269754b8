// Writes the likeliest tokens of an encoder-decoder by llama.cpp, which node-llama-cpp does not call an encoder of.
//
//   encode-decode LIBRARIES MODEL < PROMPTS
//
// A line of PROMPTS is the number of tokens to write, the decoder's first token, and the prompt. It prints a line of the tokens that
// were written, and one of the scores behind the last but one.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
// Larger than llama.cpp's own, which are passed on as they come.
struct ModelParams { char bytes[1024]; };
struct ContextParams { uint32_t n_ctx; char bytes[1020]; };
struct Batch {
  int32_t n_tokens;
  int32_t* token;
  float* embd;
  int32_t* pos;
  int32_t* n_seq_id;
  int32_t** seq_id;
  int8_t* logits;
};
void ggml_backend_load_all_from_path(const char*);
void llama_log_set(void (*)(int, const char*, void*), void*);
ModelParams llama_model_default_params();
ContextParams llama_context_default_params();
void* llama_model_load_from_file(const char*, ModelParams);
void* llama_init_from_model(void*, ContextParams);
const void* llama_model_get_vocab(const void*);
int32_t llama_vocab_n_tokens(const void*);
void llama_set_n_threads(void*, int32_t, int32_t);
void* llama_get_memory(void*);
void llama_memory_clear(void*, bool);
Batch llama_batch_get_one(int32_t*, int32_t);
int32_t llama_encode(void*, Batch);
int32_t llama_decode(void*, Batch);
float* llama_get_logits_ith(void*, int32_t);
}

int main(int, char** arguments) {
  llama_log_set([](int level, const char* text, void*) { if (level == 4) std::fputs(text, stderr); }, nullptr);
  ggml_backend_load_all_from_path(arguments[1]);
  void* model = llama_model_load_from_file(arguments[2], llama_model_default_params());
  if (model == nullptr) return 1;
  ContextParams params = llama_context_default_params();
  params.n_ctx = 256;
  void* context = llama_init_from_model(model, params);
  if (context == nullptr) return 2;
  llama_set_n_threads(context, 1, 1);
  const int32_t num_words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream numbers(line);
    int32_t count = 0, next = 0;
    numbers >> count >> next;
    std::vector<int32_t> prompt;
    for (int32_t token; numbers >> token;) prompt.push_back(token);
    llama_memory_clear(llama_get_memory(context), true);
    if (llama_encode(context, llama_batch_get_one(prompt.data(), static_cast<int32_t>(prompt.size()))) != 0) return 3;
    const float* scores = nullptr;
    std::printf("%d", next);
    for (int32_t step = 0; step < count; step++) {
      if (llama_decode(context, llama_batch_get_one(&next, 1)) != 0) return 4;
      scores = llama_get_logits_ith(context, -1);
      next = 0;
      for (int32_t token = 1; token < num_words; token++)
        if (scores[token] > scores[next]) next = token;
      std::printf(" %d", next);
    }
    std::printf("\n");
    for (int32_t token = 0; token < num_words; token++) std::printf("%.9g ", scores[token]);
    std::printf("\n");
  }
}
