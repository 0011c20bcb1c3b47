// Runs the default export of one script with the JSON value from stdin and writes its result as JSON to stdout.
// A script's console output goes to stderr, so that it cannot be taken for the result.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

console.log = console.error;

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const input = JSON.parse(Buffer.concat(chunks).toString("utf8"));
const script = await import(pathToFileURL(resolve(process.argv[2])));
const result = await script.default(input);
process.stdout.write(JSON.stringify(result ?? null));
