import type { Endpoint } from './gateway-config.ts';

export interface EndpointMatch {
  endpoint: Endpoint;
  /** The decoded values of the path's `{name}` segments. */
  params: Record<string, string>;
}

interface TableNode {
  literal: Map<string, TableNode>;
  parameter: TableNode | undefined;
  here: Map<string, Leaf>;
  /** Endpoints that end in `*`: exactly one more segment. */
  one: Map<string, Leaf>;
  /** Endpoints that end in `**`: any rest. */
  rest: Map<string, Leaf>;
}

interface Leaf {
  endpoint: Endpoint;
  names: string[];
}

/** The endpoints, compiled into a tree of segments: a match costs the length of the path, not of the table. */
export class EndpointTable {
  readonly #root: TableNode = emptyNode();

  constructor(endpoints: readonly Endpoint[]) {
    for (const endpoint of endpoints) for (const method of endpoint.methods) this.#add(method, endpoint);
  }

  /** The endpoint of a method and a normalised path; a literal segment goes before a parameter, and that before a rest. */
  match(method: string, path: string): EndpointMatch | undefined {
    const values: string[] = [];
    const leaf = find(this.#root, method, path, path.indexOf('/') + 1, values);
    if (!leaf) return undefined;
    const params: Record<string, string> = {};
    leaf.names.forEach((name, index) => {
      params[name] = values[index] ?? '';
    });
    return { endpoint: leaf.endpoint, params };
  }

  #add(method: string, endpoint: Endpoint): void {
    const names: string[] = [];
    const leaf: Leaf = { endpoint, names };
    if (endpoint.path === '**') {
      this.#root.rest.set(method, leaf);
      return;
    }
    let node = this.#root;
    for (const segment of endpoint.path.split('/').slice(1)) {
      if (segment === '*') return void node.one.set(method, leaf);
      if (segment === '**') return void node.rest.set(method, leaf);
      node = child(node, segment, names);
    }
    node.here.set(method, leaf);
  }
}

function emptyNode(): TableNode {
  return { literal: new Map(), parameter: undefined, here: new Map(), one: new Map(), rest: new Map() };
}

function child(node: TableNode, segment: string, names: string[]): TableNode {
  if (segment.startsWith('{')) {
    names.push(segment.slice(1, -1));
    node.parameter ??= emptyNode();
    return node.parameter;
  }
  const existing = node.literal.get(segment);
  if (existing) return existing;
  const created = emptyNode();
  node.literal.set(segment, created);
  return created;
}

/** `at` is where the next segment of the path begins; 0 where there is none. */
function find(node: TableNode, method: string, path: string, at: number, values: string[]): Leaf | undefined {
  if (at === 0) return node.here.get(method);
  const slash = path.indexOf('/', at);
  const segment = slash < 0 ? path.slice(at) : path.slice(at, slash);
  const literal = node.literal.get(segment);
  const byLiteral = literal && find(literal, method, path, slash + 1, values);
  if (byLiteral) return byLiteral;
  if (node.parameter && segment !== '') {
    values.push(segment);
    const byParameter = find(node.parameter, method, path, slash + 1, values);
    if (byParameter) return byParameter;
    values.pop();
  }
  if (slash < 0) {
    const one = node.one.get(method);
    if (one) return one;
  }
  return node.rest.get(method);
}
