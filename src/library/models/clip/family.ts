import { defineFamily } from "../family.ts";
import { clipConfig } from "./config.ts";
import { CLIPModel } from "./model.ts";

defineFamily({
  modelType: "clip",
  config: clipConfig,
  heads: { image_text: CLIPModel },
  architectures: { CLIPModel: "image_text" },
  texts: { begin: ["<|startoftext|>"], between: [], end: ["<|endoftext|>"] },
});
