// The families that come with Troupe, in the order of lists in messages; pre-training without a family takes the first with its
// objective.
import "./bert/family.ts";
import "./roberta/family.ts";
import "./data2vec-text/family.ts";
import "./albert/family.ts";
import "./clip/family.ts";
import "./gpt2/family.ts";
import "./megatron-bert/family.ts";
import "./bart/family.ts";
import "./vit/family.ts";
import "./gpt-j/family.ts";
import "./gpt-neox/family.ts";
import "./opt/family.ts";
import "./llama/family.ts";
import "./t5/family.ts";
import "./wav2vec2/family.ts";
import "./data2vec-audio/family.ts";

export { families, familyOf } from "./family.ts";
