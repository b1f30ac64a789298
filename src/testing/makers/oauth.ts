import { saveOAuthConfig } from "../../oauth/config-store";
import type { Subject } from "../instance/subject";
import { ok } from "../sides/browser";
import type { Side } from "../sides/side";
import type { Maker } from "./maker";

/** What a tenant has for its client at Google, so that every tenant has a provider. */
export async function registerProvider(side: Side): Promise<void> {
  const { place, workshop, name, secrets } = side;
  if (place.tenantId === null) return;
  const clientId = clientOf(side);
  const clientSecret = `client-secret-${workshop.mark}-${name}`;
  const rest = { options: null, scopes: null, redirectURI: null, enabled: true };
  const config = { clientId, clientSecret, ...rest };
  await saveOAuthConfig(workshop.subject.ctx, place.tenantId, "google", config);
  secrets.push(clientId, clientSecret);
}

const clientOf = ({ workshop, name }: Side) => `client-${workshop.mark}-${name}`;

/** Google in a tenant; on the platform whatever is configured there. */
function providerOf({ place, workshop }: Side): string | undefined {
  if (place.tenantId !== null) return "google";
  const configured = globalProviders(workshop.subject).map(({ id }) => id);
  return configured.includes("google") ? "google" : configured[0];
}

/** Outside of requests the list has the application's own. */
const globalProviders = ({ ctx }: Subject) =>
  ctx.socialProviders.map(({ id, options }) => ({
    id,
    options: options as { clientId?: string | string[] } | undefined,
  }));

const callbackOf = ({ place }: Side) =>
  place.tenantId === null ? "/callback/:id" : "/tenant/callback/:id";

/** Somebody has gone to a provider, and is on the way back. */
export const oauthState: Maker = {
  name: "OAuth state",
  paths: ["/sign-in/social", "/callback/:id"],
  give: "`socialProviders` with Google: the kit has a stand-in for it",
  async make(side) {
    const provider = providerOf(side);
    if (!provider) return;
    const flow = side.fresh();
    const { url } = await ok<{ url: string }>(
      flow.post("/sign-in/social", { provider, callbackURL: "/welcome" }),
    );
    const { searchParams } = new URL(url);
    const sub = `social-${side.workshop.mark}-${side.name}`;
    const aud = searchParams.get("client_id") ?? "";
    const code = `code-${sub}`;
    side.workshop.providers.answerFor(url, code, { aud, sub, email: `${sub}@example.com` });
    side.oneTimes.push({
      name: this.name,
      values: { id: provider, state: searchParams.get("state"), code },
      cookies: flow.cookies,
      home: callbackOf(side),
    });
  },
};

/** A token of Google for the client of a side. */
async function googleToken(side: Side, word: string): Promise<string> {
  const google = globalProviders(side.workshop.subject).find(({ id }) => id === "google");
  const globalClient = [google?.options?.clientId].flat()[0] ?? "";
  const aud = side.place.tenantId === null ? globalClient : clientOf(side);
  const sub = `${word}-${side.workshop.mark}-${side.name}`;
  return side.workshop.providers.googleIdToken({ aud, sub, email: `${sub}@example.com` });
}

export const oneTap: Maker = {
  name: "one-tap token",
  paths: ["/one-tap/callback"],
  async make(side) {
    if (providerOf(side) !== "google") return;
    const values = { idToken: await googleToken(side, "tap") };
    side.oneTimes.push({ name: this.name, values, home: "/one-tap/callback" });
  },
};

export const idToken: Maker = {
  name: "id token",
  paths: ["/sign-in/social"],
  give: oauthState.give ?? "",
  async make(side) {
    if (providerOf(side) !== "google") return;
    const token = await googleToken(side, "google");
    const values = { provider: "google", idToken: { token } };
    // Once at home: now there is an account that the other side could take for its own.
    await ok(side.fresh().post("/sign-in/social", values));
    side.oneTimes.push({
      name: this.name,
      values,
      home: side.place.tenantId === null ? "/sign-in/social" : "/tenant/sign-in/social",
    });
  },
};
