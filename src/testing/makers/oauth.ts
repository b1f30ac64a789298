import { saveOAuthConfig } from "../../features/oauth/config-store";
import { ok } from "../sides/browser";
import type { Side } from "../sides/side";
import { maker } from "./maker";

/** Credentials of a tenant for its client at Google, so that every tenant has a provider. */
export async function registerProvider(side: Side): Promise<void> {
  const { place, workshop, name, secrets } = side;
  if (place.tenantId === null) return;
  const clientId = clientOf(side);
  const clientSecret = `client-secret-${workshop.mark}-${name}`;
  const key = { tenantId: place.tenantId, providerId: "google" };
  await saveOAuthConfig(workshop.subject.ctx, key, { clientId, clientSecret, enabled: true });
  secrets.push(clientId, clientSecret);
}

const clientOf = ({ workshop, name }: Side) => `client-${workshop.mark}-${name}`;

/** Google in a tenant; on the platform what is configured there. */
function providerOf({ place, workshop }: Side): string | undefined {
  if (place.tenantId !== null) return "google";
  // Outside of requests the list has the application's own.
  const configured = workshop.subject.ctx.socialProviders.map(({ id }) => id);
  return configured.includes("google") ? "google" : configured[0];
}

const give = "`socialProviders` with Google: the kit has a stand-in for it";

/** A user has gone to a provider, and is on the way back. */
export const oauthState = maker(
  "OAuth state",
  ["/sign-in/social", "/callback/:id"],
  async (side) => {
    const id = providerOf(side);
    if (!id) return;
    const browser = side.fresh();
    const body = { provider: id, callbackURL: "/welcome" };
    const { url } = await ok<{ url: string }>(browser.post("/sign-in/social", body));
    const { searchParams } = new URL(url);
    const sub = `social-${side.workshop.mark}-${side.name}`;
    const aud = searchParams.get("client_id") ?? "";
    const code = `code-${sub}`;
    side.workshop.providers.answerFor(url, code, { aud, sub, email: `${sub}@example.com` });
    const values = { id, state: searchParams.get("state"), code };
    return { values, cookies: browser.cookies, home: ofTenant(side, "/callback/:id") };
  },
  { give },
);

/** The endpoint that the tenants have instead of one of better-auth's. */
const ofTenant = ({ place }: Side, path: string) =>
  place.tenantId === null ? path : `/tenant${path}`;

/** A token of Google for the client of a side. */
async function googleToken(side: Side, word: string): Promise<string> {
  const { subject, mark, providers } = side.workshop;
  const google = subject.ctx.socialProviders.find(({ id }) => id === "google");
  const { clientId } = (google?.options ?? {}) as { clientId?: string | string[] };
  const aud = side.place.tenantId === null ? ([clientId].flat()[0] ?? "") : clientOf(side);
  const sub = `${word}-${mark}-${side.name}`;
  return providers.googleIdToken({ aud, sub, email: `${sub}@example.com` });
}

export const oneTap = maker("one-tap token", ["/one-tap/callback"], async (side) => {
  if (providerOf(side) !== "google") return;
  return { values: { idToken: await googleToken(side, "tap") } };
});

export const idToken = maker(
  "id token",
  ["/sign-in/social"],
  async (side) => {
    if (providerOf(side) !== "google") return;
    const token = await googleToken(side, "google");
    const values = { provider: "google", idToken: { token } };
    // Once at home: now there is an account that the other side could take for its own.
    await ok(side.fresh().post("/sign-in/social", values));
    return { values, home: ofTenant(side, "/sign-in/social") };
  },
  { give },
);
