import SchemaBuilder, {
  type FieldRef,
  type ImplementableObjectRef,
  type InputFieldRef,
  type InputRef,
  type ObjectFieldsShape,
  type ObjectRef,
} from '@pothos/core';
import ErrorsPlugin from '@pothos/plugin-errors';
import RelayPlugin from '@pothos/plugin-relay';
import ScopeAuthPlugin, { type AuthFailure } from '@pothos/plugin-scope-auth';
import ZodPlugin from '@pothos/plugin-zod';
import type { GraphQLField } from 'graphql';
import { z } from 'zod';
import type { Permission } from '../../../access/identity/permissions.rules.ts';
import { readField } from '../../../lib/fields.ts';
import { issuesIn } from '../../../lib/input.ts';
import type { Instant } from '../../../lib/instants.ts';
import { ExactNumber } from '../../../lib/json.ts';
import { camelName } from '../../../lib/spelling.ts';
import { runCooperatively } from '../../../lib/yielding.ts';
import { heldMemory } from '../../../platform/held-memory.ts';
import type { FeatureServices } from '../../shared/services.ts';
import {
  badInputError,
  ForbiddenError,
  forbiddenError,
  type GraphqlContext,
  inputIssues,
  NotFoundError,
  type Upload,
  ValidationError,
} from './resolvers.ts';

/** The rows of the object types that other nouns refer to by name. Each noun declares its own. */
// biome-ignore lint/suspicious/noEmptyInterface: nouns add to it.
export interface ObjectRows {}

interface SchemaTypes {
  Objects: ObjectRows;
  Context: GraphqlContext;
  DefaultFieldNullability: false;
  DefaultEdgesNullability: { list: false; items: false };
  DefaultNodeNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Instant; Output: string };
    Decimal: { Input: ExactNumber; Output: string };
    JSON: { Input: unknown; Output: unknown };
    File: { Input: Upload; Output: never };
  };
  AuthScopes: { permission: Permission; token: boolean };
  Connection: { totalCount: () => Promise<number> };
}

/**
 * Creates a schema builder without types. The plugins nest as errors, then permissions, then validation: a missing
 * permission is reported before an invalid input, and both can be members of a mutation's union.
 */
export function createBuilder() {
  return new SchemaBuilder<SchemaTypes>({
    plugins: [ErrorsPlugin, ScopeAuthPlugin, ZodPlugin, RelayPlugin],
    defaultFieldNullability: false,
    errors: {
      directResult: true,
      defaultTypes: [ValidationError, NotFoundError, ForbiddenError],
      defaultUnionOptions: {
        name: ({ fieldName }) => `${fieldName.charAt(0).toUpperCase()}${fieldName.slice(1)}Result`,
      },
    },
    scopeAuth: {
      authorizeOnSubscribe: true,
      authScopes: ({ principal }) => ({ token: true, permission: (name) => principal.permissions.has(name) }),
      unauthorizedError: (_parent, _context, info, { failure }) => {
        const permission = missingPermission(failure) ?? 'token';
        return info.parentType.name === 'Mutation' ? new ForbiddenError(permission) : forbiddenError(permission);
      },
    },
    zod: {
      validationError: (error, _args, _context, info) => {
        const issues = inputIssues(error);
        return info.parentType.name === 'Mutation' ? new ValidationError(issues) : badInputError(issues);
      },
    },
    relay: {
      cursorType: 'String',
      nodeQueryOptions: false,
      nodesQueryOptions: false,
      firstArgOptions: {
        description:
          'The number of rows to return from the beginning, or after `after`: 0 to 100, default 20. Cannot be combined with `last` (BAD_USER_INPUT).',
      },
      lastArgOptions: {
        description:
          'The number of rows to return from the end, or before `before`: 0 to 100. Cannot be combined with `first`.',
      },
      afterArgOptions: {
        description:
          'Return rows after this cursor. A cursor from another list or tenant is rejected (BAD_USER_INPUT).',
      },
      beforeArgOptions: {
        description:
          'Return rows before this cursor. A cursor from another list or tenant is rejected (BAD_USER_INPUT).',
      },
      edgesFieldOptions: {
        ...exposed('edges'),
        description: 'The rows of the page, in the order of the list.',
        nullable: { list: false, items: false },
      },
      cursorFieldOptions: {
        description: 'Opaque and signed; valid only as `after` and `before` of this list and tenant.',
      },
      nodeFieldOptions: { ...exposed('node'), description: 'The row itself.' },
      pageInfoFieldOptions: {
        ...exposed('pageInfo'),
        description: 'The first and last cursor of the page, and whether there are more rows.',
        nullable: false,
      },
      pageInfoTypeOptions: {
        description: 'The first and last cursor of a page, and whether there are more rows (Relay cursor connections).',
      },
      hasNextPageFieldOptions: {
        description: 'Whether there are more rows after this page; with `first`, only up to `before`.',
        nullable: false,
      },
      hasPreviousPageFieldOptions: {
        description: 'Whether there are more rows before this page; with `last`, only back to `after`.',
        nullable: false,
      },
      startCursorFieldOptions: {
        description: 'The cursor of the first row; null if the page is empty.',
        nullable: true,
      },
      endCursorFieldOptions: { description: 'The cursor of the last row; null if the page is empty.', nullable: true },
    },
  });
}

