import type { CompiledQuery } from 'kysely';

/** Stands in a query for a value that is known only when the query runs. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  /** Nothing can be computed from it. */
  [Symbol.toPrimitive](): never {
    throw new Error(`the value of ${this.name} is not known while its query is compiled`);
  }
}

/** The name of the placeholder for the tenant. */
const NODE = 'node_id';

/** A read of tenants, compiled once. */
export interface PreparedQuery<Row, Name extends string> {
  /** Runs it for a tenant, with a value for each name. */
  run(nodeId: string, values: Readonly<Record<Name, unknown>>): Promise<Row[]>;
}

/** A read of tenants, compiled once for each form of its argument. */
export interface FormedQuery<Row, Given> {
  run(nodeId: string, given: Given): Promise<Row[]>;
}

/** Returns the placeholder for the tenant while a query is compiled. */
export function nodePlaceholder(): string {
  return placeholder(NODE);
}

/** Returns the placeholder for a named value while a query is compiled: the compiler passes it on as it is. */
export function placeholder<Value>(name: string): Value {
  const stand: unknown = new Placeholder(name);
  return stand as Value;
}

/** Returns the compiled query with values in place of its placeholders. */
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

/** What a read is given, taken apart: its form, and the values by the names of their places. */
interface Taken<Given> {
  /** The same for all that differ in values alone. */
  form: string;
  values: Readonly<Record<string, unknown>>;
  /** What is given, with what stands for values in their places. */
  template: () => Given;
}

/**
 * Takes apart what a read is given. Booleans, null, undefined and which members there are make its form; every other
 * member is a value, a list as a whole.
 */
export function takeApart<Given extends object>(given: Given): Taken<Given> {
  const values: Record<string, unknown> = {};
  let form = '';
  const visit = (members: object, path: string): void => {
    for (const [name, member] of Object.entries(members)) {
      if (member === undefined) continue;
      const place = `${path}${name}`;
      if (isNested(member)) {
        visit(member, `${place}.`);
      } else if (isForm(member)) {
        form += `${place}=${member} `;
      } else {
        form += `${place} `;
        values[place] = member;
      }
    }
  };
  visit(given, '');
  return { form, values, template: () => templateOf(given, '') };
}

function templateOf<Given extends object>(given: Given, path: string): Given {
  const members = Object.entries(given).map(([name, member]): [string, unknown] => {
    const place = `${path}${name}`;
    if (isNested(member)) return [name, templateOf(member, `${place}.`)];
    return [name, member === undefined || isForm(member) ? member : placeholder(place)];
  });
  return Object.fromEntries(members) as Given;
}

function isForm(member: unknown): member is boolean | null {
  return typeof member === 'boolean' || member === null;
}

function isNested(member: unknown): member is object {
  return typeof member === 'object' && member !== null && Object.getPrototypeOf(member) === Object.prototype;
}
