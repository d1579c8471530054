import { type Document, isAlias, isCollection, isNode, isPair, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigError } from '../../platform/config/config.ts';

/** The most nodes that all aliases together may stand for; a few lines could stand for more than memory holds. */
const MAX_ALIASED_NODES = 100_000;

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
  const { faults } = orFault(path, () => new Aliases(document.contents));
  if (faults.length > 0) throw new ConfigError(faultLines(path, lineOf, faults));
  return { value: orFault(path, () => document.toJS({ maxAliasCount: -1 })), lineOf };
}

/** Returns issues as text for the operator, with file, line and member. */
export function faultLines(path: string, lineOf: YamlText['lineOf'], faults: readonly Fault[]): string[] {
  return faults.map(({ at, message }) => `${path}:${lineOf(at)}: ${at.join('.') || 'the file'}: ${message}`);
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

/** Checks the aliases of a document; `faults` lists their issues. */
class Aliases {
  readonly faults: Fault[] = [];
  /** The number of nodes that each anchor stands for; undefined while its node is being visited. */
  readonly #sizes = new Map<string, number | undefined>();
  #aliased = 0;

  constructor(contents: unknown) {
    this.#sizeOf(contents, []);
  }

  /**
   * Returns the number of nodes below a node. Visits them in the order of the text, because an alias stands for the
   * last anchor of its name before it.
   */
  #sizeOf(node: unknown, at: readonly PropertyKey[]): number {
    if (isAlias(node)) return this.#sizeOfAlias(node.source, at);
    const anchor = isNode(node) && 'anchor' in node ? node.anchor : undefined;
    if (anchor !== undefined) this.#sizes.set(anchor, undefined);
    let size = 1;
    if (isCollection(node))
      node.items.forEach((item, index) => {
        if (isPair(item)) size += this.#sizeOf(item.key, at) + this.#sizeOf(item.value, [...at, nameOf(item.key)]);
        else size += this.#sizeOf(item, [...at, index]);
      });
    if (anchor !== undefined) this.#sizes.set(anchor, size);
    return size;
  }

  #sizeOfAlias(name: string, at: readonly PropertyKey[]): number {
    const size = this.#sizes.get(name);
    if (size === undefined) {
      const isOpen = this.#sizes.has(name);
      this.faults.push({
        at,
        message: isOpen ? `*${name} stands within &${name}` : `*${name} has no &${name} before it`,
      });
      return 0;
    }
    if (this.#aliased + size > MAX_ALIASED_NODES) {
      this.faults.push({ at, message: `with *${name}, aliases stand for more than ${MAX_ALIASED_NODES} values` });
      return 0;
    }
    this.#aliased += size;
    return size;
  }
}

function nameOf(key: unknown): string {
  return isScalar(key) ? String(key.value) : String(key);
}

function lineIn(document: Document, lines: LineCounter, at: readonly PropertyKey[]): number {
  for (let length = at.length; length > 0; length--) {
    const node = document.getIn(at.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