/**
 * Returns the options of a field that shows the member of its name and needs no resolver. The plugin gives it one,
 * which compiled operations would call for each edge.
 */
function exposed(name: string) {
  return { extensions: { pothosExposedField: name } };
}

/** Returns the options of a field that needs a permission, which its description names. */
export function needs(permission: Permission, description: string, more = '') {
  return { description: `${description} Needs ${permission}. ${more}`.trimEnd(), authScopes: { permission } };
}

/** The schema builder, to which each noun adds its types and fields. */
export type Builder = ReturnType<typeof createBuilder>;

type Types = Builder extends PothosSchemaTypes.SchemaBuilder<infer Extended> ? Extended : never;

/** The scalars that can show a value. */
type ScalarFor<Value> = Value extends string
  ? 'ID' | 'String' | 'DateTime' | 'Decimal'
  : Value extends number
    ? 'Int'
    : Value extends boolean
      ? 'Boolean'
      : Value extends readonly string[]
        ? '[String]'
        : 'JSON';

type TypeFor<Value> = [Extract<Value, null | undefined>] extends [never]
  ? ScalarFor<Value>
  : `${ScalarFor<NonNullable<Value>>}?`;

/**
 * The members of a row that fields show, each with its type and description. A scalar that may be null has a `?`; after
 * another type stands `nullable`.
 */
type Columns<Row> = {
  readonly [Name in keyof Row]?:
    | readonly [scalar: TypeFor<Row[Name]>, description: string]
    | readonly [type: object, description: string, nullable?: 'nullable'];
};

const SCALARS = { uuid: 'ID', 'date-time': 'DateTime', int: 'Int', text: 'String' } as const;

/** Returns the columns that show the declared fields of a noun. */
export function declaredColumns<Row extends object>({ shape }: z.ZodObject & z.ZodType<Row>): Columns<Row> {
  const columns = Object.entries(shape).map(([name, field]) => {
    const { kind, description, isNullable } = readField(field as z.ZodType);
    return [name, [`${SCALARS[kind]}${isNullable ? '?' : ''}`, description]];
  });
  return Object.fromEntries(columns);
}

/**
 * Implements an object type whose fields show members of its rows, each under its name in camelCase. `moreFields` are
 * those that show something else.
 */
export function implement<Row>(
  type: ImplementableObjectRef<Types, Row>,
  description: string,
  columns: Columns<Row>,
  moreFields?: ObjectFieldsShape<Types, Row>,
) {
  return type.implement({
    description,
    fields: (t) => {
      const { expose } = t as unknown as { expose(name: string, options: object): FieldRef<Types> };
      const shown: [column: string, described: [string | object, string, string?]][] = Object.entries(columns);
      const fields = shown.map(([column, [declaredType, description, nullable]]) => {
        const name = typeof declaredType === 'string' ? declaredType.replace('?', '') : declaredType;
        const options = {
          type: name === '[String]' ? ['String'] : name,
          nullable: name !== declaredType || !!nullable,
        };
        return [camelName(column), expose.call(t, column, { ...options, description })];
      });
      return { ...Object.fromEntries(fields), ...moreFields?.(t) };
    },
  });
}

/**
 * Adds an enum, whose names are its internal values in upper case, each with its description. With `String` as
 * `nameOf` they stay as in REST, for members that were texts before.
 */
export function enumOf<Value extends string>(
  builder: Builder,
  name: string,
  description: string,
  values: Record<Value, string>,
  nameOf = (value: string) => value.toUpperCase(),
) {
  const enumEntries = Object.entries<string>(values).map(([value, description]) => [
    nameOf(value),
    { value: value as Value, description },
  ]);
  return builder.enumType(name, {
    description,
    values: Object.fromEntries(enumEntries) as Record<string, { value: Value }>,
  });
}

/**
 * The members of an input, each with its type and description. A scalar that is required has a `!`; after another type
 * stands `required`.
 */
export type Members = Readonly<
  Record<string, readonly [type: string | InputRef | [InputRef], description: string, required?: 'required']>
>;

/** Adds an input type that a schema of REST parses, so that the types of its members are not used here. */
export function inputOf(builder: Builder, name: string, description: string, members: Members): InputRef {
  return builder.inputType(name, {
    description,
    fields: (t) => {
      const { field } = t as unknown as { field(options: object): InputFieldRef<Types, unknown> };
      const fields = Object.entries(members).map(([member, [declaredType, description, isRequired]]) => {
        const typeName = typeof declaredType === 'string' ? declaredType.replace('!', '') : declaredType;
        const type = typeName === '[String]' ? ['String'] : typeName;
        return [member, field.call(t, { type, required: typeName !== declaredType || !!isRequired, description })];
      });
      return Object.fromEntries(fields);
    },
  });
}

