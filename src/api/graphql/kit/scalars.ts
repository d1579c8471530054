import { GraphQLError, Kind, type ValueNode } from 'graphql';
import { hasDecimalForm, isJsonNumber, literalOf } from '../../../lib/decimal.ts';
import { type Instant, isoFromPg, parseInstant } from '../../../lib/instants.ts';
import { ExactNumber, parseJson } from '../../../lib/json.ts';
import type { Builder } from './builder.ts';
import { ValidationError } from './graphql-errors.ts';

/**
 * A file of a multipart request, as a field gets it. None of its bytes are read from the network before a field takes
 * them.
 */
export class Upload {
  readonly #read: () => AsyncIterable<Uint8Array>;
  #isTaken = false;

  /**
   * @param read returns the bytes of the file; it is called once, and its iteration throws if the file does not arrive
   * in full
   */
  constructor(read: () => AsyncIterable<Uint8Array>) {
    this.#read = read;
  }

  /**
   * Returns the bytes, which are read from the network no faster than they are consumed. The iteration ends only when
   * the whole request has arrived.
   * @throws ValidationError when another field has taken them.
   */
  take(): AsyncIterable<Uint8Array> {
    if (this.#isTaken) throw new ValidationError([{ path: ['file'], message: 'another field has read it' }]);
    this.#isTaken = true;
    return this.#read();
  }

  /**
   * Returns null, the value that the variable of the file was sent with: wherever variables are written, such as in an
   * audit record, the file appears as null.
   */
  toJSON(): null {
    return null;
  }
}

/** Adds the scalars that GraphQL does not define. */
export function addScalars(builder: Builder): void {
  builder.scalarType('DateTime', {
    description:
      'An instant: ISO 8601 in UTC with milliseconds, such as 2026-11-21T10:30:00.123Z; any offset is taken.',
    // PostgreSQL's text has a space where ISO 8601 has a T.
    serialize: (text) => (text.includes('T') ? text : isoFromPg(text)),
    parseValue: (value) => instantOf(value),
    parseLiteral: (node) => instantOf(node.kind === Kind.STRING ? node.value : undefined, node),
  });
  builder.scalarType('Decimal', {
    description:
      'An exact decimal of up to 78 significant digits, its exponent from -78 to 78. Numbers and strings are taken, strings in plain digits are given.',
    serialize: (text) => text,
    parseValue: (value) => decimalOf(value),
    parseLiteral: (node) =>
      decimalOf(
        node.kind === Kind.STRING || node.kind === Kind.INT || node.kind === Kind.FLOAT ? node.value : undefined,
        node,
      ),
  });
  builder.scalarType('JSON', {
    description: 'Any JSON value. Its numbers keep every digit.',
    serialize: (value) => value,
    parseValue: (value) => value,
    parseLiteral: (node, variables) => jsonOf(node, variables ?? {}),
  });
  builder.scalarType('File', {
    description:
      'A file: null in `variables`, and the file itself in a request of multipart/form-data (GraphQL multipart request specification).',
    serialize: () => {
      throw new GraphQLError('a file is never given');
    },
    parseValue: (value) => fileOf(value),
    parseLiteral: (node) => fileOf(undefined, node),
  });
}

/** Parses a decimal without checking its range, which the input's own schema does and reports with a path. */
function decimalOf(value: unknown, node?: ValueNode): ExactNumber {
  const literal = isJsonNumber(value) ? literalOf(value) : value;
  if (typeof literal === 'string' && hasDecimalForm(literal)) return new ExactNumber(literal);
  throw invalid('Decimal must be a number, or a string that is one', node);
}

function jsonOf(node: ValueNode, variables: Readonly<Record<string, unknown>>): unknown {
  switch (node.kind) {
    case Kind.NULL:
      return null;
    case Kind.INT:
    case Kind.FLOAT:
      return parseJson(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return node.value;
    case Kind.LIST:
      return node.values.map((value) => jsonOf(value, variables));
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map(({ name, value }) => [name.value, jsonOf(value, variables)]));
    case Kind.VARIABLE:
      return variables[node.name.value];
    default:
      return node satisfies never;
  }
}

function fileOf(value: unknown, node?: ValueNode): Upload {
  if (value instanceof Upload) return value;
  throw invalid('File must be a part of a request of multipart/form-data, for a variable that is null', node);
}

function instantOf(value: unknown, node?: ValueNode): Instant {
  const instant = typeof value === 'string' ? parseInstant(value) : undefined;
  if (instant === undefined) throw invalid('DateTime must be an ISO 8601 date and time', node);
  return instant;
}

/**
 * Creates the error for an invalid value, with the location of a literal; for a variable graphql-js adds its name
 * itself.
 */
function invalid(message: string, node: ValueNode | undefined): GraphQLError {
  return new GraphQLError(message, node ? { nodes: node } : {});
}
