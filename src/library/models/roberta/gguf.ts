import { bertForm } from "../bert/gguf.ts";
import type { RobertaConfig } from "./config.ts";

/** RoBERTa in llama.cpp's BERT, whose positions begin with 0. */
export default bertForm<RobertaConfig>({
  prefix: "roberta",
  classifier: { cls: "classifier.dense", "cls.output": "classifier.out_proj" },
  firstPosition: ({ pad_token_id }) => pad_token_id + 1,
});