/** An object type: the name of a noun's own, or the reference of another. */
type ObjectParam = keyof ObjectRows | ObjectRef<Types, unknown>;

/** Adds the connection of a type with `totalCount`, and its edge. */
export function connectionOf<Type extends ObjectParam>(builder: Builder, type: Type, page: string, edge: string) {
  const connection = pagesOf(builder, type, page, edge);
  builder.objectField(connection, 'totalCount', (t) =>
    t.int({
      ...COUNTS_ROWS,
      description: 'The exact number of rows over all pages. Counted only if selected.',
      resolve: (counted) => counted.totalCount(),
    }),
  );
  return connection;
}

/** Adds the connection of a type whose rows are counted in another way, and its edge. */
export function pagesOf<Type extends ObjectParam>(builder: Builder, type: Type, page: string, edge: string) {
  const name = typeof type === 'string' ? type : type.name;
  return builder.connectionObject(
    { type, name: `${name}Connection`, description: page },
    { name: `${name}Edge`, description: edge },
  );
}

function missingPermission(failure: AuthFailure): string | undefined {
  if ('failures' in failure) return failure.failures.map(missingPermission).find((name) => name !== undefined);
  return 'parameter' in failure && typeof failure.parameter === 'string' ? failure.parameter : undefined;
}

/** What the engine knows of a field besides its type. */
interface FieldTraits {
  /**
   * Declares a mutation that takes an idempotency key: results of others may have secrets, which are never stored. The
   * function returns what wraps its transaction; undefined if nothing does.
   */
  idempotent?: (
    services: FeatureServices,
  ) => (<Result>(nodeId: string, work: () => Promise<Result>) => Promise<Result>) | undefined;
  /** Whether the field counts rows. */
  counts?: boolean;
  /** Returns what the field costs with so many members in the lists of its arguments, in objects of a result. */
  price?: (members: number) => number;
}

/** Returns the options of a field with traits. */
export function traits(declared: FieldTraits) {
  return { extensions: { traits: declared } };
}

/** Returns the traits of a field. */
export function traitsOf(field: GraphQLField<unknown, unknown> | undefined): FieldTraits {
  return (field?.extensions.traits ?? {}) as FieldTraits;
}

/** A mutation that takes an idempotency key, and is wrapped by nothing. */
export const IDEMPOTENT = traits({ idempotent: () => undefined });

/** A field that counts rows. */
export const COUNTS_ROWS = traits({ counts: true });

/** The member whose value is JSON and keeps the REST names inside. */
const JSON_MEMBER = 'ruleLogic';

/**
 * Returns a schema for GraphQL from an input schema with REST names, which it takes in camelCase, and in which it reports
 * issues. The names inside `ruleLogic` stay as they are. `run` runs the parsing.
 */
export function camelInput<Schema extends z.ZodType>(
  schema: Schema,
  run: <Value>(parse: () => Value) => Value | Promise<Awaited<Value>> = (parse) => parse(),
): z.ZodType<z.output<Schema>> {
  return z.unknown().transform((value, context) =>
    run(() => {
      const renamed = inRestNames(value);
      const result = schema.safeParse(renamed);
      if (result.success) return result.data;
      for (const { path, message } of issuesIn(result.error, renamed)) {
        context.addIssue({ code: 'custom', path: camelPath(path), message });
      }
      return z.NEVER;
    }),
  );
}

/** The type of an argument whose resolver gets `Output`. */
type TypeOf<Output> = Output extends (infer Item)[] ? [InputRef<Item>] : InputRef<Output>;

/**
 * Returns the options of a required argument that the zod plugin parses with an input schema with REST names. The
 * resolver gets the output of `schema`, in which the plugin then looks for the required input objects of `type`: the
 * name of such a member must be the same in REST. Each argument is parsed in a turn of the caller.
 */
export function parsedArgument<Schema extends z.ZodType>(type: InputRef | [InputRef], schema: Schema) {
  const cooperatively = camelInput(schema, (parse) => runCooperatively(parse, heldMemory(), { isBegun: true }));
  return { required: true, validate: { schema: cooperatively }, type: type as TypeOf<z.output<Schema>> } as const;
}

function inRestNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inRestNames);
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      restName(name),
      name === JSON_MEMBER ? member : inRestNames(member),
    ]),
  );
}

function restName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camelPath(path: readonly PropertyKey[]): PropertyKey[] {
  const end = path.indexOf(restName(JSON_MEMBER));
  const renamed = end < 0 ? path.length : end + 1;
  return [
    ...path.slice(0, renamed).map((part) => (typeof part === 'string' ? camelName(part) : part)),
    ...path.slice(renamed),
  ];
}
