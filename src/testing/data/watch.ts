import { tenantInPrefix } from "../../request/prefix";
import type { Subject } from "../instance/subject";
import type { ReadTables, Row } from "../options";
import { type Place, SIDES, type SideName } from "../sides/places";
import { type Entries, openEntries } from "./entries";
import { createOwnership, keyOf, type Ownership } from "./ownership";
import { noteWrites, type OpenTables, openTables, type Tables } from "./rows";
import { isSecret, textsIn } from "./texts";

/** What a row is known by; one without an id is another row when it changes. */
const idOf = (row: Record<string, unknown>) => String(row.id ?? JSON.stringify(row));

/** All that is kept, in the database and in secondary storage, who owns it, and the way back to it. */
export class Watch {
  /** What was put into the verification table or its stand-in last. */
  lastVerification: { identifier?: string; value?: string } = {};
  secrets: Record<SideName, string[]> = { a: [], b: [], platform: [] };

  private readonly tables: OpenTables;
  private readonly entries: Entries;
  private readonly written = new Set<string>();
  private readonly made = new Map<string, SideName>();
  private readonly stopNoting: () => void;
  private ownership: Ownership | undefined;
  private before: Tables = new Map();
  private own: Record<string, Record<string, unknown>[]> = {};

  constructor(
    subject: Subject,
    private readonly readOwn: ReadTables | undefined,
  ) {
    this.tables = openTables(subject);
    this.stopNoting = noteWrites(subject, (model, data) => {
      this.written.add(model);
      if (model === "verification" && data) this.lastVerification = data;
    });
    this.entries = openEntries(subject, (key, value) => {
      const parsed = key.includes("verification:") ? textsIn(value) : [];
      if (parsed.length) this.lastVerification = { identifier: key, value: parsed.join("\n") };
    });
  }

  async begin(): Promise<void> {
    this.before = await this.tables.readAll();
    this.own = (await this.readOwn?.()) ?? {};
  }

  /** What has come since it was last asked belongs to the side that it was made on. */
  async attribute(side: SideName): Promise<void> {
    const now = await this.tables.readAll();
    for (const [model, table] of now) {
      for (const id of table.keys()) {
        const key = keyOf(model, id);
        if (!this.before.get(model)?.has(id) && !this.made.has(key)) this.made.set(key, side);
      }
    }
    for (const [table, rows] of Object.entries((await this.readOwn?.()) ?? {})) {
      const known = new Set((this.own[table] ?? []).map(idOf));
      for (const row of rows) {
        const key = keyOf(table, idOf(row));
        if (!known.has(idOf(row)) && !this.made.has(key)) this.made.set(key, side);
      }
    }
  }

  /** From here on nothing may change. */
  async guard(subject: Subject, places: Place[], extra: Record<SideName, string[]>) {
    const ownership = createOwnership(subject, places, this.made);
    const now = await this.tables.readAll();
    // Twice: the owner of a row may be known by the row that it refers to.
    ownership.learn(now);
    ownership.learn(now);
    this.ownership = ownership;
    this.initial = this.before;
    this.before = now;
    this.own = (await this.readOwn?.()) ?? {};
    this.written.clear();
    this.entries.remember();
    this.secrets = this.findSecrets(ownership, extra);
  }

  private initial: Tables = new Map();

  private findSecrets(ownership: Ownership, extra: Record<SideName, string[]>) {
    const texts = Object.fromEntries(
      SIDES.map((side) => {
        const ofRows = [...this.before].flatMap(([model, table]) =>
          [...table.values()]
            .filter(({ row }) => ownership.ownerOf(model, row) === side)
            .flatMap(({ row }) => Object.values(row).flatMap(textsIn)),
        );
        const ofOwn = this.ownRowsOf(side).flatMap(textsIn);
        const all = [...ofRows, ...ofOwn, ...this.entries.textsOf(side, ownership), ...extra[side]];
        return [side, new Set(all.filter(isSecret))];
      }),
    ) as Record<SideName, Set<string>>;
    const onlyAt = (side: SideName) =>
      [...texts[side]].filter((text) =>
        SIDES.every((other) => other === side || !texts[other].has(text)),
      );
    return { a: onlyAt("a"), b: onlyAt("b"), platform: onlyAt("platform") };
  }

