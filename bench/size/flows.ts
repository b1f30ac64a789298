import { cookiesOf, PASSWORD, request, send } from "../instance";
import type { Side } from "../measure";
import type { Person, Place } from "./place";
import { tenantId, tenantSlug } from "./population";

const VISITORS = 200;

export const signInRequest = ({ tenantId, email }: Person) =>
  request("/tenant/sign-in/email", { body: { tenantId, email, password: PASSWORD } });

const socialRequest = ({ tenantId }: Pick<Person, "tenantId">) =>
  request("/tenant/sign-in/social", {
    body: { tenantId, provider: "google", callbackURL: "/welcome" },
  });

let newcomers = 0;
const signUpRequest = ({ tenantId }: Person) => {
  const email = `newcomer-${++newcomers}@example.com`;
  const body = { tenantId, name: "Newcomer", email, password: PASSWORD };
  return request("/tenant/sign-up/email", { body });
};

/** Somebody is sent to the provider, and comes back as who they are there. */
async function callbackRequest({ handler }: Place, person: Person) {
  const answer = await send(handler, socialRequest(person));
  const { url } = (await answer.json()) as { url: string };
  const { searchParams } = new URL(url);
  const state = searchParams.get("state") ?? "";
  const query = new URLSearchParams({ code: String(person.n), state });
  return request(`${searchParams.get("redirect_uri")}?${query}`, {
    headers: { cookie: cookiesOf(answer) },
  });
}

/** Each request is somebody else's. */
function side(place: Place, make: (person: Person, index: number) => Request | Promise<Request>) {
  let next = 0;
  const requests = async (count: number) => {
    const ready: Request[] = [];
    while (ready.length < count) ready.push(await make(place.person(next), next++));
    return ready;
  };
  return { handler: place.handler, requests } satisfies Side;
}

async function getSession(place: Place) {
  const cookies: string[] = [];
  while (cookies.length < VISITORS) {
    const answer = await send(place.handler, signInRequest(place.person(cookies.length)));
    cookies.push(cookiesOf(answer));
  }
  return side(place, (_, index) =>
    request("/get-session", { headers: { cookie: cookies[index % VISITORS] ?? "" } }),
  );
}

type Flows = Record<string, (place: Place) => Side | Promise<Side>>;

/** What may cost more in a tenant with many users. */
export const FLOWS_OF_USERS: Flows = {
  "sign-up": (place) => side(place, signUpRequest),
  "sign-in": (place) => side(place, signInRequest),
  "get-session": getSession,
  "social start": (place) => side(place, socialRequest),
  callback: (place) => side(place, (person) => callbackRequest(place, person)),
};

export const FLOWS_OF_TENANTS: Flows = {
  // The second next has no config: nothing is decrypted, and what is left is the size.
  "social start, global credentials": (place) =>
    side(place, ({ tenant }) => socialRequest({ tenantId: tenantId(tenant + 2) })),
  "tenant by slug": (place) =>
    side(place, ({ tenant }) => request(`/tenant/get?slug=${tenantSlug(tenant)}`)),
  "page of tenants by name": (place) =>
    side(place, () => request("/tenant/list?limit=10&sort=name")),
};
