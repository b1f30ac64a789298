/** A name, or something else where there is nothing to see in it. */
export function shownName(name: string, otherwise: string): string {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(name) ? name : otherwise;
}

const STYLE = { dateStyle: "medium", timeStyle: "short" } as const;
const inUTC = new Intl.DateTimeFormat("en", { ...STYLE, timeZone: "UTC" });
const inOwnZone = new Intl.DateTimeFormat("en", STYLE);

/** In UTC: for emails, and for pages until the browser shows its own time. See `<Time>`. */
export function formatTime(date: Date | string): string {
  return `${inUTC.format(new Date(date))} UTC`;
}

/** In the time zone of the browser that this runs in. */
export const formatLocalTime = (date: Date | string) => inOwnZone.format(new Date(date));

/** "Chrome on Linux" for what a browser says about itself. */
export function formatBrowser(userAgent: string | null | undefined): string {
  const agent = userAgent ?? "";
  const first = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = first([
    [/Edg\//, "Edge"],
    [/Chrome\//, "Chrome"],
    [/Firefox\//, "Firefox"],
    [/Safari\//, "Safari"],
  ]);
  const system = first([
    [/Android/, "Android"],
    [/iPhone|iPad/, "iOS"],
    [/Windows/, "Windows"],
    [/Mac OS/, "macOS"],
    [/Linux/, "Linux"],
  ]);
  return [browser ?? "An unknown browser", system].filter(Boolean).join(" on ");
}
