// Unpacks the browser beside its package, with the libraries that a machine without a browser lacks.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const target = join(dirname(fileURLToPath(import.meta.url)), "node_modules", "unpacked-chromium");
mkdirSync(target, { recursive: true });
// The package unpacks into the folder for temporary files, and adds NSS where it takes the machine for this one.
process.env.TMPDIR = target;
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs20.x";
const { default: chromium } = await import("@sparticuz/chromium");
console.log(`The browser is in ${await chromium.executablePath()}`);
// Its fonts: those that it comes with are told of in folders of the cloud. Without any, pages with text crash.
const folder = join(target, "fonts", "fonts");
const fonts = `<dir>${folder}</dir><cachedir>${join(target, "fonts", "cache")}</cachedir>`;
writeFileSync(join(target, "fonts.conf"), `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${fonts}</fontconfig>\n`);
