import { resolveTxt as askDNS } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** TXT records of a name. A demo has no domains, so a file stands in: `{ "<name>": ["<value>"] }`. */
export async function resolveTxt(name: string) {
  return recordsInFile()[name] ?? askDNS(name);
}

function recordsInFile(): Record<string, string[]> {
  try {
    return JSON.parse(readFileSync(join(process.env.DATA_DIR ?? ".data", "dns.json"), "utf8"));
  } catch {
    return {};
  }
}
