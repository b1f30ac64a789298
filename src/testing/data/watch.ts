import { tenantInPrefix } from "../../request/prefix";
import type { Subject } from "../instance/subject";
import type { Row, Values } from "../options";
import { type Place, SIDES, type SideName } from "../sides/places";
import { type Entries, openEntries } from "./entries";
import type { OwnTables } from "./own-tables";
import { createOwnership, keyOf, type Ownership } from "./ownership";
import { noteWrites, type OpenTables, openTables, type Table, type Tables } from "./rows";
import { isSecret, textsIn } from "./texts";

/** What a row is known by; one without an id is another row when it changes. */
const idOf = (row: Values) => String(row.id ?? JSON.stringify(row));

interface Watching {
  own: OwnTables;
  /** The application's own tables whose rows belong to no tenant. */
  sharedTables: string[];
  /** Nobody else uses the database: whatever changes during the run is of the run. */
  isAlone: boolean;
}

/** All that is kept, in the database and in secondary storage, who owns it, and the way back to it. */
export class Watch {
  /** What was put into the verification table or its stand-in last. */
  lastVerification: { identifier?: string; value?: string } = {};
  secrets: Record<SideName, string[]> = { a: [], b: [], platform: [] };

  private readonly tables: OpenTables;
  private readonly entries: Entries;
  private readonly written = new Set<string>();
  private readonly made = new Map<string, SideName>();
  /** Whether the application's own tables were changed by the last request. */
  isOwnChanged = false;
  guardAgain: () => Promise<void> = async () => {};
  private readonly effects = new Map<string, { own: Difference[]; rows: Difference[] }[]>();
  private readonly created = new Set<string>();
  private readonly stopNoting: () => void;
  private ownership: Ownership | undefined;
  private initial: Tables = new Map();
  private before: Tables = new Map();
  private ownInitial: Tables = new Map();
  private own: Tables = new Map();

  constructor(
    subject: Subject,
    private readonly watching: Watching,
  ) {
    this.tables = openTables(subject);
    this.stopNoting = noteWrites(subject, (model, data, createdId) => {
      this.written.add(model);
      if (createdId !== undefined) this.created.add(keyOf(model, createdId));
      if (model === "verification" && data) this.lastVerification = data;
    });
    this.entries = openEntries(subject, (key, value) => {
      const parsed = key.includes("verification:") ? textsIn(value) : [];
      if (parsed.length) this.lastVerification = { identifier: key, value: parsed.join("\n") };
    });
  }

  async begin(): Promise<void> {
    this.initial = await this.tables.readAll();
    this.before = this.initial;
    this.ownInitial = await this.readOwn();
    this.own = this.ownInitial;
  }

  private async readOwn(): Promise<Tables> {
    const tables = Object.entries(await this.watching.own.read());
    return new Map(
      tables.map(([name, rows]) => [
        name,
        new Map(rows.map((row) => [idOf(row), { row: row as Row, text: JSON.stringify(row) }])),
      ]),
    );
  }

  /** What has come since it was last asked belongs to the side that it was made on. */
  async attribute(side: SideName): Promise<void> {
    this.before = await this.tables.readAll();
    this.own = await this.readOwn();
    for (const [tables, known] of [
      [this.before, this.initial],
      [this.own, this.ownInitial],
    ] as const) {
      for (const [model, table] of tables) {
        for (const id of table.keys()) {
          const key = keyOf(model, id);
          if (!known.get(model)?.has(id) && !this.made.has(key)) this.made.set(key, side);
        }
      }
    }
  }

  /**
   * Remembers what an endpoint has done since `attribute` was last called. One that takes something
   * away is undone at once: others need it.
   */
  async noteEffects(endpoint: string): Promise<void> {
    const now = await this.tables.readAll();
    const own = differences(this.own, await this.readOwn());
    const rows = differences(this.before, now);
    if (![...own, ...rows].some((one) => !one.now)) {
      const noted = this.effects.get(endpoint) ?? [];
      this.effects.set(endpoint, [...noted, { own, rows }]);
      return;
    }
    await this.tables.restore(this.before, now, this.isOurs);
    await this.putBackOwn(own);
  }

  private async putBackOwn(differences: Difference[]): Promise<void> {
    const { own } = this.watching;
    // First what is there now: the row that comes back may have the same key.
    for (const { table, now } of differences) {
      if (now) await own.remove(table, now.row).catch(() => false);
    }
    for (const { table, was } of differences) {
      if (was) await own.putBack(table, was.row).catch(() => undefined);
    }
  }

