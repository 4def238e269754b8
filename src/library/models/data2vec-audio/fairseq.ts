import type { FairseqForm } from "../formats/fairseq.ts";
import { modules } from "../formats/weight-map.ts";
import { fairseqSpeech } from "../wav2vec2/fairseq.ts";

/** data2vec's audio model: a sequence of plain positional convolutions. */
const form: FairseqForm = () =>
  fairseqSpeech({
    prefix: "data2vec_audio",
    positions: modules({ "pos_conv.*.0": "pos_conv_embed.layers.*.conv" }),
    isNormed: true,
  });
export default form;
