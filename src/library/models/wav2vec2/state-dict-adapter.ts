import type { StateNaming } from "../weights.ts";

/**
 * Names of speech models' parameters in files; torch's older weight norm has `weight_g` and `weight_v`.
 * @param ignored - other entries of files; default: the parts for pre-training only
 */
export function speechNaming(
  prefix: string,
  ignored: readonly RegExp[] = [/^(quantizer|project_q|project_hid)\./],
): StateNaming {
  return {
    prefix,
    ignored,
    renamed: [
      [/^(encoder\.pos_conv_embed\.conv)\.weight_g$/, "$1.parametrizations.weight.original0"],
      [/^(encoder\.pos_conv_embed\.conv)\.weight_v$/, "$1.parametrizations.weight.original1"],
    ],
    head: { outsidePrefix: true, names: [/^masked_spec_embed$/, /^adapter\./] },
  };
}
