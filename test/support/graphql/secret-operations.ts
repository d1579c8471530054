import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  buildSchema,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { graphqlSchema as surface } from '../../../src/app/graphql-schema.ts';
import { ROOT } from '../start/process.ts';

/** Secrets where the surface has none today: in numbers, enums, objects and lists, and in objects of their names. */
const MORE = `
  extend type Query {
    check(
      token: String, search: String, codes: [String!], pinToken: Int, rateToken: Float, kindSecret: CheckKind, anySecret: JSON,
      filter: JSON, settings: CheckSettings, secret: CheckSettings
    ): Check
  }
  extend type Mutation { check(input: CheckSettings!, refreshToken: [String!]): Check! }
  extend type Subscription { checked(token: String, name: String): Check! }
  enum CheckKind { CHECK_A CHECK_B }
  type Check {
    id: ID! name: String message: String clientSecret: String token: [String!] pinToken: Int secret: Check inner: Check
    both: [CheckUnion!] document: String
  }
  union CheckUnion = Check | CreatedClient
  input CheckSettings {
    label: String limit: Int kind: CheckKind search: JSON Authorization: String apiToken: String oldPassword: [String!]
    secret: CheckSettings inner: CheckSettings all: [CheckSettings!] document: JSON
  }
`;

/** The schema of the surface, and more. */
export const schema: GraphQLSchema = buildSchema(`${readFileSync(join(ROOT, 'schema/schema.graphql'), 'utf8')}${MORE}`);

// The text of a schema does not say which arguments are declared as secrets.
const ownPassword = (of: GraphQLSchema) => of.getMutationType()?.getFields().changeOwnPassword?.args ?? [];
const declared = ownPassword(surface());
for (const arg of ownPassword(schema)) {
  Object.assign(arg, { extensions: declared.find(({ name }) => name === arg.name)?.extensions });
}

/** A text of which any five letters in a row are a trace of a secret (`secret-traces.ts`). */
const MARKER = 'ZQXJKV';
/** A number that is a secret, as digits and in part. */
export const SECRET_NUMBER = 1_999_777_555;
/** Matches what is no secret, and must be shown. */
export const PUBLIC = /WVH\d+W/g;
/** Matches the names whose values are masked. */
export const SECRET_NAME = /(?:secret|password|token)$|^(?:authorization|search|attemptedUsername)$/i;
/** Whether the value of a field is masked: a secret, or what an audit record has of another request. */
export function isMaskedField(name: string): boolean {
  return SECRET_NAME.test(name) || ['query', 'requestBody', 'responseBody'].includes(name);
}
const SEPARATORS = ['', '', '"', '\\', '&', '=', ' ', '%', ';', '{"', '"}', '\n', 'é', '\u{1f511}', "'", '#', '"""'];
const ALIASES = ['id', 'name', 'data', 'errors', 'extensions', 'x'];
const NAMES = ['query', 'variables', 'data', 'message', 'operationName', 'toString'];
const MAX_DEPTH = 4;

export interface Operation {
  query: string;
  variables?: unknown;
  operationName?: string;
  extensions?: unknown;
}

/** How operations are sent, and the text of the body if it has one. */
export interface Sending {
  how: 'post' | 'batch' | 'get' | 'events' | 'form' | 'socket';
  operations: readonly Operation[];
  body: string;
}

type Draw = (bound: number) => number;

/** Operations of all kinds with secrets where secrets belong, as they are sent. */
export const sendings: fc.Arbitrary<Sending> = fc.infiniteStream(fc.nat(2 ** 30)).map((stream) => {
  const draw: Draw = (bound) => Number(stream.next().value) % bound;
  const how = pick(draw, ['post', 'post', 'post', 'batch', 'batch', 'get', 'events', 'form', 'socket'] as const);
  const count = how === 'batch' ? 1 + draw(6) : 1;
  const operations = Array.from({ length: count }, () => new OperationDraw(draw).operation(how));
  return { how, operations, body: JSON.stringify(how === 'batch' ? operations : operations[0]) };
});

function pick<One>(draw: Draw, all: readonly One[]): One {
  const one = all[draw(all.length)];
  if (one === undefined) throw new Error('there is nothing to pick');
  return one;
}

let given = 0;

/** A value that is no secret, unlike any other. */
function publicText(draw: Draw): string {
  given += 1;
  const text = `WVH${given}W`;
  if (draw(12) === 0) return JSON.stringify({ a: text, [pick(draw, ['password', 'Token'])]: secretText(draw) });
  return draw(6) === 0 ? `${text}${pick(draw, SEPARATORS)}${text}` : text;
}

