import type { DBFieldAttribute } from "better-auth/db";

/**
 * Marks a value that is stored without the field's `transform`. All copies of this package share
 * this symbol.
 */
const TRANSFORMED = Symbol.for("better-auth-tenant:transformed");

export const asTransformed = (value: string): object => ({ [TRANSFORMED]: value });

/**
 * Makes the adapter store values of `asTransformed` without the field's `transform`, which would
 * change the tenant prefix. Changes the schema of the plugin or application in place, because the
 * adapter reads that object.
 *
 * Guarded by "the adapter transforms a value with the function that the schema has".
 */
export function skipTransformForPrefixed({ transform }: DBFieldAttribute): void {
  const input = transform?.input;
  if (!input || passing.has(input)) return;
  transform.input = (value: unknown) =>
    (value as { [TRANSFORMED]?: string } | undefined)?.[TRANSFORMED] ?? input(value as string);
  passing.add(transform.input);
}

const passing = new WeakSet<object>();
