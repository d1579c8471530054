import type { Compilable, CompiledQuery } from 'kysely';

/** Stands in a query for a value that is known only when the query runs. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  /** Throws, since nothing can be computed from a value that is not known yet. */
  [Symbol.toPrimitive](): never {
    throw new Error(`the value of ${this.name} is not known while its query is compiled`);
  }
}

/** The name of the placeholder for the tenant's id. */
const NODE = 'node_id';

/** A query for rows of one tenant, compiled once for each form of its argument. `splitByShape` says what a form is. */
export interface FormedQuery<Row, Given> {
  run(nodeId: string, argument: Given): Promise<Row[]>;
}

/** Compiles the queries that run for every request, once for each form of their argument. */
export class PreparedQueries<Builder> {
  readonly #deps;
  #count = 0;

  constructor(deps: {
    /** Returns the query builder whose queries are scoped to a tenant. */
    scoped(nodeId: string): Builder;
    /** Runs a compiled query of a tenant; with a name, a connection may prepare it under that name and keep it. */
    run<Row>(query: CompiledQuery<Row>, nodeId: string, name?: string): Promise<Row[]>;
  }) {
    this.#deps = deps;
  }

  /**
   * Returns a query. `build` may depend on booleans, on nulls and on which members are set. All other values are
   * placeholders for it. The forms for which `isSkewed` is true have no name of their own: PostgreSQL plans such a
   * query for its values, each time.
   */
  byShape<Row, Given extends object>(
    build: (k: Builder, argument: Given) => Compilable<Row>,
    isSkewed: (argument: Given) => boolean = () => false,
  ): FormedQuery<Row, Given> {
    const { scoped, run } = this.#deps;
    const preparedByForm = new Map<string, { name: string; query: CompiledQuery<Row> }>();
    return {
      run: (nodeId, argument) => {
        const { form, values, template } = splitByShape(argument);
        const { name, query } = preparedByForm.getOrInsertComputed(form, () => {
          this.#count += 1;
          const compiled = build(scoped(placeholder(NODE)), template()).compile();
          return { name: isSkewed(argument) ? '' : `portcullis_${this.#count}`, query: compiled };
        });
        return run(bindValues(query, nodeId, values), nodeId, name);
      },
    };
  }
}

/**
 * Returns the placeholder that stands for a named value while a query is compiled. It is typed as the value itself: the
 * compiler passes it on unchanged.
 */
function placeholder<Value>(name: string): Value {
  const stand: unknown = new Placeholder(name);
  return stand as Value;
}

/** Returns a compiled query with values in place of its placeholders. @throws Error if one has no value. */
function bindValues<Row>(
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

/**
 * Splits the argument of a query into its form and its values. The form is which members are set, and all booleans and
 * nulls; every other member is a value, and so is an array as a whole. A value's key is its path, such as `filter.name`.
 */
export function splitByShape<Given extends object>(
  argument: Given,
): {
  /** A text that is the same for all arguments that differ only in their values. */
  form: string;
  values: Readonly<Record<string, unknown>>;
  /** Makes a copy of the argument with a placeholder in place of each value. */
  template: () => Given;
} {
  const values: Record<string, unknown> = {};
  let form = '';
  const visit = (members: object, path: string): void => {
    for (const [name, member] of Object.entries(members)) {
      if (member === undefined) continue;
      const memberPath = `${path}${name}`;
      if (isNested(member)) {
        visit(member, `${memberPath}.`);
      } else if (isForm(member)) {
        form += `${memberPath}=${member} `;
      } else {
        form += `${memberPath} `;
        values[memberPath] = member;
      }
    }
  };
  visit(argument, '');
  return { form, values, template: () => templateOf(argument, '') };
}

function templateOf<Given extends object>(argument: Given, path: string): Given {
  const members = Object.entries(argument).map(([name, member]): [string, unknown] => {
    const memberPath = `${path}${name}`;
    if (isNested(member)) return [name, templateOf(member, `${memberPath}.`)];
    return [name, member === undefined || isForm(member) ? member : placeholder(memberPath)];
  });
  return Object.fromEntries(members) as Given;
}

function isForm(member: unknown): member is boolean | null {
  return typeof member === 'boolean' || member === null;
}

function isNested(member: unknown): member is object {
  return typeof member === 'object' && member !== null && Object.getPrototypeOf(member) === Object.prototype;
}
