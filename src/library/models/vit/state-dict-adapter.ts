import { configJsonOf } from "../config-fields.ts";
import type { NamedState, StateNaming } from "../weights.ts";
import type { ViTConfig } from "./config.ts";

/** Names of ViT's parameters in files: as published; some files use those of transformers 5. */
export const vitNaming: StateNaming = {
  prefix: "vit.",
  ignored: [/^embeddings\.mask_token$/],
  renamed: [
    [/^layers\.(\d+)\.attention\.q_proj\./, "encoder.layer.$1.attention.attention.query."],
    [/^layers\.(\d+)\.attention\.k_proj\./, "encoder.layer.$1.attention.attention.key."],
    [/^layers\.(\d+)\.attention\.v_proj\./, "encoder.layer.$1.attention.attention.value."],
    [/^layers\.(\d+)\.attention\.o_proj\./, "encoder.layer.$1.attention.output.dense."],
    [/^layers\.(\d+)\.mlp\.fc1\./, "encoder.layer.$1.intermediate.dense."],
    [/^layers\.(\d+)\.mlp\.fc2\./, "encoder.layer.$1.output.dense."],
    [/^layers\.(\d+)\./, "encoder.layer.$1."],
  ],
  modules: [
    [/\bencoder\.layer\.(\d+)\.attention\.attention\.query\b/, "layers.$1.attention.q_proj"],
    [/\bencoder\.layer\.(\d+)\.attention\.attention\.key\b/, "layers.$1.attention.k_proj"],
    [/\bencoder\.layer\.(\d+)\.attention\.attention\.value\b/, "layers.$1.attention.v_proj"],
    [/\bencoder\.layer\.(\d+)\.attention\.output\.dense\b/, "layers.$1.attention.o_proj"],
    [/\bencoder\.layer\.(\d+)\.intermediate\.dense\b/, "layers.$1.mlp.fc1"],
    [/\bencoder\.layer\.(\d+)\.output\.dense\b/, "layers.$1.mlp.fc2"],
    [/\bencoder\.layer\.(\d+)\b/, "layers.$1"],
  ],
  head: { outsidePrefix: true, names: [/^pooler\./] },
};

/** The config.json for such a file. */
export function vitConfigJson(config: ViTConfig): NamedState["configJson"] {
  return configJsonOf(config, "vit", "ViTForImageClassification");
}
