// Continues a text by llama.cpp: node write.mjs FILE.gguf "Once upon a time" [TOKENS]
import { getLlama, LlamaCompletion } from "node-llama-cpp";

const [modelPath, prompt, tokens = "40"] = process.argv.slice(2);
const llama = await getLlama({ logLevel: "error" });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext();
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });
process.stdout.write(prompt);
await completion.generateCompletion(prompt, {
  maxTokens: Number(tokens),
  temperature: 0,
  onTextChunk: (text) => process.stdout.write(text),
});
process.stdout.write("\n");
await llama.dispose();
