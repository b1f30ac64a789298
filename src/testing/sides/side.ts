import type { Watch } from "../data/watch";
import type { StandIn } from "../instance/network";
import type { Subject } from "../instance/subject";
import type { About, Mail, Values } from "../options";
import type { Browser } from "./browser";
import { browserAt, createPerson, PASSWORD, type Person, requiredFields, signIn } from "./people";
import { inside, type Place, SIDES } from "./places";

/** Something that is shown once, together with what better-auth expects beside it. */
export interface OneTime {
  name: string;
  /** Input fields that it goes into. */
  values: Values;
  cookies?: Map<string, string>;
  /** It goes along in a header, with whichever endpoint may make a user. */
  headers?: Record<string, string>;
  /** Where it is good, by which method, and whether somebody has to be signed in there. */
  home: string;
  method?: string;
  homeNeedsSession?: boolean;
  /** Carries its tenant in a seal, and leads there where no tenant is named. */
  sealed?: boolean;
  /** What it is sealed for, if that is more than where it is good. */
  sealedFor?: string;
  /** Taken out of its seal it is good for nothing, at home neither. */
  needsSeal?: boolean;
  /** Says nothing about what is done with it: at home, things of elsewhere are tried with it. */
  namesNothing?: boolean;
  /** Made for one side, and shown as if it were made for the other: it must be good for nothing. */
  isForeign?: boolean;
  /** Makes it anew where it is good for a moment only. */
  refresh?: () => Promise<void>;
}

/** What makers need to furnish a side. */
export interface Workshop {
  subject: Subject;
  watch: Watch;
  providers: StandIn;
  paths: Set<string>;
  /** A word that is on no other side, and in no other run. */
  mark: string;
  takeMails(): Promise<Mail[]>;
  /** What an endpoint of the application has changed of others while test data is created. */
  noteChanges(side: Side, endpoint: { method: string; path: string }): Promise<void>;
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
  /** Sessions of another kind: an admin who acts as somebody else, somebody without a name. */
  readonly sessions: { name: string; userId: string; cookies: Map<string, string> }[] = [];
  /** Credentials of this side, made for what another side asks for. */
  readonly abroad: ((at: Side) => Promise<OneTime>)[] = [];
  passkeyChallenge?: () => Promise<{
    challenge: string;
    rpId: string;
    cookies: Map<string, string>;
  }>;

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
    return markOf(this.place, this.workshop.mark);
  }

  /** What inputs and routes of the application are told about this side. */
  about(): About {
    const { tenantId, tenantSlug: slug } = this.place;
    const { userId, email } = this.main;
    const rows = (table: string) => this.workshop.watch.rowsOf(this.name, table);
    return { tenantId, slug, userId, email, mark: this.mark, rows };
  }

  get number() {
    return SIDES.indexOf(this.place.name) + 1;
  }

  /** A browser in which nobody is signed in. */
  fresh(): Browser {
    return browserAt(this.workshop.subject, this.place);
  }

  /** Where the base URL goes by the request, calls of the server's own code take its headers. */
  serverCall(): { headers?: Headers } {
    const { baseURL } = this.workshop.subject.ctx.options;
    if (typeof baseURL !== "object" || baseURL.fallback) return {};
    return { headers: new Headers({ host: new URL(this.place.origin).host }) };
  }

  inside<T>(run: () => Promise<T>): Promise<T> {
    return inside(this.place, run);
  }
}

const markOf = ({ name }: Place, mark: string) => `text-${name}-${mark}`;

/** The first and the third person have the same email on every side, the second one does not. */
const emails = (word: string, own: string) => ({
  main: `everywhere-${word}@example.com`,
  second: `second-${own}@example.com`,
  newcomer: `newcomer-${word}@example.com`,
});

/** A side with two people who are signed in, and one who has not verified the email yet. */
export async function settle(workshop: Workshop, place: Place, person: Values): Promise<Side> {
  const { subject, mark } = workshop;
  const { keepEmailGloballyUnique } = subject.tenantOptions;
  const own = `${place.name}-${mark}`;
  const address = emails(keepEmailGloballyUnique ? own : mark, own);
  const number = SIDES.indexOf(place.name) + 1;
  const create = (role: string, email: string, values: Values) =>
    createPerson(subject, place, { email, name: `${role} ${markOf(place, mark)}`, values });
  const username = `${mark}_${place.name}`;
  const mainId = await create("main-person", address.main, {
    username,
    displayUsername: username,
    phoneNumber: `+1555000${number}${number}${number}`,
    phoneNumberVerified: true,
    // The operators of the platform may see all. Ordinary people of the platform may not.
    role: place.tenantId === null ? "user" : "admin",
    ...person,
  });
  const secondId = await create("second-person", address.second, { role: "user", ...person });
  await create("newcomer", address.newcomer, { role: "user", ...person, emailVerified: false });
  const main = await signIn(subject, place, mainId, address.main);
  const second = await signIn(subject, place, secondId, address.second);
  const side = new Side(place, workshop, main, second, address.newcomer);
  side.secrets.push(side.mark);
  const newPerson = requiredFields(subject, own, true);
  const given = Object.entries(person).filter(([name]) => name in newPerson);
  Object.assign(side.things, {
    userId: mainId,
    user_id: mainId,
    secondUserId: secondId,
    freshEmail: `fresh-${mark}-${place.name}@example.com`,
    freshName: `fresh_${mark}_${place.name}`,
    freeText: side.mark,
    newPerson: { ...newPerson, ...Object.fromEntries(given) },
    email: address.main,
    username,
    phoneNumber: `+1555000${number}${number}${number}`,
    sessionToken: main.token,
    token: main.token,
    tenantId: place.tenantId ?? undefined,
  });
  // Hooks of the application may do something when people sign up, or change something.
  await main.browser.post("/update-user", { name: `main-person ${side.mark}` });
  const email = `signed-up-${own}@example.com`;
  const name = `signed-up ${side.mark}`;
  const { newPerson: fields } = side.things;
  await side
    .fresh()
    .post("/sign-up/email", { ...(fields as Values), name, email, password: PASSWORD });
  return side;
}
