import type { CompiledQuery } from 'kysely';

/** Stands in a query for a value that is known only when the query runs. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** The name under which the node itself stands. */
const NODE = 'node_id';

/** A read of the tenant's door, compiled once. */
export interface PreparedQuery<Row, Name extends string> {
  /** Runs it for a node, with a value for each name. */
  run(nodeId: string, values: Readonly<Record<Name, unknown>>): Promise<Row[]>;
}

/** What stands for the node while the query is compiled. */
export function nodePlaceholder(): string {
  return placeholder(NODE);
}

/** What stands for a named value while the query is compiled: the compiler passes it on as it is. */
export function placeholder<Value>(name: string): Value {
  const stand: unknown = new Placeholder(name);
  return stand as Value;
}

/** The compiled query with values in the places of its placeholders. */
export function filled<Row>(
  query: CompiledQuery<Row>,
  nodeId: string,
  values: Readonly<Record<string, unknown>>,
): CompiledQuery<Row> {
  const parameters = query.parameters.map((parameter) => {
    if (!(parameter instanceof Placeholder)) return parameter;
    if (parameter.name === NODE) return nodeId;
    if (!Object.hasOwn(values, parameter.name)) throw new Error(`the query needs a value for ${parameter.name}`);
    return values[parameter.name];
  });
  return { ...query, parameters };
}
