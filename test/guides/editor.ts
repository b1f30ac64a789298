import { join } from "node:path";
import ts from "typescript";
import { root } from "./pages";

/** Where files live that only the compiler sees. */
export const SCRATCH = join(root, ".scratch");

/** TypeScript as an editor runs it, over files of this repository and files that are made up. */
export function createEditor(files: Map<string, string>, paths: Record<string, string[]>) {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const read = (path: string) => files.get(path) ?? ts.sys.readFile(path);
  const service = ts.createLanguageService({
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
  });
  const program = service.getProgram();
  if (!program) throw new Error("there is no program");
  const checker = program.getTypeChecker();
  const endOf = (path: string) => read(path)?.length ?? 0;
  const describe = (symbol: ts.Symbol, target = symbol) => ({
    name: symbol.name,
    documentation: ts.displayPartsToString(target.getDocumentationComment(checker)),
  });

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
      const file = program.getSourceFile(path);
      const module = file && checker.getSymbolAtLocation(file);
      if (!module) throw new Error(`${path} is no module of the program`);
      return checker.getExportsOfModule(module).map((symbol) => {
        const isAlias = symbol.flags & ts.SymbolFlags.Alias;
        const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
        const properties = checker.getDeclaredTypeOfSymbol(target).getProperties();
        return {
          ...describe(symbol, target),
          properties: properties.map((property) => describe(property)),
        };
      });
    },

    /** What an editor offers behind the end of a file. */
    completionsAtEndOf(path: string): string[] {
      const completions = service.getCompletionsAtPosition(path, endOf(path), {});
      return (completions?.entries ?? []).map(({ name }) => name);
    },

    /** What it says about one of them. */
    describeCompletion(path: string, name: string): string {
      const [none, position] = [undefined, endOf(path)];
      const details = service.getCompletionEntryDetails(path, position, name, {}, none, {}, none);
      return ts.displayPartsToString(details?.documentation);
    },
  };
}
