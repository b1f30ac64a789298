import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

/** Screenshots are kept, as CI's output too, and looked at. */
const OUTPUT = process.env.SCREENSHOTS ?? join(import.meta.dirname, "../output");
mkdirSync(OUTPUT, { recursive: true });

/** Large and small, light and dark: no colour depends on the size, and no size on the colours. */
const LOOKS = [
  { look: "desktop", colorScheme: "light", viewport: { width: 1280, height: 860 } },
  { look: "phone-dark", colorScheme: "dark", viewport: { width: 390, height: 844 } },
] as const;

export const photograph = (page: Page, name: string) =>
  page.screenshot({ path: join(OUTPUT, `${name}.png`), fullPage: true });

/** Shows a page in every look, takes a picture of it, and hands it over. */
export async function inEachLook(
  page: Page,
  name: string,
  examine: (look: string, width: number) => Promise<void>,
) {
  for (const { look, colorScheme, viewport } of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    await photograph(page, `${name}-${look}`);
    await examine(`${name}-${look}`, viewport.width);
  }
}
