import { type Document, isCollection, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigError } from '../../platform/config/config.ts';

/** The most aliases that may resolve to one anchor, those inside what it stands for included. */
const MAX_ALIASES = 100_000;

/** A parsed YAML text: its value, and the lines of its members. */
interface YamlText {
  value: unknown;
  /** Returns the line of a member, counted from 1; for an absent member, the line of the closest parent. */
  lineOf(at: readonly PropertyKey[]): number;
}

/** An issue of the YAML text: the path of the member, and a message. */
export interface Fault {
  at: readonly PropertyKey[];
  message: string;
  /** The member whose line is reported, if it is not the one at `at`. */
  line?: readonly PropertyKey[];
}

/**
 * Parses a YAML text; `path` is the file name in error messages.
 * @throws ConfigError with the line of every issue.
 */
export function parseYaml(path: string, source: string): YamlText {
  const lines = new LineCounter();
  const document = orFault(path, () => parseDocument(source, { lineCounter: lines, prettyErrors: false }));
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map((error) => `${path}:${lines.linePos(error.pos[0]).line}: not valid YAML: ${error.message}`),
    );
  }
  const lineOf = (at: readonly PropertyKey[]) => lineIn(document, lines, at);
  return { value: orFault(path, () => document.toJS({ maxAliasCount: MAX_ALIASES })), lineOf };
}

/**
 * Runs `read`, and turns any error into an issue of the file. The YAML library throws errors without a position, for
 * example when nesting is too deep for the stack.
 * @throws ConfigError with that issue.
 */
function orFault<Result>(path: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw new ConfigError([`${path}:1: not valid YAML: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

function lineIn({ contents }: Document, lines: LineCounter, at: readonly PropertyKey[]): number {
  let line = 1;
  let node: unknown = contents;
  for (const name of at) {
    const inner = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === name) : undefined;
    node = inner?.value ?? (isCollection(node) ? node.get(name, true) : undefined);
    const locatedNode = inner?.key ?? node;
    if (!isNode(locatedNode) || !locatedNode.range) break;
    line = lines.linePos(locatedNode.range[0]).line;
  }
  return line;
}
