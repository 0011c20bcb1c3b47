// Puts third-party browser code beside the page's own files: as a module each, the JavaScript SDK, and what shows templates
// and Markdown.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "graphs", "server", "page", "static", "built");
rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });

const MODULES = {
  "langgraph.js": 'export { Client } from "@langchain/langgraph-sdk";',
  "rendering.js": [
    'export { html, nothing, render } from "lit-html"',
    'export { guard } from "lit-html/directives/guard.js"',
    'export { repeat } from "lit-html/directives/repeat.js"',
    'export { marked } from "marked"',
    'export { default as DOMPurify } from "dompurify"',
  ].join(";"),
};
// The licences of all that was taken go with it.
const packages = new Set();
for (const [name, contents] of Object.entries(MODULES)) {
  const { metafile } = await build({
    stdin: { contents, resolveDir: here },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    metafile: true,
    outfile: join(target, name),
  });
  for (const input of Object.keys(metafile.inputs)) {
    const found = input.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) packages.add(found[1]);
  }
}

const licences = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = existsSync(folder) && readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8") : ""}`;
});
writeFileSync(join(target, "licences.txt"), licences.join("\n----\n\n"));
console.log(`The page's browser code is built: ${packages.size} packages in ${target}`);
