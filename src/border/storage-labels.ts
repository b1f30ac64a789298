import { parseJSON } from "../framework";
import type { SessionRow } from "../scope/scope";
import type { Row } from "./border";

/**
 * R10: what a tenant keeps in secondary storage carries a label of ours around the value, whatever
 * the value looks like. A value without a label was there before us, or is the platform's.
 */
interface Label {
  tenantId: string;
  /** When the tenant was created: a number may be given to a second tenant. */
  since: string;
  /** True for a session that was looked at when it was written: no other is one. */
  session?: boolean;
}

export interface Opened {
  label?: Label | undefined;
  value: unknown;
}

/** What is stored of a session, and the two parts of it. */
export interface SessionValue {
  whole: object;
  session: SessionRow;
  user: Row | undefined;
}

const LABEL = "tenantAuth";

export const EMPTY: Opened = { value: undefined };
/** Around a value of the platform that could be taken for a labelled one. */
const PLATFORM_LABEL: Label = { tenantId: "", since: "" };

export const withLabel = (value: string, label = PLATFORM_LABEL) =>
  JSON.stringify({ [LABEL]: label, value });

export const isPlain = (value: string) => open(value).value === value;

/** Storages give back the text that was stored, the same in another layout, or what is in it. */
export function open(stored: unknown): Opened {
  const text = typeof stored === "string" ? stored : undefined;
  const parsed = text?.includes(LABEL) ? parseJSON(text) : stored;
  if (!isObject(parsed) || !Object.hasOwn(parsed, LABEL)) return { value: stored };
  const label = parsed[LABEL] as Label;
  return label?.tenantId === "" ? { value: parsed.value } : { label, value: parsed.value };
}

/**
 * What better-auth would take for a session, whoever wrote it and under whatever key: it looks for
 * these two, and for nothing in them. Two texts, say, are nobody's. The form of a value only ever
 * leads to more questions.
 */
export function sessionIn(value: unknown): SessionValue | undefined {
  // More than once: a storage may parse what is written as text in a text.
  if (typeof value === "string") return sessionIn(parseJSON(value));
  if (!isObject(value) || value.session == null || !("user" in value)) return undefined;
  if (!isObject(value.session) && !isObject(value.user)) return undefined;
  const user = value.user == null ? undefined : Object(value.user);
  return { whole: value, session: Object(value.session), user };
}

/** The same, if nothing says that it was never looked at, or is from before there were labels. */
export function admittedIn(
  { label, value }: Opened,
  found = sessionIn(value),
): SessionValue | undefined {
  const isAdmitted = label ? label.session : !(found?.session.tenantId || found?.user?.tenantId);
  return isAdmitted ? found : undefined;
}

export function verificationIn(value: unknown): unknown {
  const parsed = typeof value === "string" ? parseJSON(value) : value;
  return isObject(parsed) ? parsed.value : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;
