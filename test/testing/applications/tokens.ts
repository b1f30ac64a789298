import { APIError } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import { signJWT, verifyJWT } from "better-auth/crypto";
import type { User } from "better-auth/types";
import * as z from "zod";
import {
  type Application,
  endpoint,
  find,
  here,
  insert,
  must,
  newId,
  openEndpoint,
  says,
  twins,
} from "./support";

/** Support hands out a code with which somebody without a password gets in. */
const entering = twins({
  name: "an entry code that knows an email, and no tenant",
  sound: "an entry code that knows its tenant",
  hole: "A code of one tenant signs in as the user with the same email at another.",
  endpoint: "/entry/enter",
  define: (sound) => ({
    sql: ["create table entry_code (code text primary key, email text, tenant_id text)"],
    endpoints: (db) => [
      endpoint("POST /entry/code", null, async ({ user }) => {
        const code = newId();
        await insert(db, "entry_code", code, user.email, here());
        return { code };
      }),
      openEndpoint(
        "POST /entry/enter",
        z.object({ code: z.string() }),
        async ({ input, adapter, ctx }) => {
          const entry = await find(db, sound, ["entry_code", "code"], input.code);
          const where = [{ field: "email", value: String(entry.email) }];
          const user = await adapter.findOne<User>({ model: "user", where });
          if (!user) throw new APIError("UNAUTHORIZED");
          await db.query("delete from entry_code where code = ?", [input.code]);
          const session = await ctx.context.internalAdapter.createSession(user.id);
          await setSessionCookie(ctx, { session, user });
          return { name: user.name };
        },
      ),
    ],
    options: {
      tables: ["entry_code"],
      endpoints: {
        "/entry/enter": ({ rows }) => ({ body: { code: String(rows("entry_code")[0]?.code) } }),
      },
    },
    exploit: async ({ a, b, strangerAt }) => {
      const first = await must(a.browser.post("/entry/code"));
      await must(a.browser.post("/entry/enter", { code: first.data.code }));
      const { data } = await must(a.browser.post("/entry/code"));
      const stranger = strangerAt(b);
      await stranger.post("/entry/enter", { code: data.code });
      return says(await stranger.get("/get-session"), b.userId);
    },
  }),
});

const SECRET = "the secret that the tokens of this application are signed with";

/** A token for the mobile application, which is shown instead of a session. */
const jwtWithoutTenant = twins({
  name: "a JWT that says an email, and no tenant",
  sound: "a JWT that says its tenant",
  hole: "The token of one tenant reads the profile of whoever has the same email at another.",
  endpoint: "/mobile/profile",
  define: (sound) => ({
    endpoints: () => [
      endpoint("POST /mobile/token", null, async ({ user: { email } }) => {
        const claims = sound ? { email, tenantId: here() } : { email };
        return { token: await signJWT(claims, SECRET, 600) };
      }),
      openEndpoint(
        "GET /mobile/profile",
        z.object({ jwt: z.string() }),
        async ({ input, adapter }) => {
          const claims = await verifyJWT<{ email: string; tenantId?: string }>(input.jwt, SECRET);
          if (!claims || (sound && claims.tenantId !== here())) throw new APIError("UNAUTHORIZED");
          const where = [{ field: "email", value: claims.email }];
          const user = await adapter.findOne<User>({ model: "user", where });
          return user && { id: user.id, name: user.name };
        },
      ),
    ],
    exploit: async ({ a, b, strangerAt }) => {
      const { data } = await must(a.browser.post("/mobile/token"));
      const query = { jwt: String(data.token) };
      await must(a.browser.get("/mobile/profile", { query }));
      return says(await strangerAt(b).get("/mobile/profile", { query }), b.userId);
    },
  }),
});

export const tokens: Application[] = [...entering, ...jwtWithoutTenant];
