import { defineFamily } from "../family.ts";
import { vitConfig } from "./config.ts";
import { ViTForImageClassification } from "./model.ts";

defineFamily({
  modelType: "vit",
  config: vitConfig,
  heads: { image_classification: ViTForImageClassification },
});