  private ownRowsOf(side: SideName) {
    return Object.entries(this.own).flatMap(([table, rows]) =>
      rows.filter((row) => this.made.get(keyOf(table, idOf(row))) === side),
    );
  }

  rowsOf(side: SideName, model: string): Row[] {
    const own = (this.own[model] ?? []).filter(
      (row) => this.made.get(keyOf(model, idOf(row))) === side,
    );
    if (own.length) return own as Row[];
    const rows = [...(this.before.get(model)?.values() ?? [])].map(({ row }) => row);
    return rows.filter((row) => this.ownership?.ownerOf(model, row) === side);
  }

  /** What of the sides has changed since it was last asked; undoes whatever was done. */
  async changesOf(sides: SideName[], everywhere = false): Promise<string[]> {
    const { ownership } = this;
    if (!ownership) throw new Error("nothing is guarded yet");
    const written = [...this.written].flatMap((model) => [
      model,
      ...(this.tables.dependents.get(model) ?? []),
    ]);
    const now = await this.tables.readAll(everywhere ? this.tables.models : new Set(written));
    const found: string[] = [];
    for (const [model, table] of now) {
      for (const side of sides) {
        const change = this.difference(model, table, side, ownership);
        if (change) found.push(`${model} of ${side}: ${change}`);
      }
    }
    if (now.size) await this.tables.restore(this.before, now);
    this.written.clear();
    found.push(...(await this.entries.changesOf(sides, ownership)));
    return found;
  }

  private difference(
    model: string,
    now: ReturnType<Tables["get"]>,
    side: SideName,
    { ownerOf }: Ownership,
  ): string | undefined {
    const was = [...(this.before.get(model) ?? [])].filter(
      ([, { row }]) => ownerOf(model, row) === side,
    );
    const come = [...(now ?? [])].filter(
      ([id, { row }]) => !this.before.get(model)?.has(id) && ownerOf(model, row) === side,
    );
    const gone = was.filter(([id]) => !now?.has(id));
    const changed = was.filter(([id, { text }]) => (now?.get(id)?.text ?? text) !== text);
    const columns = changed.flatMap(([id, { row }]) =>
      Object.keys(row).filter(
        (name) => JSON.stringify(row[name]) !== JSON.stringify(now?.get(id)?.row[name]),
      ),
    );
    const parts = [
      ...(come.length ? [`${come.length} new`] : []),
      ...(gone.length ? [`${gone.length} gone`] : []),
      ...(changed.length
        ? [`${changed.length} changed (${[...new Set(columns)].join(", ")})`]
        : []),
    ];
    return parts.join(", ") || undefined;
  }

  /** Changes in tables of the application's own; they cannot be undone, so they are told once. */
  async changesOfOwn(sides: SideName[]): Promise<string[]> {
    if (!this.readOwn) return [];
    const before = this.own;
    const now = await this.readOwn();
    const found: string[] = [];
    for (const [table, rows] of Object.entries(now)) {
      const is = new Set(rows.map((row) => JSON.stringify(row)));
      const victims = (before[table] ?? []).filter((row) => !is.has(JSON.stringify(row)));
      for (const side of sides) {
        const lost = victims.filter((row) => this.made.get(keyOf(table, idOf(row))) === side);
        if (lost.length) found.push(`${table} of ${side}: ${lost.length} changed or gone`);
      }
    }
    this.own = now;
    return found;
  }

  /** Takes every session out of where they are kept: with secondary storage there may be no table. */
  async forgetSessions(tokens: string[]): Promise<void> {
    const models = this.tables.models.filter((model) => model === "session");
    await this.tables.restore(new Map(), await this.tables.readAll(models));
    for (const token of tokens) {
      const tenantId = tenantInPrefix(token);
      await this.entries.forget(tenantId === null ? token : `tenant:${tenantId}:${token}`);
    }
  }

  /** Takes away all that the run has made, and stops watching. */
  async end(keep: boolean): Promise<void> {
    this.stopNoting();
    const initial = this.ownership ? this.initial : this.before;
    if (!keep) {
      await this.entries.empty();
      await this.tables.restore(initial, await this.tables.readAll());
    }
    this.entries.restore();
  }
}