function secretText(draw: Draw): string {
  return Array.from({ length: 1 + draw(3) }, () => MARKER).reduce((text, next) => text + pick(draw, SEPARATORS) + next);
}

function literalOf(draw: Draw, text: string): string {
  const escapes = Array.from(text, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`);
  return pick(draw, [
    ...Array(3).fill(JSON.stringify(text)),
    `"""${text.replaceAll('"""', '\\"""').replace(/["\\]$/, '$& ')}"""`,
    /[\ud800-\udfff]/.test(text) ? JSON.stringify(text) : `"${escapes.join('')}"`,
  ]);
}

/** One operation on its way. */
class OperationDraw {
  readonly #draw: Draw;
  readonly #variables: Record<string, unknown> = {};
  readonly #definitions = new Map<string, string>();
  readonly #fragments: string[] = [];
  #aliases = 0;

  constructor(draw: Draw) {
    this.#draw = draw;
  }

  operation(how: Sending['how']): Operation {
    const draw = this.#draw;
    const isStream = (how === 'events' || how === 'socket') && draw(2) === 0;
    const kind = isStream ? 'subscription' : how === 'form' || (how !== 'get' && draw(2) === 0) ? 'mutation' : 'query';
    const type = schema.getType(`${kind[0]?.toUpperCase()}${kind.slice(1)}`);
    if (!isObjectType(type)) throw new Error('the schema has it');
    const fields = Object.values(type.getFields());
    const secretive = fields.filter(({ name }) => /check|Password|createSupervisor|Client/.test(name));
    const selections = Array.from({ length: isStream ? 1 : 1 + draw(3) }, () =>
      this.#field(pick(draw, draw(2) === 0 ? secretive : fields), 1),
    );
    if (how === 'form') {
      this.#definitions.set('file', 'File!');
      this.#variables.file = null;
      selections.push('startUserMigration(file: $file) { __typename }');
    }
    const isNamed = draw(2) === 0;
    const defined = [...this.#definitions].map(([name, definition]) => `$${name}: ${definition}`).join(', ');
    const about = draw(15) === 0 ? `"about password: ${MARKER}" ` : '';
    const parts = [
      `${about}${kind}${isNamed ? ' Named' : ' '}${defined && `(${defined})`} { ${selections.join(' ')} }`,
      ...this.#fragments,
    ];
    if (draw(8) === 0) parts.splice(draw(2), 0, `# ${pick(draw, [`password: "${MARKER}"`, `token=${MARKER}`, 'WVH'])}`);
    if (isNamed && draw(6) === 0) parts.push(`query Other { check(token: "${MARKER}") { id } }`);
    if (draw(12) === 0) Object.assign(this.#variables, { extra: publicText(draw), newToken: secretText(draw) });
    return {
      query: parts.join('\n'),
      ...(Object.keys(this.#variables).length > 0 && { variables: this.#variables }),
      ...(isNamed && { operationName: 'Named' }),
      ...(draw(12) === 0 && { extensions: { note: publicText(draw), token: secretText(draw) } }),
    };
  }

  #field(field: GraphQLField<unknown, unknown>, depth: number): string {
    const draw = this.#draw;
    // Its arguments are passwords, which their names do not say.
    const isSecret = (name: string) => SECRET_NAME.test(name) || field.name === 'changeOwnPassword';
    const args = field.args
      .filter(({ type, name }) => isNonNullType(type) || draw(isSecret(name) ? 2 : 5) === 0)
      .map(({ name, type }) => `${name}: ${this.#value(type, isSecret(name), depth)}`);
    const inner = isCompositeType(getNamedType(field.type)) ? ` ${this.#selections(field.type, depth + 1)}` : '';
    const directive = draw(20) === 0 ? ' @include(if: true)' : '';
    return `${this.#alias(field)}${field.name}${args.length > 0 ? `(${args.join(', ')})` : ''}${directive}${inner}`;
  }

  /** The alias of a secret names nothing else: another field of that name would be masked, too. */
  #alias({ name }: GraphQLField<unknown, unknown>): string {
    if (this.#draw(3) === 0) return '';
    this.#aliases += 1;
    const isCommon = this.#draw(8) === 0 && !isMaskedField(name);
    return `${isCommon ? pick(this.#draw, ALIASES) : `a${this.#aliases}`}: `;
  }

  #selections(given: GraphQLOutputType, depth: number): string {
    const draw = this.#draw;
    const type = getNamedType(given);
    if (isAbstractType(type)) {
      const types = schema.getPossibleTypes(type);
      const some = types.slice(0, 1 + draw(types.length));
      return `{ __typename ${some.map((one) => `... on ${one.name} ${this.#selections(one, depth)}`).join(' ')} }`;
    }
    if (!isObjectType(type)) return '';
    const fields = Object.values(type.getFields());
    const leaves = fields.filter((field) => !isCompositeType(getNamedType(field.type)) && field.args.length === 0);
    const secretive = fields.filter(({ name }) => SECRET_NAME.test(name));
    const some = depth < MAX_DEPTH ? fields : leaves;
    const picked = Array.from({ length: 1 + draw(3) }, () => pick(draw, some.length > 0 ? some : fields));
    if (secretive.length > 0 && depth < MAX_DEPTH) picked.push(pick(draw, secretive));
    const selections = picked.map((field) => {
      if (depth > MAX_DEPTH && isCompositeType(getNamedType(field.type))) return '__typename';
      const selection = this.#field(field, depth);
      const way = draw(8);
      if (way === 0) return `... on ${type.name} { ${selection} }`;
      if (way > 1) return selection;
      this.#fragments.push(`fragment F${this.#fragments.length} on ${type.name} { ${selection} }`);
      return `...F${this.#fragments.length - 1}`;
    });
    return `{ ${selections.join(' ')} }`;
  }

  /** A value in the document: a literal, or a variable with a value, a default or both. */
  #value(type: GraphQLInputType, isSecret: boolean, depth: number): string {
    const draw = this.#draw;
    const way = draw(10);
    if (way > 4 || (depth > 1 && way > 2)) return this.#literal(type, isSecret, depth);
    const name = this.#definitions.size > 0 || draw(4) > 0 ? `v${this.#definitions.size}` : pick(draw, NAMES);
    // The place is taken before what stands below takes its own.
    this.#definitions.set(name, String(type));
    if (way !== 0) this.#variables[name] = this.#json(type, isSecret, depth);
    if (way < 2) this.#definitions.set(name, `${type} = ${this.#constant(this.#json(type, isSecret, depth), type)}`);
    return `$${name}`;
  }

  #literal(given: GraphQLInputType, isSecret: boolean, depth: number): string {
    const type = getNullableType(given);
    if (isListType(type)) {
      return `[${Array.from({ length: this.#draw(3) }, () => this.#value(type.ofType, isSecret, depth + 1)).join(', ')}]`;
    }
    if (!isInputObjectType(type)) return this.#constant(this.#json(type, isSecret, depth), type);
    const members = this.#given(type, depth).map(
      (field) => `${field.name}: ${this.#value(field.type, isSecret || SECRET_NAME.test(field.name), depth + 1)}`,
    );
    return `{${members.join(', ')}}`;
  }

  /** The members of an input object that are given. */
  #given(input: GraphQLInputObjectType, depth: number) {
    return Object.values(input.getFields()).filter(({ type, name }) => {
      if (isNonNullType(type)) return true;
      if (depth >= MAX_DEPTH && isInputObjectType(getNamedType(type))) return false;
      return this.#draw(SECRET_NAME.test(name) ? 2 : 4) === 0;
    });
  }

  #json(given: GraphQLInputType, isSecret: boolean, depth: number): unknown {
    const draw = this.#draw;
    const type = getNullableType(given);
    if (isListType(type)) return Array.from({ length: draw(3) }, () => this.#json(type.ofType, isSecret, depth + 1));
    if (isInputObjectType(type)) {
      const members = this.#given(type, depth);
      return Object.fromEntries(
        members.map(({ name, type: one }) => [name, this.#json(one, isSecret || SECRET_NAME.test(name), depth + 1)]),
      );
    }
    if (isEnumType(type)) return pick(draw, type.getValues()).name;
    if (type.name === 'Boolean') return draw(2) === 0;
    if (type.name === 'Int' || type.name === 'Float') return isSecret ? SECRET_NUMBER : 1 + draw(20);
    const text = isSecret ? secretText(draw) : publicText(draw);
    if (type.name !== 'JSON') return text;
    return pick<unknown>(draw, [
      text,
      { a: text, apiToken: secretText(draw), list: [{ secret: { b: secretText(draw) }, c: text }] },
      [text, { Password: SECRET_NUMBER }],
    ]);
  }

  /** A JSON value as a literal. */
  #constant(value: unknown, type: GraphQLInputType): string {
    const named = getNamedType(type);
    if (typeof value === 'string') return isEnumType(named) ? value : literalOf(this.#draw, value);
    if (Array.isArray(value)) return `[${value.map((one) => this.#constant(one, type)).join(', ')}]`;
    if (typeof value !== 'object' || value === null) return String(value);
    const fieldsOf = isInputObjectType(named) ? named.getFields() : {};
    const members = Object.entries(value).map(([name, one]) => {
      return `${name}: ${this.#constant(one, fieldsOf[name]?.type ?? named)}`;
    });
    return `{${members.join(', ')}}`;
  }
}
