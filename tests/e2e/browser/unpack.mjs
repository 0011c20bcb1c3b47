// Unpacks a browser for the page's tests, with the libraries that a machine without a browser lacks.
import { createRequire } from "node:module";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
// Git, linters and pytest leave folders of this name alone.
const target = join(here, "node_modules", "unpacked-chromium");
mkdirSync(target, { recursive: true });
// The package unpacks into the folder for temporary files, and adds NSS where it takes the machine for this one.
process.env.TMPDIR = target;
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs20.x";
const { resolve } = createRequire(join(here, "..", "..", "..", "page", "package.json"));
const { default: chromium } = await import(resolve("@sparticuz/chromium"));
console.log(`The browser is in ${await chromium.executablePath()}`);
// Its fonts: those that it comes with are told of in folders of the cloud. Without any, pages with text crash.
const folder = join(target, "fonts", "fonts");
const fonts = `<dir>${folder}</dir><cachedir>${join(target, "fonts", "cache")}</cachedir>`;
writeFileSync(join(target, "fonts.conf"), `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${fonts}</fontconfig>\n`);
