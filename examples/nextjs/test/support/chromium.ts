import { existsSync } from "node:fs";

const PLACES = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/** Where Chromium is installed. Without one there is nothing to test in, unless it is demanded. */
export function findChromium(): string | undefined {
  const { CHROMIUM, BROWSER } = process.env;
  const found = CHROMIUM ?? PLACES.find((path) => existsSync(path));
  if (found) return found;
  const message = "No Chromium found. Install one (apt-get install chromium), or set CHROMIUM.";
  if (BROWSER === "required") throw new Error(message);
  console.log(`\nSkipped: all browser tests. ${message}\n`);
}
