import type { StateNaming } from "../weights.ts";

/** How wav2vec 2's files name its parameters; torch's older weight norm said `weight_g` and `weight_v`. */
export const wav2vec2Naming: StateNaming = {
  prefix: "wav2vec2.",
  ignored: [/^(quantizer|project_q|project_hid)\./],
  renamed: [
    [/^(encoder\.pos_conv_embed\.conv)\.weight_g$/, "$1.parametrizations.weight.original0"],
    [/^(encoder\.pos_conv_embed\.conv)\.weight_v$/, "$1.parametrizations.weight.original1"],
  ],
  head: { outsidePrefix: true, names: [/^masked_spec_embed$/] },
};
