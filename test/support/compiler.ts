import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { root } from "./markdown";

/** Where files live that only the compiler sees. */
export const SCRATCH = join(root, ".scratch");

/** TypeScript as an editor runs it, over files of this repository and files that are made up. */
export function createEditor(files: Map<string, string>, paths: Record<string, string[]>) {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), (path) =>
    readFileSync(path, "utf8"),
  );
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const read = (path: string) => files.get(path) ?? ts.sys.readFile(path);
  const host: ts.LanguageServiceHost = {
    getCompilationSettings: () => ({
      ...options,
      jsx: ts.JsxEmit.ReactJSX,
      paths: { ...options.paths, ...paths },
    }),
    getScriptFileNames: () => [...files.keys()],
    getScriptVersion: () => "1",
    getScriptSnapshot(path) {
      const text = read(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => files.has(path) || ts.sys.fileExists(path),
    readFile: read,
    directoryExists: (path) =>
      ts.sys.directoryExists(path) || [...files.keys()].some((file) => file.startsWith(`${path}/`)),
    getDirectories: ts.sys.getDirectories,
    realpath: (path) => (files.has(path) ? path : (ts.sys.realpath?.(path) ?? path)),
  };
  const service = ts.createLanguageService(host);
  const program = service.getProgram();
  if (!program) throw new Error("there is no program");
  const checker = program.getTypeChecker();

  return {
    /** What is wrong in a file, with the line that it is wrong in. */
    problemsIn(path: string) {
      const found = [
        ...service.getSyntacticDiagnostics(path),
        ...service.getSemanticDiagnostics(path),
      ];
      return found.map(({ messageText, file, start = 0 }) => ({
        line: file ? file.getLineAndCharacterOfPosition(start).line : 0,
        message: ts.flattenDiagnosticMessageText(messageText, "\n"),
      }));
    },

    /** What a module exports: names, and what is written about them and about their properties. */
    exportsOf(path: string) {
      const module = checker.getSymbolAtLocation(sourceFile(path));
      if (!module) throw new Error(`${path} is no module`);
      return checker.getExportsOfModule(module).map((symbol) => {
        const target =
          symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
        const type = checker.getDeclaredTypeOfSymbol(target);
        const properties = type.getProperties().map((property) => ({
          name: property.name,
          documentation: documentationOf(property),
        }));
        return { name: symbol.name, documentation: documentationOf(target), properties };
      });
    },

    /** What an editor offers behind the end of a file. */
    completionsAtEndOf(path: string): string[] {
      const completions = service.getCompletionsAtPosition(path, endOf(path), {});
      return (completions?.entries ?? []).map(({ name }) => name);
    },

    quickInfo,

    /** What it says about one of them. */
    describeCompletion(path: string, name: string): string {
      const [none, position] = [undefined, endOf(path)];
      const details = service.getCompletionEntryDetails(path, position, name, {}, none, {}, none);
      return ts.displayPartsToString(details?.documentation);
    },
  };

  /** What an editor says when somebody points at a word, at its first place behind `before`. */
  function quickInfo(path: string, before: string, word: string): string {
    const text = read(path) ?? "";
    const position = text.indexOf(word, text.indexOf(before));
    if (!text.includes(before) || position < 0) throw new Error(`${path} has no ${before}${word}`);
    const info = service.getQuickInfoAtPosition(path, position + 1);
    return ts.displayPartsToString(info?.documentation);
  }

  function endOf(path: string) {
    return read(path)?.length ?? 0;
  }

  function sourceFile(path: string) {
    const file = program?.getSourceFile(path);
    if (!file) throw new Error(`${path} is not in the program`);
    return file;
  }

  function documentationOf(symbol: ts.Symbol) {
    return ts.displayPartsToString(symbol.getDocumentationComment(checker));
  }
}
