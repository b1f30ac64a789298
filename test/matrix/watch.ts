import type { FullInstance } from "./instance";
import { SIDES, type Side, type SideName } from "./sides";
import { watchDatabase } from "./state";
import { watchStorage } from "./storage-state";

/** All that is kept, in the database and in secondary storage, who owns it, and the way back to it. */
export async function watchState({ database, entries }: FullInstance, sides: Side[]) {
  const rows = await watchDatabase(database, sides);
  const values = watchStorage(entries, sides, rows.userIdsOf);
  const texts = (side: SideName) => new Set([...rows.textsOf(side), ...values.textsOf(side)]);
  return {
    secrets: secretsIn(texts),

    /** What of the sides a request has changed; undoes whatever it did. */
    changesOf: async (names: SideName[]): Promise<string[]> => [
      ...(await rows.changesOf(names)),
      ...values.changesOf(names),
    ],

    /** Takes every session out of where they are kept. */
    async forgetSessions() {
      await rows.empty("session");
      for (const { credentials } of sides) entries.delete(credentials.token);
    },
  };
}

/** The texts that are found on one side only: its ids, tokens, names. */
function secretsIn(textsOf: (side: SideName) => Set<string>): Record<SideName, string[]> {
  const texts = Object.fromEntries(
    SIDES.map((side) => [side, [...textsOf(side)].filter(isSecret)]),
  );
  const isOnlyAt = (side: SideName, text: string) =>
    SIDES.every((other) => other === side || !texts[other]?.includes(text));
  const entries = SIDES.map((side) => [side, texts[side]?.filter((text) => isOnlyAt(side, text))]);
  return Object.fromEntries(entries);
}

/** Dates and short words are on every side, or say nothing. */
const isSecret = (text: string) => text.length >= 8 && !/^\d{4}-\d\d-\d\dT/.test(text);
