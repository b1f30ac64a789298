import type { Watch } from "../data/watch";
import type { Endpoint } from "../instance/endpoints";
import type { StandIn } from "../instance/network";
import type { Subject } from "../instance/subject";
import type { About, Mail, Values } from "../options";
import { Browser } from "./browser";
import { createPerson, PASSWORD, type Person, requiredFields, signIn } from "./people";
import { inside, type Place, SIDES } from "./places";

/** Something that is shown once, together with what better-auth expects beside it. */
export interface OneTime {
  name: string;
  values: Values;
  cookies?: Map<string, string>;
  /** It goes along in a header, with every endpoint that may create a user. */
  headers?: Record<string, string>;
  /** The endpoint that takes it, by which method, and whether the caller has to be signed in. */
  home: string;
  method?: string;
  homeNeedsSession?: boolean;
  /** Carries its tenant in a seal, and leads there where no tenant is named. */
  sealed?: boolean;
  /** What it is sealed for, if that is more than the endpoint that takes it. */
  sealedFor?: string;
  /** Taken out of its seal it is not valid, not even at home. */
  needsSeal?: boolean;
  /** Does not say what is done with it: at home, it is tried on things of other sides. */
  namesNothing?: boolean;
  /** Made for one side, and shown as if it were made for the other: it must not be valid. */
  isForeign?: boolean;
  /** Makes it anew if it is valid for a moment only. */
  refresh?: () => Promise<void>;
}

export interface Workshop {
  subject: Subject;
  watch: Watch;
  providers: StandIn;
  paths: Set<string>;
  /** A word that is on no other side, and in no other run. */
  mark: string;
  takeMails(): Promise<Mail[]>;
  /** What an endpoint of the application has changed of others while test data is created. */
  noteChanges(side: Side, endpoint: Endpoint): Promise<void>;
}

/** A side while its test data is created: a user that has everything one can have there. */
export class Side {
  readonly things: Values = {};
  /** What endpoints of the application returned, by the first part of their path. */
  readonly returned = new Map<string, Values>();
  readonly oneTimes: OneTime[] = [];
  /** What only this side may know, besides what is in its rows. */
  readonly secrets: string[] = [];
  apiKey: string | undefined;
  /** Sessions of another kind: of an admin who impersonates a user, or of an anonymous user. */
  readonly sessions: { name: string; userId: string; cookies: Map<string, string> }[] = [];
  /** Credentials of this side, made for what another side asks for. */
  readonly abroad: ((at: Side) => Promise<OneTime>)[] = [];
  passkeyChallenge?: () => Promise<Pick<Browser, "cookies"> & Record<"challenge" | "rpId", string>>;

  constructor(
    readonly place: Place,
    readonly workshop: Workshop,
    readonly main: Person,
    readonly second: Person,
    readonly newcomerEmail: string,
  ) {}

  get name() {
    return this.place.name;
  }

  /** A text that no other side has. */
  get mark() {
    return `text-${this.name}-${this.workshop.mark}`;
  }

  /** What inputs and routes of the application are told about this side. */
  about(): About {
    const { tenantId, tenantSlug: slug } = this.place;
    const { userId, email } = this.main;
    const rows = (table: string) => this.workshop.watch.rowsOf(this.name, table);
    return { tenantId, slug, userId, email, mark: this.mark, rows };
  }

  fresh(): Browser {
    return new Browser(this.workshop.subject, this.place);
  }

  /** If the base URL depends on the request, calls of the server's own code need its headers. */
  serverCall(): { headers?: Headers } {
    const { baseURL } = this.workshop.subject.ctx.options;
    if (typeof baseURL !== "object" || baseURL.fallback) return {};
    return { headers: new Headers({ host: new URL(this.place.origin).host }) };
  }

  inside<T>(run: () => Promise<T>): Promise<T> {
    return inside(this.place, run);
  }
}

/** 1, 2 or 3. */
export const numberOf = ({ name }: Place) => SIDES.indexOf(name) + 1;

/** A side with two users who are signed in, and one who has not verified the email yet. */
export async function settle(workshop: Workshop, place: Place, person: Values): Promise<Side> {
  const { subject, mark } = workshop;
  const own = `${place.name}-${mark}`;
  // The first and the third user have the same email on every side, the second one does not.
  const word = subject.tenantOptions.keepEmailGloballyUnique ? own : mark;
  const email = `everywhere-${word}@example.com`;
  const secondEmail = `second-${own}@example.com`;
  const newcomerEmail = `newcomer-${word}@example.com`;
  const username = `${mark}_${place.name}`;
  const phoneNumber = `+1555000${String(numberOf(place)).repeat(3)}`;
  const text = `text-${own}`;
  const create = (role: string, email: string, values: Values) =>
    createPerson(subject, place, { email, name: `${role} ${text}`, values });
  const mainId = await create("main-person", email, {
    username,
    displayUsername: username,
    phoneNumber,
    phoneNumberVerified: true,
    // The operators of the platform may see all. Ordinary users of the platform may not.
    role: place.tenantId === null ? "user" : "admin",
    ...person,
  });
  const secondId = await create("second-person", secondEmail, { role: "user", ...person });
  await create("newcomer", newcomerEmail, { role: "user", ...person, emailVerified: false });
  const main = await signIn(new Browser(subject, place), mainId, email);
  const second = await signIn(new Browser(subject, place), secondId, secondEmail);
  const side = new Side(place, workshop, main, second, newcomerEmail);
  side.secrets.push(text);
  const required = requiredFields(subject, own, true);
  const given = Object.entries(person).filter(([name]) => name in required);
  const newPerson = { ...required, ...Object.fromEntries(given) };
  Object.assign(side.things, {
    userId: mainId,
    user_id: mainId,
    secondUserId: secondId,
    freshEmail: `fresh-${mark}-${place.name}@example.com`,
    freshName: `fresh_${mark}_${place.name}`,
    freeText: text,
    newPerson,
    email,
    username,
    phoneNumber,
    sessionToken: main.token,
    token: main.token,
    tenantId: place.tenantId ?? undefined,
  });
  // Hooks of the application may do something when users sign up, or change something.
  await main.browser.post("/update-user", { name: `main-person ${text}` });
  const signedUp = { name: `signed-up ${text}`, email: `signed-up-${own}@example.com` };
  await side.fresh().post("/sign-up/email", { ...newPerson, ...signedUp, password: PASSWORD });
  return side;
}
