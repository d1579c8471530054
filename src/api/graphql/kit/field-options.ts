import type { InputRef } from '@pothos/core';
import type { GraphQLField } from 'graphql';
import { z } from 'zod';
import { camelName } from '../../../lib/camel-name.ts';
import { issuesIn } from '../../../lib/input.ts';
import { ExactNumber } from '../../../lib/json.ts';
import { runCooperatively } from '../../../lib/yielding.ts';
import { heldMemory } from '../../../platform/waiting-request.ts';
import type { FeatureServices } from '../../shared/services.ts';

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
 * Parses a value with members in camelCase by an input schema with REST names, and reports issues with paths in
 * camelCase. The names inside `ruleLogic` stay as they are.
 */
function parseCamel<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  context: z.RefinementCtx,
): z.output<Schema> {
  const renamed = inRestNames(value);
  const result = schema.safeParse(renamed);
  if (result.success) return result.data;
  for (const { path, message } of issuesIn(result.error, renamed)) {
    context.addIssue({ code: 'custom', path: camelPath(path), message });
  }
  return z.NEVER;
}

/** Returns a schema for GraphQL from an input schema with REST names, which it takes in camelCase. */
export function camelInput<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return z.unknown().transform((value, context) => parseCamel(schema, value, context));
}

/** The type of an argument whose resolver gets `Output`. */
type TypeOf<Output> = Output extends (infer Item)[] ? [InputRef<Item>] : InputRef<Output>;

/**
 * Returns the options of a required argument that the zod plugin parses with an input schema with REST names. The
 * resolver gets the output of `schema`, in which the plugin then looks for the required input objects of `type`: the
 * name of such a member must be the same in REST. Each argument is parsed in a turn of the caller.
 */
export function parsedArgument<Schema extends z.ZodType>(type: InputRef | [InputRef], schema: Schema) {
  const cooperatively = z.unknown().transform((value, context) => {
    return runCooperatively(() => parseCamel(schema, value, context), heldMemory(), { isBegun: true });
  });
  const options = { required: true, validate: { schema: cooperatively } } as const;
  return { ...options, type: type as TypeOf<z.output<Schema>> };
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

/** The members of an object, without the null that GraphQL allows for an absent member. */
type WithoutNulls<Given> = { [Name in keyof Given]: Exclude<Given[Name], null> };

/** Returns the members that were given; a null member counts as absent, and so does a null object. */
export function withoutNulls<Given extends object>(input: Given | null | undefined): Partial<WithoutNulls<Given>> {
  const members = Object.entries(input ?? {}).filter(([, member]) => member !== null);
  return Object.fromEntries(members) as Partial<WithoutNulls<Given>>;
}
