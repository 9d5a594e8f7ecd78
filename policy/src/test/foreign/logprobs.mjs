// node logprobs.mjs DIR OUT.json: ln p of every token but the first, by llama.cpp in float32, of each DIR/NAME.gguf and DIR/NAME/tokens.json
import { getLlama } from "node-llama-cpp";
import fs from "node:fs";

const [, , directory, out] = process.argv;
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const read = (file) => JSON.parse(fs.readFileSync(file));
const result = {
  engine: "llama.cpp " + llama.llamaCppRelease.release + " in node-llama-cpp " + read("node_modules/node-llama-cpp/package.json").version,
  models: {},
};
for (const file of fs.readdirSync(directory).filter((each) => each.endsWith(".gguf")).sort()) {
  const name = file.slice(0, -".gguf".length);
  const vocabulary = read(`${directory}/${name}/config.json`).vocab_size;
  const model = await llama.loadModel({ modelPath: `${directory}/${file}`, gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: 64,
    flashAttention: false,
    threads: 1,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  const sequence = context.getSequence();
  result.models[name] = [];
  for (const tokens of read(`${directory}/${name}/tokens.json`)) {
    await sequence.clearHistory();
    const answers = await sequence.controlledEvaluate(tokens.map((token) => [token, { generateNext: { logits: true } }]));
    result.models[name].push(
      tokens.slice(1).map((token, i) => {
        const logits = answers[i].next.logits;
        const all = [...logits].filter(([each]) => each < vocabulary).map(([, logit]) => logit);
        const max = Math.max(...all);
        return logits.get(token) - max - Math.log(all.reduce((sum, logit) => sum + Math.exp(logit - max), 0));
      }),
    );
  }
  await context.dispose();
  await model.dispose();
}
const rows = Object.entries(result.models).map(
  ([name, sequences]) => `  ${JSON.stringify(name)}: [\n` + sequences.map((s) => "   " + JSON.stringify(s.map((x) => +x.toFixed(7)))).join(",\n") + "]",
);
fs.writeFileSync(out, `{"engine": ${JSON.stringify(result.engine)},\n "models": {\n${rows.join(",\n")}}}\n`);
process.exit(0);
