import type { CSSProperties } from "react";
import { providerName } from "@/lib/providers";

/** A provider's initial, in a color of its own. Put the provider's logo here if its terms allow it. */
export function ProviderIcon({ id }: { id: string }) {
  const hue = [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 0);
  return (
    <span
      className="themed monogram small-icon"
      style={{ "--hue": hue } as CSSProperties}
      data-initial={providerName(id)[0]}
      aria-hidden="true"
    />
  );
}
