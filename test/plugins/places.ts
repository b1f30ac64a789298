import type { BetterAuthPlugin } from "better-auth";
import { expect } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { createInstance, type InstanceOptions } from "../support/instance";

export const PLACES = ["a", "b", "platform"] as const;
export type Place = (typeof PLACES)[number];

/** Where nothing of tenant A may work. */
export const ELSEWHERE = ["b", "platform"] as const;

export const EMAIL = "same@example.com";

export interface SessionAnswer {
  session: { tenantId: string | null; token: string; userId: string };
  user: { id: string; email: string; tenantId: string | null };
}

/** Two tenants and the platform, on an instance with the plugins of a test. */
export async function createPlaces(plugins: BetterAuthPlugin[], options: InstanceOptions = {}) {
  const instance = await createInstance({ ...options, plugins });
  const ids: Record<Place, string | null> = {
    a: (await instance.createTenant("aa")).id,
    b: (await instance.createTenant("bb")).id,
    platform: null,
  };
  const { database } = instance;

  const naming = (place: Place): Record<string, string> => {
    const tenantId = ids[place];
    return tenantId === null ? {} : { "x-tenant-id": tenantId };
  };

  /** Everything in every table. */
  async function dump() {
    const content: Record<string, unknown[]> = {};
    for (const { modelName } of Object.values(instance.context.tables)) {
      const table = database.quote(modelName);
      content[modelName] = await database.query(`select * from ${table} order by id`);
    }
    return content;
  }

  return {
    instance,
    ids,
    naming,
    rows: instance.rows,

    /** A browser without cookies that names the place by header; the platform has no name. */
    at: (place: Place) => instance.browser(naming(place)),

    /** Somebody signed up and signed in at a place, in a browser that names it. */
    async signUp(place: Place, email = EMAIL) {
      const person = await instance.signUp(ids[place], email);
      return { ...person, browser: person.browser.fork(naming(place)) };
    },

    /** Who a browser is, seen from a place: null when nobody. */
    async whoIs(browser: Browser, place: Place) {
      const { data } = await browser.fork(naming(place)).get<SessionAnswer | null>("/get-session");
      return data && { id: data.user.id, email: data.user.email, tenantId: data.session.tenantId };
    },

    /** Runs a request that has to change nothing at all in the database. */
    async unchanged<T>(run: () => Promise<T>): Promise<T> {
      const before = await dump();
      const result = await run();
      expect(await dump()).toEqual(before);
      return result;
    },

    /** Changes a row past everything else. */
    async setRole(userId: string, role: string) {
      const table = database.quote("user");
      await database.query(`update ${table} set role = ? where id = ?`, [role, userId]);
    },
  };
}

/** A refusal by status and code, which signs nobody in. */
export function expectRefused(answer: Answer<unknown>, status: number, code?: string) {
  expect({ status: answer.status, code: answer.code }).toEqual({ status, code });
  expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
}
