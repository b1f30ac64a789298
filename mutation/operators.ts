import ts from "typescript";

/** One small change to the source: the text that stands in for a node while the mutant is on. */
export interface Change {
  node: ts.Node;
  /** What stands instead of an expression; undefined for a statement that is left out. */
  instead?: string;
  /** With which values of the expression, or of its clause, the change can matter at all. */
  when?: When;
  /** Of `a && b`: the clause that is left out. */
  without?: "left" | "right";
  /** At the start of a function's body: it returns at once. */
  returns?: true;
}

const { SyntaxKind: Kind } = ts;

export type When = "falsy" | "truthy" | "undefined" | "defined" | "present";

/** What is one off, or the opposite. The opposite of an equality. */
const COMPARISONS = new Map<ts.SyntaxKind, string>([
  [Kind.EqualsEqualsEqualsToken, "!=="],
  [Kind.ExclamationEqualsEqualsToken, "==="],
  [Kind.LessThanToken, "<="],
  [Kind.LessThanEqualsToken, "<"],
  [Kind.GreaterThanToken, ">="],
  [Kind.GreaterThanEqualsToken, ">"],
  [Kind.PlusToken, "-"],
  [Kind.MinusToken, "+"],
]);

/** With which value of the left clause the right one is not looked at. */
const LOGICAL = new Map<ts.SyntaxKind, When>([
  [Kind.AmpersandAmpersandToken, "falsy"],
  [Kind.BarBarToken, "truthy"],
  [Kind.QuestionQuestionToken, "present"],
]);

const METHODS = new Map([
  ["filter", undefined],
  ["some", "every"],
  ["every", "some"],
]);

/** Decides something alone: both outcomes are tried, so nothing else need be done to the whole. */
function isCondition(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isParenthesizedExpression(parent)) return isCondition(parent);
  if (ts.isIfStatement(parent)) return parent.expression === node;
  if (ts.isWhileStatement(parent) || ts.isDoStatement(parent)) return parent.expression === node;
  return ts.isConditionalExpression(parent) && parent.condition === node;
}

/** Texts for people hold a space: their wording is not behaviour. */
const isForPeople = (text: string) => text.includes(" ");

type Found = Omit<Change, "node">;

function ofBinary(node: ts.BinaryExpression): Found[] {
  const kind = node.operatorToken.kind;
  const [left, right] = [node.left.getText(), node.right.getText()];
  const when = LOGICAL.get(kind);
  // One clause alone. "||" for "&&" is seen by whatever sees one of these.
  if (when) {
    return [
      { instead: right, without: "left", when },
      { instead: left, without: "right" },
    ];
  }
  const other = COMPARISONS.get(kind);
  if (!other) return [];
  const sum = kind === Kind.PlusToken || kind === Kind.MinusToken;
  if (sum && [node.left, node.right].some((side) => ts.isStringLiteralLike(side))) return [];
  const equality = other.endsWith("==");
  return equality && isCondition(node) ? [] : [{ instead: `${left} ${other} ${right}` }];
}

function ofCall(node: ts.CallExpression): string[] {
  const called = node.expression;
  if (!ts.isPropertyAccessExpression(called) || called.questionDotToken) return [];
  const name = called.name.text;
  if (!METHODS.has(name)) return [];
  const list = called.expression.getText();
  const other = METHODS.get(name);
  const given = node.arguments.map((argument) => argument.getText()).join(", ");
  return [other ? `${list}.${other}(${given})` : list];
}

function ofLiteral(node: ts.Expression): string[] {
  if (node.kind === Kind.TrueKeyword) return ["false"];
  if (node.kind === Kind.FalseKeyword) return ["true"];
  if (ts.isStringLiteralLike(node) && !isForPeople(node.text)) {
    return [node.text === "" ? '"mutant"' : '""'];
  }
  if (ts.isTemplateExpression(node) && !isForPeople(node.getText().replace(/\$\{.*?\}/g, ""))) {
    return ['""'];
  }
  if (ts.isArrayLiteralExpression(node) && node.elements.length > 0) return ["[]"];
  return [];
}

const isLink = (node: ts.Node) => (node.flags & ts.NodeFlags.OptionalChain) !== 0;

/** `a?.b` in `a?.b.c`: a chain is only whole at its end. */
function isInsideChain(node: ts.Node): boolean {
  const { parent } = node;
  return isLink(node) && isLink(parent) && "expression" in parent && parent.expression === node;
}

/** `a?.b?.()` without one question mark. */
function ofChain(node: ts.Expression): string[] {
  if (!isLink(node) || isInsideChain(node)) return [];
  const start = node.getStart();
  const text = node.getText();
  const found: string[] = [];
  for (let link: ts.Node = node; isLink(link); link = (link as ts.CallChain).expression) {
    const dot = (link as ts.CallChain).questionDotToken;
    if (!dot) continue;
    const [before, after] = [text.slice(0, dot.getStart() - start), text.slice(dot.end - start)];
    found.push(before + (/^[([]/.test(after) ? "" : ".") + after);
  }
  return found;
}

function ofExpression(node: ts.Expression): Found[] {
  const found: Found[] = [];
  const negation = ts.isPrefixUnaryExpression(node) && node.operator === Kind.ExclamationToken;
  if (negation && !isCondition(node)) found.push({ instead: node.operand.getText() });
  if (ts.isBinaryExpression(node)) found.push(...ofBinary(node));
  const others = [...(ts.isCallExpression(node) ? ofCall(node) : []), ...ofLiteral(node)];
  found.push(...others.map((instead) => ({ instead })));
  found.push(...ofChain(node).map((instead) => ({ instead, when: "undefined" as const })));
  if (isCondition(node) && !ts.isParenthesizedExpression(node)) {
    found.push({ instead: "true", when: "falsy" }, { instead: "false", when: "truthy" });
  }
  const { parent } = node;
  if (ts.isArrowFunction(parent) && parent.body === node) {
    found.push({ instead: "undefined", when: "defined" });
  }
  return found;
}

/** Everything that is tried on this node itself. */
export function changesOf(node: ts.Node): Change[] {
  if (ts.isExpressionStatement(node) || ts.isThrowStatement(node)) return [{ node }];
  if (ts.isBlock(node) && ts.isFunctionLike(node.parent) && node.statements.length > 0) {
    return [{ node, returns: true }];
  }
  if (!ts.isExpression(node) || isInsideChain(node)) return [];
  return ofExpression(node).map((found) => ({ node, ...found }));
}
