import { GraphQLError, Kind, type ValueNode } from 'graphql';
import { hasDecimalForm, isJsonNumber, literalOf } from '../../../lib/decimal.ts';
import { type Instant, isoFromPg, parseInstant } from '../../../lib/instants.ts';
import { ExactNumber, parseJson } from '../../../lib/json.ts';
import type { DuplicateReason } from '../../../platform/errors.ts';
import { type Builder, enumOf, implement } from './builder.ts';
import {
  DuplicateError,
  ForbiddenError,
  type InputIssue,
  NotFoundError,
  PreconditionError,
  Upload,
  ValidationError,
} from './resolvers.ts';

/** Adds the error types that the unions of mutations share. */
export function addErrorTypes(builder: Builder): void {
  const error = builder.interfaceRef<Error>('Error').implement({
    description: 'The reason why a mutation was refused. Nothing was changed.',
    fields: (t) => ({
      message: t.exposeString('message', {
        description: 'A message in English for people; programs should use the type.',
      }),
    }),
  });
  const issue = implement(builder.objectRef<InputIssue>('InputIssue'), 'An error in one member of an input.', {
    path: ['[String]', 'The path from the root of the input: member names, and list indexes from 0.'],
    message: ['String', 'A message that says what to send instead.'],
  });
  builder.objectType(ValidationError, {
    name: 'ValidationError',
    description: 'The input is invalid, by the same rules as in REST; `issues` lists every error.',
    interfaces: [error],
    fields: (t) => ({ issues: t.expose('issues', { type: [issue], description: 'Every invalid member.' }) }),
  });
  builder.objectType(NotFoundError, {
    name: 'NotFoundError',
    description: 'An id is unknown or belongs to another tenant; the response does not say which.',
    interfaces: [error],
  });
  builder.objectType(ForbiddenError, {
    name: 'ForbiddenError',
    description: 'The token lacks a permission, or may not change this object.',
    interfaces: [error],
    fields: (t) => ({
      permission: t.exposeString('permission', {
        description: 'The permission that is needed, such as `accounts:read`.',
      }),
    }),
  });
  const duplicateReason = enumOf<DuplicateReason>(
    builder,
    'DuplicateReason',
    'What another object already has.',
    {
      duplicate_id: 'The id.',
      duplicate_email: 'The email, compared by its key.',
      duplicate_external_id: 'The external id.',
      duplicate_wallet: 'The wallet address.',
      duplicate_username: 'The username, compared by its key.',
    },
    String,
  );
  builder.objectType(DuplicateError, {
    name: 'DuplicateError',
    description: 'Another object already has the same identifier.',
    interfaces: [error],
    fields: (t) => ({
      reason: t.expose('reason', { type: duplicateReason, description: 'What already exists.' }),
    }),
  });
  builder.objectType(PreconditionError, {
    name: 'PreconditionError',
    description: 'The input is valid, but the current state does not allow the change; the message says why.',
    interfaces: [error],
  });
}

/** Adds the scalars that GraphQL does not define. */
export function addScalars(builder: Builder): void {
  builder.scalarType('DateTime', {
    description:
      'An instant in ISO 8601: UTC with milliseconds, such as 2026-11-21T10:30:00.123Z. Input may have any offset.',
    // Of a row that was just inserted, the text may be ISO 8601 to the microsecond.
    serialize: isoFromPg,
    parseValue: (value) => instantOf(value),
    parseLiteral: (node) => instantOf(node.kind === Kind.STRING ? node.value : undefined, node),
  });
  builder.scalarType('Decimal', {
    description:
      'An exact decimal of up to 78 significant digits, with an exponent from -78 to 78. Input is a number or a string; output is a string without an exponent.',
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
      'A file: null in `variables`, and the content in a part of a multipart/form-data request (GraphQL multipart request specification).',
    serialize: () => {
      throw new GraphQLError('File cannot be used in a result');
    },
    parseValue: (value) => fileOf(value),
    parseLiteral: (node) => fileOf(undefined, node),
  });
}

/** Parses a decimal without checking its range, which the input's own schema does and reports with a path. */
function decimalOf(value: unknown, node?: ValueNode): ExactNumber {
  const literal = isJsonNumber(value) ? literalOf(value) : value;
  if (typeof literal === 'string' && hasDecimalForm(literal)) return new ExactNumber(literal);
  throw invalid('Decimal must be a number, or a string that contains a number', node);
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
  throw invalid(
    'File must be sent as a part of a multipart/form-data request, with null as the value of its variable',
    node,
  );
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
