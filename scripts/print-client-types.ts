import { writeFileSync } from 'node:fs';
import openapi from '../schema/openapi.json' with { type: 'json' };

interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  description?: string;
  exclusiveMaximum?: number;
}

/** The schemas of requests and responses that the client sends and returns. */
const NAMES = [
  'AccountPage',
  'AllOf',
  'AnyOf',
  'Asset',
  'BulkResult',
  'Condition',
  'GasFees',
  'Health',
  'Introspection',
  'MigrateUser',
  'MigrateUserRow',
  'MigratedUser',
  'NotOf',
  'Notification',
  'RuleLogic',
  'ServerMetadata',
  'TokenResponse',
  'WalletRule',
];

const decimals = new Set<string>();

/** Returns whether a number has more digits than a double: an amount, or an unsigned 64-bit integer. */
function isDecimal({ type, format, exclusiveMaximum }: Schema): boolean {
  return (
    [type].flat().some((one) => one === 'number' || one === 'integer') &&
    (format === 'uint64' || exclusiveMaximum === 1e79)
  );
}

function typeOf(schema: Schema, indent: string, name = ''): string {
  const { $ref, type, anyOf, oneOf, properties, items } = schema;
  if ($ref) return $ref.slice($ref.lastIndexOf('/') + 1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const union = anyOf ?? oneOf;
  if (union) return union.map((one) => typeOf(one, indent, name)).join(' | ');
  if (isDecimal(schema)) decimals.add(name);
  const types = [type ?? []].flat().map((one) => {
    if (one === 'object') return properties ? objectOf(schema, indent) : 'Record<string, unknown>';
    if (one === 'array') return `Array<${items ? typeOf(items, indent, name) : 'unknown'}>`;
    if (one === 'number' || one === 'integer') return isDecimal(schema) ? 'Decimal' : 'number';
    return one;
  });
  return types.join(' | ') || 'unknown';
}

function objectOf({ properties = {}, required = [] }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(([name, schema]) => {
    const comment = schema.description ? `${inner}/** ${schema.description.replaceAll('*/', '* /')} */\n` : '';
    return `${comment}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema, inner, name)};`;
  });
  return `{\n${members.join('\n')}\n${indent}}`;
}

const schemas = openapi.components.schemas as unknown as Record<string, Schema>;
const types = NAMES.map((name) => `export type ${name} = ${typeOf(schemas[name] ?? {}, '')};`);
const text = `/** Generated from schema/openapi.json by scripts/print-client-types.ts. */

/** An exact number as text, such as "12.50". */
export type Decimal = string;

${types.join('\n\n')}

/** The members whose values are decimals. */
export const DECIMAL_MEMBERS: ReadonlySet<string> = new Set(${JSON.stringify([...decimals].sort())});
`;
writeFileSync(new URL('../client/src/generated/rest.ts', import.meta.url), text);
