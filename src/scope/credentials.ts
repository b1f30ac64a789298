import { getSession } from "better-auth/api";
import type { Endpoint } from "./endpoint";
import { notes, runInScope, type SessionRow } from "./scope";

/** Where sessions live in cookies only, better-auth opens them. */
export async function statelessSession(input: Pick<Endpoint, "headers" | "context">) {
  const query = { disableRefresh: true };
  const found = await runInScope({ kind: "pending" }, () => {
    notes().reading = true;
    return getSession()({ ...input, headers: input.headers as Headers, query, method: "GET" });
  });
  return found?.session as SessionRow | undefined;
}

/**
 * The headers that the endpoint will read its session from. The bearer plugin puts its token in
 * the place of the cookie; that hook may not have run yet.
 */
export async function withBearer(endpoint: Endpoint, headers: Headers): Promise<Headers> {
  const bearer = endpoint.context.options.plugins?.find(({ id }) => id === "bearer");
  for (const { matcher, handler } of bearer?.hooks?.before ?? []) {
    const ctx = { ...endpoint, headers };
    if (!matcher(ctx as Parameters<typeof matcher>[0])) continue;
    const answer = await handler({ ...ctx, returnHeaders: true } as Parameters<typeof handler>[0]);
    const changed = (answer as HookAnswer)?.response?.context?.headers;
    if (changed) return changed;
  }
  return headers;
}

type HookAnswer = { response?: { context?: { headers?: Headers } } } | undefined;
