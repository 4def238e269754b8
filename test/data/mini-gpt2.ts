const bytes = Array.from({ length: 256 }, (_, byte) => byte);
const printable = bytes.filter((b) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174);
const others = bytes.filter((byte) => !printable.includes(byte));
const symbols = [...printable, ...others.map((_, index) => 256 + index)].map((c) => String.fromCodePoint(c));
const merges = ["t h", "th e", "a n", "Ġ th", "Ġth e", "Ġ a", "l l", "' ll", "Ġ an", "n t", "1 2"];
const tokens = [...symbols, ...merges.map((merge) => merge.replace(" ", "")), "<|endoftext|>"];

/** A tokenizer.json of GPT-2's kind with eleven merges, small enough to reason about. */
export const miniGpt2 = {
  version: "1.0",
  added_tokens: [{ id: tokens.length - 1, content: "<|endoftext|>", special: true }],
  normalizer: null,
  pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
  post_processor: null,
  decoder: { type: "ByteLevel" },
  model: { type: "BPE", vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges },
};