  /**
   * Undoes what an endpoint did when test data was created: an input that is sent again would change
   * nothing, and nobody would see that it can.
   */
  async undoEffects(endpoint: string): Promise<void> {
    const effects = this.effects.get(endpoint) ?? [];
    if (!effects.length) return;
    this.effects.delete(endpoint);
    const goal = new Map([...this.before].map(([model, table]) => [model, new Map(table)]));
    for (const { own, rows } of effects.toReversed()) {
      await this.putBackOwn(own);
      for (const { table, id, was } of rows) {
        if (was) goal.get(table)?.set(id, was);
        else goal.get(table)?.delete(id);
      }
    }
    await this.tables.restore(goal, await this.tables.readAll(), this.isOurs);
    this.before = await this.tables.readAll();
    this.own = await this.readOwn();
    this.written.clear();
  }

  /** From here on nothing may change. */
  async guard(subject: Subject, places: Place[], extra: Record<SideName, string[]>) {
    const ownership = createOwnership(subject, places, this.made);
    // After a leak, test data is created again, and all of it is guarded from then on.
    this.guardAgain = () => this.guard(subject, places, extra);
    const now = await this.tables.readAll();
    // Twice: the owner of a row may be known by the row that it refers to.
    ownership.learn(now);
    ownership.learn(now);
    this.ownership = ownership;
    this.before = now;
    this.own = await this.readOwn();
    this.written.clear();
    this.entries.remember();
    this.secrets = this.findSecrets(ownership, extra);
  }

  private findSecrets(ownership: Ownership, extra: Record<SideName, string[]>) {
    const texts = Object.fromEntries(
      SIDES.map((side) => {
        const models = [...this.before.keys(), ...this.own.keys()];
        const ofRows = models.flatMap((model) => this.rowsOf(side, model).flatMap(textsIn));
        const all = [...ofRows, ...this.entries.textsOf(side, ownership), ...extra[side]];
        return [side, new Set(all.filter(isSecret))];
      }),
    ) as Record<SideName, Set<string>>;
    const onlyAt = (side: SideName) =>
      [...texts[side]].filter((text) =>
        SIDES.every((other) => other === side || !texts[other].has(text)),
      );
    return { a: onlyAt("a"), b: onlyAt("b"), platform: onlyAt("platform") };
  }

  /** The rows of a side in a table of better-auth, or of the application's own. */
  rowsOf(side: SideName, model: string): Row[] {
    const isMade = (row: Row) => this.made.get(keyOf(model, idOf(row)));
    const own = this.own.get(model);
    if (own) return rowsIn(own).filter((row) => isMade(row) === side);
    const ownerOf = this.ownership?.ownerOf ?? ((_: string, row: Row) => isMade(row));
    return rowsIn(this.before.get(model)).filter((row) => ownerOf(model, row) === side);
  }

  /** The table that a text is from: "note". */
  sourceOf(side: SideName, text: string): string | undefined {
    const models = [...this.own.keys(), ...this.before.keys()];
    return models.find((model) =>
      this.rowsOf(side, model).some((row) => textsIn(row).includes(text)),
    );
  }

  /** Whether a row is of this run: only such rows are compared, put back or deleted. */
  private readonly isOurs = (model: string, id: string, row: Row): boolean => {
    if (this.watching.isAlone) return true;
    if (this.initial.get(model)?.has(id)) return false;
    if (this.created.has(keyOf(model, id))) return true;
    // New rows of the platform may be of people who signed up meanwhile.
    const owner = this.ownership?.ownerOf(model, row) ?? this.made.get(keyOf(model, id));
    return owner === "a" || owner === "b";
  };

