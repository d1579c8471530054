import type { z } from 'zod';
import { createSchema, type ZodOpenApiOverride } from 'zod-openapi';
import {
  clientInput,
  type GrantType,
  grantInputs,
  tokenInput,
} from '../../access/token-endpoint/token-request.input.ts';
import { notificationInput } from '../../domain/transactions/notification.input.ts';
import { bulkRows, migrateUserInput, migrateUsersInput } from '../../domain/user-migrations/migration.input.ts';
import {
  conditionInput,
  MAX_DEPTH,
  MAX_LEAVES,
  ruleLogicInput,
  walletRuleInput,
} from '../../domain/wallet-rules/wallet-rule.input.ts';
import { type JsonSchema, refTo } from './operation.ts';

/** Returns the JSON Schema of the input or the output of a zod schema. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', override?: ZodOpenApiOverride): JsonSchema {
  const { schema: made } = createSchema(schema, { io, openapiVersion: '3.1.0', opts: override ? { override } : {} });
  // The package declares the type for OpenAPI 3.2.
  return made as JsonSchema;
}

/** The largest uint64 as JSON writes it after rounding to a double, and exactly. */
const ROUNDED_UINT64 = String(Number(2n ** 64n - 1n));
const MAX_UINT64 = String(2n ** 64n - 1n);

/** Replaces the rounded largest uint64 in the text of a document by the exact number. */
export function withExactNumbers(text: string): string {
  return text.replaceAll(ROUNDED_UINT64, MAX_UINT64);
}

/** Returns an object schema with the members of several schemas. */
export function merged(...schemas: readonly JsonSchema[]): JsonSchema {
  const required = schemas.flatMap((schema) => schema.required ?? []);
  return {
    type: 'object',
    properties: Object.assign({}, ...schemas.map(({ properties }) => properties)),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** A text that is not blank. */
const FILLED: JsonSchema = { type: 'string', pattern: '[^\\s\\x85]' };

/** Returns a schema that requires a member with a value that does not count as absent. */
function given(name: string, value: JsonSchema = { not: { enum: [null] } }): JsonSchema {
  return { properties: { [name]: value }, required: [name] };
}

/** Returns a schema that requires the member `<type>_rule` of an object with this `type`. */
function ownObject(type: string): JsonSchema {
  return merged({ properties: { type: { const: type } } }, given(`${type}_rule`));
}

/** Returns a schema in which every optional member, at any depth, may be null, which counts as absent. */
function withNulls(schema: JsonSchema): JsonSchema {
  const { properties, required = [] } = schema;
  if (!properties) return schema;
  const members = Object.entries(properties).map(([name, member]) => {
    const own: JsonSchema = withNulls(member as JsonSchema);
    const isNullable = typeof own.type === 'string' && !required.includes(name);
    return [name, isNullable ? { ...own, type: [own.type, 'null'] } : own];
  });
  return { ...schema, properties: Object.fromEntries(members) };
}

/**
 * Replaces the generated schema of inputs that code rather than zod parses: condition trees, and rows that are counted
 * first.
 */
const override: ZodOpenApiOverride = ({ zodSchema, jsonSchema }) => {
  const schema: z.core.$ZodType = zodSchema;
  if (schema === ruleLogicInput) {
    delete jsonSchema.type;
    jsonSchema.$ref = refTo('RuleLogic').$ref;
  }
  if (schema === bulkRows) jsonSchema.items = refTo('MigrateUserRow');
};

/** The schema of each grant. */
const GRANTS = {
  password: 'PasswordGrant',
  client_credentials: 'ClientCredentialsGrant',
  refresh_token: 'RefreshTokenGrant',
} as const satisfies Record<GrantType, string>;

/** A client's credentials in the body, none of which is required: HTTP Basic is the alternative. */
const { required: _required, ...client } = read(clientInput);

type Members = NonNullable<JsonSchema['properties']>;

const children: JsonSchema = { type: 'array', items: refTo('RuleLogic'), minItems: 1 };

/** The members of each form of a condition tree. */
const LOGIC: Readonly<Record<string, Members>> = {
  Condition: read(conditionInput).properties ?? {},
  AllOf: { and: children },
  AnyOf: { or: children },
  NotOf: { not: refTo('RuleLogic') },
};

/**
 * The schemas of request bodies by name, generated from the schemas that parse them. Unknown members are ignored, so
 * they are allowed.
 */
export const inputSchemas: Record<string, JsonSchema> = Object.fromEntries(
  Object.entries<JsonSchema>({
    PasswordGrant: merged(read(grantInputs.password), client),
    ClientCredentialsGrant: merged(read(grantInputs.client_credentials), client),
    RefreshTokenGrant: merged(read(grantInputs.refresh_token), client),
    TokenRequest: {
      oneOf: Object.values(GRANTS).map(refTo),
      discriminator: {
        propertyName: 'grant_type',
        // Some generators read a bare name as the name of a file.
        mapping: Object.fromEntries(Object.entries(GRANTS).map(([grant, name]) => [grant, refTo(name).$ref])),
      },
    },
    TokenToManage: merged(read(tokenInput), client),
    ...Object.fromEntries(Object.entries(LOGIC).map(([name, properties]) => [name, formOfLogic(properties)])),
    RuleLogic: {
      description: `A condition, or a group of conditions: at most ${MAX_DEPTH} levels deep, with at most ${MAX_LEAVES} conditions.`,
      oneOf: Object.keys(LOGIC).map(refTo),
    },
    WalletRule: demanding(read(walletRuleInput), {
      anyOf: [ownObject('auto_transfer'), ownObject('permissionless_transfer_limit')],
    }),
    Notification: read(notificationInput),
    MigrateUser: demanding(read(migrateUserInput), {
      anyOf: [given('email', FILLED), given('external_id', FILLED)],
    }),
    MigrateUserRow: read(bulkRows.out.element),
    MigrateUsers: read(migrateUsersInput),
  }).map(([name, schema]) => [name, withNulls(schema)]),
);

function read(schema: z.ZodType): JsonSchema {
  return schemaOf(schema, 'input', override);
}

/** Returns the schema of a form of a condition tree, in which the members of every other form are absent. */
function formOfLogic(properties: Members): JsonSchema {
  const absent = Object.values(LOGIC).flatMap((other) =>
    other === properties ? [] : Object.keys(other).map((name) => [name, { type: 'null' }]),
  );
  return demanding(
    { type: 'object', properties, required: Object.keys(properties) },
    { properties: Object.fromEntries(absent) },
  );
}

/**
 * Returns a schema that is met only where another is too. The other one depends on a required member, and so always
 * holds; as `anyOf` or `not` it would be a class of generated clients instead of the members.
 */
function demanding(schema: JsonSchema, demanded: object): JsonSchema {
  return { ...schema, dependentSchemas: { [String(schema.required?.[0])]: demanded } };
}
