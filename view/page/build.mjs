// Makes one self-contained page of the sources: ../../report/src/main/resources/dev/millrace/report/page/index.html. The same sources give the same bytes.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../../report/src/main/resources/dev/millrace/report/page");

function sources() {
  const src = readdirSync(join(here, "src"), { recursive: true })
    .map((name) => `src/${name}`.replaceAll("\\", "/"))
    .filter((name) => /\.(tsx?|css|html)$/.test(name));
  return [...src, "build.mjs", "package.json", "package-lock.json", "tsconfig.json"].sort();
}

// what PageFileTest computes too, so that a page that was not made anew is found without node
const hash = createHash("sha256");
for (const name of sources()) {
  hash.update(`${name}\n`);
  hash.update(readFileSync(join(here, name)));
}
const from = hash.digest("hex");

const options = { bundle: true, minify: true, write: false, legalComments: "none", target: "es2022", absWorkingDir: here };
const bundled = await build({ ...options, metafile: true, entryPoints: ["src/main.tsx"], format: "esm", jsx: "automatic", jsxImportSource: "preact" });
// every copy of the page, also a saved one, says what it is made of and under which licences
const packages = new Set(Object.keys(bundled.metafile.inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter((name) => name));
const licenses = [...packages]
  .sort()
  .map((name) => `${name} ${JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8")).version}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim()}\n`)
  .join("\n----\n\n");
const script = bundled
  .outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
const style = (await build({ ...options, entryPoints: ["src/style.css"] })).outputFiles[0].text.trim();
const page = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("/* style */", () => style)
  .replace("/* licenses */", () => licenses.replaceAll("</", "<\\/"))
  .replace("/* app */", () => script)
  .replace("FROM", () => from);
mkdirSync(target, { recursive: true });
writeFileSync(join(target, "index.html"), page);
console.log(`index.html ${page.length} characters, from sources ${from}`);