  /**
   * What of the sides has changed since it was last asked; undoes whatever was done. `known` is what
   * the request said: who brings a text along may have it stored.
   */
  async changesOf(sides: SideName[], everywhere = false, known?: string): Promise<string[]> {
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
      if (known === undefined) continue;
      for (const [id, { row, text }] of table) {
        if (this.before.get(model)?.get(id)?.text === text) continue;
        found.push(...this.foreignTexts(model, row, ownership.ownerOf(model, row), known));
      }
    }
    if (now.size) await this.tables.restore(this.before, now, this.isOurs);
    this.written.clear();
    found.push(...(await this.entries.changesOf(sides, ownership)));
    return found;
  }

  /** What one side now stores that belongs to another: a job that ran in the wrong tenant. */
  private foreignTexts(model: string, row: Row, owner: SideName | undefined, known: string) {
    // What is to be verified may be written together with what for.
    if (!owner || model === "verification") return [];
    const texts = textsIn(row).filter((text) => isSecret(text) && !known.includes(text));
    return SIDES.filter((side) => side !== owner).flatMap((side) => {
      const foreign = texts.filter((text) => this.secrets[side].includes(text));
      return foreign.length
        ? [`${model} of ${owner}: it now holds what belongs to ${side}: ${foreign[0]}`]
        : [];
    });
  }

  private difference(
    model: string,
    now: Table,
    side: SideName,
    { ownerOf }: Ownership,
  ): string | undefined {
    const isOf = ([id, { row }]: [string, { row: Row }]) =>
      ownerOf(model, row) === side && this.isOurs(model, id, row);
    const was = [...(this.before.get(model) ?? [])].filter(isOf);
    const come = [...now].filter((entry) => !this.before.get(model)?.has(entry[0]) && isOf(entry));
    const gone = was.filter(([id]) => !now.has(id));
    const changed = was.filter(([id, { text }]) => (now.get(id)?.text ?? text) !== text);
    const columns = changed.flatMap(([id, { row }]) =>
      Object.keys(row).filter(
        (name) => JSON.stringify(row[name]) !== JSON.stringify(now.get(id)?.row[name]),
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

  /**
   * What a request on one side has changed in the application's own tables, of others. These rows
   * are not put back. A row that nobody owned belongs to the first side that writes it.
   */
  async changesOfOwn(side: SideName, known = "", countsNew = false): Promise<string[]> {
    const before = this.own;
    this.own = await this.readOwn();
    this.isOwnChanged = false;
    const found: string[] = [];
    for (const [table, now] of this.own) {
      if (this.watching.sharedTables.includes(table)) continue;
      const was = before.get(table) ?? new Map<string, { row: Row; text: string }>();
      const owners = new Map<string, string[]>();
      const note = (id: string, row: Row, what: string) => {
        this.isOwnChanged = true;
        const key = keyOf(table, id);
        const owner = this.made.get(key) ?? this.ownership?.namedIn(row) ?? side;
        this.made.set(key, owner);
        const counts = owner !== side && (what !== "new" || countsNew);
        if (counts) owners.set(owner, [...(owners.get(owner) ?? []), what]);
        // While test data is created, what a side has overwritten is its own from then on.
        if (!this.ownership) this.made.set(key, side);
        return owner;
      };
      for (const [id, { row, text }] of was) {
        const is = now.get(id);
        if (is?.text !== text) note(id, row, is ? "changed" : "gone");
      }
      for (const [id, { row, text }] of now) {
        if (was.get(id)?.text === text) continue;
        const owner = was.has(id) ? this.made.get(keyOf(table, id)) : note(id, row, "new");
        found.push(...this.foreignTexts(table, row, owner, known));
      }
      for (const [owner, what] of owners) {
        found.push(`${table} of ${owner}: ${what.length} ${[...new Set(what)].join(" or ")}`);
      }
    }
    return found;
  }

  /** Takes every session out of where they are kept: with secondary storage there may be no table. */
  async forgetSessions(tokens: string[]): Promise<void> {
    const now = await this.tables.readAll(
      this.tables.models.filter((model) => model === "session"),
    );
    await this.tables.restore(new Map(), now, this.isOurs);
    for (const token of tokens) {
      const tenantId = tenantInPrefix(token);
      await this.entries.forget(tenantId === null ? token : `tenant:${tenantId}:${token}`);
    }
  }

  /** Deletes all that the run has made, and stops watching. */
  async end(keep: boolean): Promise<void> {
    this.stopNoting();
    try {
      if (keep) return;
      await this.entries.empty();
      await this.tables.restore(this.initial, await this.tables.readAll(), this.isOurs);
    } finally {
      this.entries.restore();
    }
  }

  /**
   * Deletes rows of the application's own tables that the run has caused, and returns what it could
   * not delete. Rows may refer to each other.
   */
  async removeOwn(): Promise<string[]> {
    let caused: [string, Row][] = [];
    for (const [table, rows] of await this.readOwn()) {
      for (const [id, { row }] of rows) {
        const isNew = !this.ownInitial.get(table)?.has(id);
        const isOurs = this.watching.isAlone || this.made.has(keyOf(table, id));
        if (isNew && isOurs) caused.push([table, row]);
      }
    }
    for (let isDone = false; !isDone; ) {
      const stay: [string, Row][] = [];
      for (const [table, row] of caused) {
        const remove = this.watching.own.remove(table, row).catch(() => false);
        if (!(await remove)) stay.push([table, row]);
      }
      isDone = stay.length === caused.length || stay.length === 0;
      caused = stay;
    }
    const tables = new Set(caused.map(([table]) => table));
    return [...tables].map((name) => {
      const rows = caused.filter(([table]) => table === name).length;
      return `${rows} rows of "${name}"`;
    });
  }
}

type Stored = { row: Row; text: string };
interface Difference {
  table: string;
  id: string;
  was: Stored | undefined;
  now: Stored | undefined;
}

function differences(before: Tables, after: Tables): Difference[] {
  return [...after].flatMap(([table, rows]) => {
    const known: Table = before.get(table) ?? new Map();
    return [...new Set([...known.keys(), ...rows.keys()])]
      .map((id) => ({ table, id, was: known.get(id), now: rows.get(id) }))
      .filter(({ was, now }) => was?.text !== now?.text);
  });
}

const rowsIn = (table: Table | undefined) => [...(table?.values() ?? [])].map(({ row }) => row);
