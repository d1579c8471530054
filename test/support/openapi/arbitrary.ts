import fc from 'fast-check';
import type { oas31 } from 'zod-openapi';
import type { JsonSchema } from '../../../src/api/openapi/operation.ts';
import { anyCharacter } from '../harness/any-character.ts';
import { followed } from './described.ts';

type Schema = oas31.SchemaObject;

const UUIDS = fc.uuid().chain((id) => fc.constantFrom(id, id.toUpperCase()));
const TIMES = fc
  .date({ noInvalidDate: true, min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z') })
  .map((date) => date.toISOString());
/** Texts of every script, without what the pattern of a text leaves out. */
const TEXTS = fc.oneof(
  fc.string(),
  fc.string({ unit: anyCharacter }),
  fc.constantFrom('', ' ', '\u2028', '𝒳', '\\u0000', "'--"),
);

/** Values that a schema of the document allows; what a schema leaves open stays small. */
export function valuesOf(schema: Schema | oas31.ReferenceObject, depth = 0): fc.Arbitrary<unknown> {
  if ('$ref' in schema) return valuesOf(followed(String(schema.$ref).split('/').slice(1)).value as Schema, depth);
  const { oneOf, anyOf: _anyOf, not, ...own } = schema;
  if (not && 'enum' in not) return valuesOf(own as Schema, depth).filter((value) => !not.enum?.includes(value));
  // What a schema demands besides depends on a member that it requires.
  const [demanded] = Object.values((schema as JsonSchema).dependentSchemas ?? {}) as Schema[];
  const anyOf = schema.anyOf ?? demanded?.anyOf;
  if (oneOf)
    return fc.oneof(
      { withCrossShrink: true },
      ...(depth > 3 ? oneOf.slice(0, 1) : oneOf).map((one) => valuesOf(one, depth + 1)),
    );
  if (anyOf && own.type !== 'object') return fc.oneof(...anyOf.map((one) => valuesOf(one, depth)));
  if (anyOf) return fc.oneof(...anyOf.map((one) => objectsOf(both(own, one as Schema), depth)));
  if ('const' in own) return fc.constant((own as { const: unknown }).const);
  if (Array.isArray(own.type)) return fc.oneof(...own.type.map((type) => valuesOf({ ...own, type } as Schema, depth)));
  if (own.enum) return fc.constantFrom(...own.enum);
  return typedValues(own, depth);
}

function typedValues(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'object':
      return objectsOf(schema, depth);
    case 'array': {
      const items = schema.items ? valuesOf(schema.items, depth + 1) : fc.constant('x');
      return fc.array(items, { minLength: schema.minItems ?? 0, maxLength: Math.min(schema.maxItems ?? 3, 4) });
    }
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'integer':
      return integersOf(schema);
    case 'number':
      return (
        fc
          .double({
            noNaN: true,
            noDefaultInfinity: true,
            min: schema.exclusiveMinimum === 0 ? 1e-70 : -1e70,
            max: 1e70,
          })
          // Nearer to zero a decimal has no place.
          .map((value) => (Math.abs(value) < 1e-70 ? 1 : value))
      );
    case 'string':
      return textsOf(schema);
    default:
      throw new Error(`no values for ${JSON.stringify(schema)}`);
  }
}

function integersOf({ minimum = 0, maximum = 1e30 }: Schema): fc.Arbitrary<number> {
  const edges = fc.constantFrom(minimum, minimum + 1, maximum > Number.MAX_SAFE_INTEGER ? 2 ** 53 : maximum);
  return fc.oneof(edges, fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31 - 1) }));
}

function textsOf({ format, pattern, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === 'uuid') return UUIDS;
  if (format === 'date-time') return TIMES;
  const form = new RegExp(pattern ?? '', 'u');
  const long = fc.constant('é'.repeat(Math.min(maxLength, 600)));
  return fc.oneof({ weight: 9, arbitrary: TEXTS }, { weight: 1, arbitrary: long }).filter((text) => {
    const { length } = [...text];
    return form.test(text) && length >= minLength && length <= maxLength;
  });
}

function objectsOf({ properties = {}, required = [] }: Schema, depth: number): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, valuesOf(schema, depth + 1)]),
  );
  const unknown = fc.constantFrom({}, { 'an unknown member': [1, { deep: null }] });
  return fc
    .tuple(fc.record(members, { requiredKeys: required }), unknown)
    .map(([object, more]) => ({ ...object, ...more }));
}

/** An object that is of two schemas: what the second says of a member narrows what the first does. */
function both(first: Schema, second: Schema): Schema {
  const required = [...(first.required ?? []), ...(second.required ?? [])];
  const narrowed = Object.entries(second.properties ?? {}).map(([name, schema]) => [
    name,
    narrowedBy((first.properties?.[name] ?? {}) as Schema, schema as Schema),
  ]);
  return { ...first, properties: { ...first.properties, ...Object.fromEntries(narrowed) }, required };
}

/** What two schemas of one member say, with the patterns of both. */
function narrowedBy(first: Schema, second: Schema): Schema {
  const patterns = [first.pattern, second.pattern].filter((pattern) => pattern !== undefined);
  if (patterns.length < 2) return { ...first, ...second };
  const pattern = `^${patterns.map((one) => `(?=[\\s\\S]*(?:${one}))`).join('')}`;
  return { ...first, ...second, pattern };
}
