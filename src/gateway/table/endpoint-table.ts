import type { FlagsByPath } from './endpoint-flags.ts';
import type { Endpoint } from './gateway-config.ts';

interface TableNode {
  literal: Map<string, TableNode>;
  parameter: TableNode | undefined;
  here: Map<string, Endpoint>;
  /** Endpoints that end in `*`: exactly one more segment. */
  one: Map<string, Endpoint>;
  /** Endpoints that end in `**`: any rest. */
  rest: Map<string, Endpoint>;
}

/**
 * Matches requests to endpoints in a tree of path segments: a match costs the length of the path, not of the table.
 * Flags are those of the routes behind the endpoints.
 */
export class EndpointTable {
  readonly #root: TableNode = emptyNode();

  constructor(endpoints: readonly Endpoint[], flagsByPath: FlagsByPath = {}) {
    const byShape = new Map(Object.entries(flagsByPath).map(([path, flags]) => [shapeOf(path), flags]));
    for (const written of endpoints) {
      const flags = byShape.get(shapeOf(written.path));
      const endpoint = flags ? { ...written, flags } : written;
      for (const method of endpoint.methods) this.#add(method, endpoint);
    }
  }

  /**
   * Returns the endpoint of a method and a normalised path. A literal segment goes before a parameter, and that before
   * a rest.
   */
  match(method: string, path: string): Endpoint | undefined {
    return find(this.#root, method, path, path.indexOf('/') + 1);
  }

  #add(method: string, endpoint: Endpoint): void {
    if (endpoint.path === '**') {
      this.#root.rest.set(method, endpoint);
      return;
    }
    let node = this.#root;
    for (const segment of endpoint.path.split('/').slice(1)) {
      if (segment === '*') return void node.one.set(method, endpoint);
      if (segment === '**') return void node.rest.set(method, endpoint);
      node = child(node, segment);
    }
    node.here.set(method, endpoint);
  }
}

/** Returns a path whose parameters have no names. */
function shapeOf(path: string): string {
  return path.replace(/\{[^}]*\}/g, '{}');
}

function emptyNode(): TableNode {
  return { literal: new Map(), parameter: undefined, here: new Map(), one: new Map(), rest: new Map() };
}

function child(node: TableNode, segment: string): TableNode {
  if (segment.startsWith('{')) {
    node.parameter ??= emptyNode();
    return node.parameter;
  }
  const existing = node.literal.get(segment);
  if (existing) return existing;
  const created = emptyNode();
  node.literal.set(segment, created);
  return created;
}

/** Matches the rest of a path. `at` is where its next segment begins; 0 at the end. */
function find(node: TableNode, method: string, path: string, at: number): Endpoint | undefined {
  if (at === 0) return node.here.get(method);
  const slash = path.indexOf('/', at);
  const segment = slash < 0 ? path.slice(at) : path.slice(at, slash);
  const literal = node.literal.get(segment);
  const byLiteral = literal && find(literal, method, path, slash + 1);
  if (byLiteral) return byLiteral;
  if (node.parameter && segment !== '') {
    const byParameter = find(node.parameter, method, path, slash + 1);
    if (byParameter) return byParameter;
  }
  if (slash < 0) {
    const one = node.one.get(method);
    if (one) return one;
  }
  return node.rest.get(method);
}
