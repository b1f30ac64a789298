import { appendQueryParams } from "@better-auth/core/utils/url";
import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import * as z from "zod";

/** Returns a version of `make` that runs once per object and keeps the result. */
export function oncePerObject<Key extends object, Made>(make: (key: Key) => Made) {
  const known = new WeakMap<Key, Made>();
  return (key: Key): Made => {
    const made = known.get(key) ?? make(key);
    known.set(key, made);
    return made;
  };
}

export const redirect = (location: string) => new APIError("FOUND", undefined, { location });

/** Returns a redirect to a flow's error page, else to better-auth's. */
export function errorRedirect(
  context: AuthContext,
  error: string,
  errorURL?: string,
  description?: string,
) {
  const fallback = context.options.onAPIError?.errorURL ?? `${context.baseURL}/error`;
  const params = { error, ...(description && { error_description: description }) };
  return redirect(appendQueryParams(errorURL ?? fallback, new URLSearchParams(params)));
}

/** Returns unchecked input as text. Input that is neither a string nor a number becomes "". */
export const textOf = (sent: unknown) =>
  typeof sent === "string" || typeof sent === "number" ? String(sent) : "";

/** Parses JSON. Returns undefined for invalid JSON, and for anything but text. */
export function parseJSON(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Decodes percent encoding. Returns text that cannot be decoded unchanged. */
export function decodeComponent(text: string): string {
  try {
    return text.includes("%") ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}

/** Decodes base64url. Returns undefined for other text. */
export function decodeBase64url(text: string): string | undefined {
  try {
    return new TextDecoder().decode(z.util.base64urlToUint8Array(text));
  } catch {
    return undefined;
  }
}

/** Returns the claims of a JWT. Does not verify the signature, so this alone proves nothing. */
export const claimsIn = (token: unknown): Record<string, unknown> =>
  Object(parseJSON(decodeBase64url(textOf(token).split(".")[1] ?? "")));

/** Rejects if a promise takes longer than `ms`. */
export async function within<T>(ms: number, running: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms);
  });
  return Promise.race([running, late]).finally(() => clearTimeout(timer));
}

/**
 * Returns a function that writes into a map, and first removes the oldest entry if the map is full.
 */
export const boundedMap =
  <T>(most: number) =>
  (entries: Map<string, T>, key: string, value: T): void => {
    const [oldest] = entries.keys();
    if (oldest !== undefined && entries.size >= most && !entries.has(key)) entries.delete(oldest);
    entries.set(key, value);
  };

/**
 * Creates a bounded map whose entries expire. An entry's time starts before the database read that
 * it comes from. If any entry is deleted during a read, the result of the read is not kept: it may
 * be outdated.
 */
export function expiringMap<T>(most: number, ms: number) {
  const entries = new Map<string, { value: T; until: number }>();
  const set = boundedMap<{ value: T; until: number }>(most);
  let deletions = 0;
  return {
    get(key: string): T | undefined {
      const entry = entries.get(key);
      const left = entry ? entry.until - Date.now() : 0;
      // More than `ms` is left if the clock was set back. The entry would then last too long.
      return left > 0 && left <= ms ? entry?.value : undefined;
    },
    /** Call this before a database read, and the function that it returns with the result. */
    startRead(): (key: string, value: T) => void {
      const before = deletions;
      const until = Date.now() + ms;
      return (key, value) => {
        if (deletions === before) set(entries, key, { value, until });
      };
    },
    delete(key: string): void {
      deletions++;
      entries.delete(key);
    },
  };
}

export const toHex = (bytes: ArrayBuffer) => z.util.uint8ArrayToHex(new Uint8Array(bytes));

/** Replaces methods of an object in place. Returns false if that is not possible. */
export function replaceMethods(target: object, methods: object): boolean {
  try {
    Object.assign(target, methods);
  } catch {
    return false;
  }
  return Object.entries(methods).every(([name, method]) => Reflect.get(target, name) === method);
}

/**
 * Returns whether a text has no NUL and no half of a surrogate pair. PostgreSQL cannot store these,
 * and URLs cannot carry half a pair.
 */
export const isText = (value: string) => !value.includes("\0") && !/\p{Surrogate}/u.test(value);
