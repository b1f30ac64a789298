import { dirname } from "node:path";
import { roomOf, testsOf } from "./rooms";

// npm run tests-for src/isolation/storage.ts: the tests of a source file, the likeliest first.
const [file = ""] = process.argv.slice(2);
const folder = dirname(file);
const tests = file.startsWith("src/")
  ? testsOf(roomOf(file) ?? (folder === "src" ? file : `${folder}/`), [file])
  : [];
console.log(
  tests.join("\n") || `No tests found. Usage: npm run tests-for src/isolation/storage.ts`,
);
