import { request as send } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { expect, onTestFinished, vi } from "vitest";
import { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";

/** What an example is started with: a free port, and a secret. */
export function stubEnvironment() {
  vi.stubEnv("PORT", "0");
  vi.stubEnv("BETTER_AUTH_SECRET", "a test secret that is long enough for everybody");
  onTestFinished(() => void vi.unstubAllEnvs());
}

export async function portOf(server: Server) {
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  return (server.address() as AddressInfo).port;
}

export const close = (server: Server) => new Promise((resolve) => server.close(resolve));

/**
 * A browser that talks to a server on this machine over real HTTP, whatever host it asks for: names
 * below localhost are not known everywhere.
 */
export function browse(port: number, origin: string, headers?: Record<string, string>) {
  const handler = async (request: Request) => {
    const body = Buffer.from(await request.arrayBuffer());
    return new Promise<Response>((resolve, reject) => {
      const { method, url } = request;
      const { host, pathname, search } = new URL(url);
      const outgoing = send(
        {
          host: "127.0.0.1",
          port,
          method,
          path: pathname + search,
          headers: { ...Object.fromEntries(request.headers), host, "content-length": body.length },
        },
        async (answer) => {
          const chunks: Buffer[] = [];
          for await (const chunk of answer) chunks.push(chunk);
          const { rawHeaders, statusCode = 0 } = answer;
          const received = new Headers();
          for (let i = 0; i < rawHeaders.length; i += 2) {
            received.append(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
          }
          resolve(new Response(Buffer.concat(chunks), { status: statusCode, headers: received }));
        },
      );
      outgoing.once("error", reject).end(body);
    });
  };
  return new Browser(handler, `${origin}/api/auth`, headers);
}

interface Place {
  /** A browser that has not been here before. */
  visit(): Browser;
  /** Where the example says who is signed in. */
  me: string;
}

type Me = { email?: string; tenantId?: string };
type Signed = { user: { id: string; tenantId: string | null } };

/** The same person signs up and in at two tenants, and is somebody else at each of them. */
export async function expectTwoTenants(acme: Place, globex: Place) {
  const person = { name: "Al", email: "al@example.com", password: PASSWORD };
  const signed: Signed["user"][] = [];
  for (const [here, there] of [
    [acme, globex],
    [globex, acme],
  ] as const) {
    const newcomer = await here.visit().post<Signed>("/sign-up/email", person);
    expect(newcomer.status, JSON.stringify(newcomer.data)).toBe(200);

    const browser = here.visit();
    const again = await browser.post<Signed>("/sign-in/email", person);
    expect([again.status, again.data.user.id]).toEqual([200, newcomer.data.user.id]);
    const { tenantId } = again.data.user;
    expect(tenantId).toEqual(expect.any(String));
    expect((await browser.get<Me>(here.me)).data).toEqual({ email: person.email, tenantId });
    expect((await browser.get<Me>(there.me)).data).toEqual({});
    signed.push(again.data.user);
  }
  expect(signed[0]?.id).not.toBe(signed[1]?.id);
  expect(signed[0]?.tenantId).not.toBe(signed[1]?.tenantId);
}
