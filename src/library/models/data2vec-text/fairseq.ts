import { fairseqEncoder } from "../roberta/fairseq.ts";

export default fairseqEncoder("data2vec_text");
