/** A name, or something else where there is nothing to see in it. */
export function shownName(name: string, otherwise: string): string {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(name) ? name : otherwise;
}

const moment = new Intl.DateTimeFormat("en", {
  dateStyle: "medium",
  timeStyle: "short",
  timeZone: "UTC",
});

/** The same on the server and in every browser. */
export function formatTime(date: Date | string): string {
  return `${moment.format(new Date(date))} UTC`;
}

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
