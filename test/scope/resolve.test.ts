import { isAPIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { nameTenant, type TenantNames } from "../../src/naming/request";

/** One thing that can stand in one of the four places, and what it answers by rule R1. */
interface Candidate {
  title: string;
  input: unknown;
  answer: string | undefined;
  /** What is no name at all is refused, and no other place speaks for it. */
  isMistake?: boolean;
}

/** Values that answer nothing, wherever they stand. */
const noAnswers: [title: string, value: unknown][] = [
  ["undefined", undefined],
  ["null", null],
  ["an empty string", ""],
  ["a number", 42],
  ["zero", 0],
  ["true", true],
  ["an array of one id", ["in-an-array"]],
  ["an empty array", []],
  ["an object", { id: "in-an-object" }],
  ["an object that prints as an id", { toString: () => "printed" }],
  // A boxed string is an object, and no request parser makes one.
  ["a boxed string", Object("boxed")],
];

/** What the resolver answers, or what the header holds: the value itself. */
function bare(place: string): Candidate[] {
  return [
    ...noAnswers.map(([title, input]) => ({ title, input, answer: undefined })),
    { title: "an id", input: `id-of-${place}`, answer: `id-of-${place}` },
  ];
}

/** A body or a query: the value stands in its `tenantId`. */
function enclosed(place: string): Candidate[] {
  const id = `id-of-${place}`;
  const bareObject = Object.assign(Object.create(null), { tenantId: id });
  return [
    { title: "absent", input: undefined, answer: undefined },
    { title: "null", input: null, answer: undefined },
    { title: "a string", input: id, answer: undefined },
    { title: "a number", input: 7, answer: undefined },
    { title: "an array of ids", input: [id], answer: undefined },
    { title: "an array of objects", input: [{ tenantId: id }], answer: undefined },
    { title: "without a tenantId", input: { tenant: id, tenantID: id, id }, answer: undefined },
    { title: "deeper", input: { data: { tenantId: id } }, answer: undefined },
    { title: "inherited", input: Object.create({ tenantId: id }), answer: undefined },
    ...noAnswers.map(([title, value]) => ({
      title: `tenantId is ${title}`,
      input: { tenantId: value },
      answer: undefined,
      isMistake: value !== undefined && value !== "",
    })),
    { title: "an own tenantId", input: { tenantId: id, other: "x" }, answer: id },
    { title: "an own tenantId without a prototype", input: bareObject, answer: id },
  ];
}

const resolvers = bare("resolver");
const bodies = enclosed("body");
const queries = enclosed("query");
const headers = bare("header");

function name(resolved: Candidate, body: Candidate, query: Candidate, header: Candidate) {
  const names = {
    resolved: resolved.input,
    body: body.input,
    query: query.input,
    header: header.input,
  };
  return nameTenant(names as TenantNames);
}

const REFUSED = "VALIDATION_ERROR";

function refusal(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return isAPIError(error) ? error.body?.code : undefined;
  }
}

describe("nameTenant", () => {
  it("R1: the first place that answers wins, in every combination", () => {
    const wrong: string[] = [];
    let combinations = 0;
    for (const resolved of resolvers) {
      for (const body of bodies) {
        for (const query of queries) {
          for (const header of headers) {
            combinations += 1;
            const inOrder = [resolved, body, query, header];
            const winner = inOrder.find((candidate) => candidate.answer !== undefined);
            const isRefused = inOrder.some(({ isMistake }) => isMistake);
            const named = isRefused
              ? refusal(() => name(resolved, body, query, header))
              : name(resolved, body, query, header);
            if (named !== (isRefused ? REFUSED : winner?.answer)) {
              wrong.push(`${inOrder.map(({ title }) => title).join(" / ")}: ${String(named)}`);
            }
          }
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(combinations).toBe(12 * 22 * 22 * 12);
  });

  it("R1: says nothing when no place is there at all", () => {
    expect(nameTenant({})).toBeUndefined();
  });

  it("R1: nobody who pollutes Object.prototype names a tenant", () => {
    Object.defineProperty(Object.prototype, "tenantId", {
      value: "polluted",
      configurable: true,
    });
    try {
      expect(nameTenant({ body: {}, query: {} })).toBeUndefined();
    } finally {
      Reflect.deleteProperty(Object.prototype, "tenantId");
    }
  });

  it("R1: hands the id on as it is, blanks and all", () => {
    expect(nameTenant({ header: " A b " })).toBe(" A b ");
  });
});
