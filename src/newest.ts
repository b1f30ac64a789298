/** Writes into a map, and lets go of the oldest entry where there are too many. */
export const keepNewest =
  <T>(most: number) =>
  (entries: Map<string, T>, key: string, value: T): void => {
    const [oldest] = entries.keys();
    if (oldest !== undefined && entries.size >= most && !entries.has(key)) entries.delete(oldest);
    entries.set(key, value);
  };
