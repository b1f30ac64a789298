import ts from "typescript";
import { describe, expect, test } from "vitest";
import { AREAS, testsOf } from "../mutation/areas";
import { instrument, QUIET, SEEN, SWITCH, TURN } from "../mutation/instrument";

/** Runs an instrumented function with one mutant on, or with none. */
function call(source: string, on: number, ...args: unknown[]): unknown {
  const { code } = instrument("src/x.ts", `const f = ${source};`, 0);
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { target: ts.ScriptTarget.ES2022 },
  });
  const isOn = (id: number) => id === on;
  const seen = (_id: number, _when: string, value: unknown) => value;
  const run = new Function(SWITCH, QUIET, SEEN, TURN, `${outputText}; return f;`);
  return run(isOn, isOn, seen, () => {})(...args);
}

const mutantsOf = (source: string) =>
  instrument("src/x.ts", `const f = ${source};`, 0).mutants.map(
    ({ was, now }) => `${was} -> ${now}`,
  );

describe("mutants of a function", () => {
  const source = "(a: any, b: any) => { if (a && b?.c) return [1]; else b(); return !a; }";

  test("each is one small change", () => {
    expect(mutantsOf(source)).toEqual([
      "a && b?.c -> b?.c",
      "a && b?.c -> a",
      "b?.c -> b.c",
      "a && b?.c -> true",
      "a && b?.c -> false",
      "[1] -> []",
      "b(); -> left out",
      "!a -> a",
      "(a: any, b: any) => -> returns at once",
    ]);
  });

  test("none is on unless it is asked for, and one that is on changes what happens", () => {
    const b = Object.assign(() => {}, { c: true });
    expect([call(source, -1, true, b), call(source, -1, false, b)]).toEqual([[1], true]);
    const outcomes = mutantsOf(source).map((_, id) => call(source, id, true, b));
    expect(outcomes).toEqual([[1], [1], [1], [1], false, [], [1], [1], undefined]);
    expect(() => call(source, 2, true, undefined)).toThrow(TypeError);
  });
});

test("texts for people are left as they are", () => {
  expect(mutantsOf('() => { throw new Error("No such tenant.") }')).toEqual([
    'throw new Error("No such tenant.") -> left out',
    "() => -> returns at once",
  ]);
});

test("the tests named for a file come first, the slow ones never", () => {
  const exist =
    "features/policy/a testing/a core/isolate/storage-keys core/isolate/b core/isolate/adapter-suites".split(
      " ",
    );
  const paths = exist.map((name) => `test/${name}.test.ts`);
  expect(testsOf("src/core/isolate/", ["src/core/isolate/storage.ts"], paths)).toEqual([
    "test/core/isolate/storage-keys.test.ts",
    "test/core/isolate/b.test.ts",
    "test/features/policy/a.test.ts",
  ]);
});

test.each(Object.entries(AREAS))("the tests of %s are there", (area, folders) => {
  const missing = folders.filter(
    (folder) => !testsOf(area, []).some((path) => path.startsWith(`test/${folder}`)),
  );
  expect(missing).toEqual([]);
});
