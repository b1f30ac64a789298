import ts from "typescript";
import { type Change, changesOf } from "./operators";

export interface Mutant {
  id: number;
  file: string;
  line: number;
  /** Runs once, when the file is loaded, and so for every test. */
  atLoad: boolean;
  /** What was there, and what stands instead, for a reader. */
  was: string;
  now: string;
}

/** Global functions of the runner: says whether a mutant is on, and notes that a test is here. */
export const SWITCH = "__mutant";
/** Says whether it is on, and notes nothing. */
export const QUIET = "__quiet";
/** Answers with a value, and notes that a test is here if the mutant matters with that value. */
export const SEEN = "__seen";
/** Ends a loop that does not. */
export const TURN = "__turn";

const oneLine = (text: string) => {
  const short = text.replace(/\s+/g, " ").trim();
  return short.length > 100 ? `${short.slice(0, 97)}...` : short;
};

/** A function without its body. */
const head = (node: ts.Node) => {
  const body = "body" in node ? (node.body as ts.Node) : node;
  return node.getText().slice(0, body.getStart() - node.getStart());
};

const isPlain = (node: ts.Node) =>
  ts.isTypeNode(node) ||
  ts.isImportDeclaration(node) ||
  ts.isExportDeclaration(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isTaggedTemplateExpression(node);

/** Names, and what is assigned to: an expression cannot stand there. */
function isTarget(node: ts.Node): boolean {
  const { parent } = node;
  if (!parent) return false;
  if ("name" in parent && parent.name === node) return true;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return true;
  if (ts.isBinaryExpression(parent) && parent.left === node) {
    const { kind } = parent.operatorToken;
    return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
  }
  return ts.isDeleteExpression(parent) || ts.isPostfixUnaryExpression(parent);
}

const isLoop = (node: ts.Node): node is ts.IterationStatement =>
  ts.isIterationStatement(node, false);

/**
 * All mutants of one file in one text, each behind a switch, so that the file is loaded once and
 * only one number changes from mutant to mutant.
 */
export function instrument(file: string, source: string, firstId: number) {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.ES2022, true);
  const mutants: Mutant[] = [];

  function add({ node, instead, returns }: Change): number {
    const id = firstId + mutants.length;
    const line = tree.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    const atLoad = !returns && !ts.findAncestor(node.parent, ts.isFunctionLike);
    const was = returns ? head(node.parent) : node.getText();
    const now = returns ? "returns at once" : (instead ?? "left out");
    mutants.push({ id, file, line, atLoad, was: oneLine(was), now: oneLine(now) });
    return id;
  }

  function wrap(text: string, change: Change): string {
    const id = add(change);
    const on = `${SWITCH}(${id})`;
    if (change.returns) return `{ if (${on}) return; ${text.slice(1)}`;
    if (change.instead === undefined) return `{ if (!${on}) { ${text} } }`;
    if (!change.when) return `(${on} ? (${change.instead}) : ${text})`;
    const seen = `${SEEN}(${id}, "${change.when}", ${text})`;
    return `(${QUIET}(${id}) ? (${change.instead}) : ${seen})`;
  }

  /** `a && b`: each clause says by itself whether it would have been missed. */
  function clauses(node: ts.BinaryExpression, left: Change, right: Change): string {
    const [a, b] = [add(left), add(right)];
    const first = `${SEEN}(${a}, "${left.when}", ${render(node.left)})`;
    const second = `(${SWITCH}(${b}) ? (${right.instead}) : ${render(node.right)})`;
    const operator = node.operatorToken.getText();
    return `(${QUIET}(${a}) ? (${left.instead}) : ${first} ${operator} ${second})`;
  }

  function inner(node: ts.Node): string {
    let text = "";
    let at = node.getStart();
    node.forEachChild((child) => {
      text += source.slice(at, child.getStart());
      const body = render(child);
      const looped = isLoop(node) && node.statement === child;
      text += looped ? `{ ${TURN}(); ${body} }` : body;
      at = child.end;
    });
    return text + source.slice(at, node.end);
  }

  function render(node: ts.Node): string {
    if (isPlain(node) || isTarget(node)) return node.getText();
    const changes = changesOf(node);
    const [left, right] = changes.filter(({ without }) => without);
    if (!left || !right || !ts.isBinaryExpression(node)) return changes.reduce(wrap, inner(node));
    const others = changes.filter(({ without }) => !without);
    return others.reduce(wrap, clauses(node, left, right));
  }

  const start = tree.getStart();
  return { code: source.slice(0, start) + render(tree), mutants };
}
