import { dirname } from "node:path";
import { areaOf, testsOf } from "./areas";

// npm run tests-for src/core/isolate/storage.ts: the tests of a source file, the likeliest first.
const [file = ""] = process.argv.slice(2);
const folder = dirname(file);
const tests = file.startsWith("src/")
  ? testsOf(areaOf(file) ?? (folder === "src" ? file : `${folder}/`), [file])
  : [];
console.log(
  tests.join("\n") || `No tests found. Usage: npm run tests-for src/core/isolate/storage.ts`,
);
