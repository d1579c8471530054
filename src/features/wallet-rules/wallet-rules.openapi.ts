import {
  type DocumentedSchemas,
  demanding,
  documentedInputs,
  inputSchema,
  type JsonSchema,
  merged,
  refTo,
  requiringMember,
} from '../../api/openapi/operation.ts';
import { conditionInput, MAX_DEPTH, MAX_LEAVES, ruleLogicInput, walletRuleInput } from './wallet-rule.input.ts';

documentedInputs.set(ruleLogicInput, refTo('RuleLogic'));

type Members = NonNullable<JsonSchema['properties']>;

const children: JsonSchema = { type: 'array', items: refTo('RuleLogic'), minItems: 1 };

/** The members of each form of a condition tree. */
const LOGIC: Readonly<Record<string, Members>> = {
  Condition: inputSchema(conditionInput).properties ?? {},
  AllOf: { and: children },
  AnyOf: { or: children },
  NotOf: { not: refTo('RuleLogic') },
};

/** What wallet rules adds to the OpenAPI document. */
export const walletRuleSchemas: DocumentedSchemas = {
  inputs: {
    ...Object.fromEntries(Object.entries(LOGIC).map(([name, properties]) => [name, formOfLogic(properties)])),
    RuleLogic: {
      description: `A condition, or a group of conditions: at most ${MAX_DEPTH} levels deep, with at most ${MAX_LEAVES} conditions.`,
      oneOf: Object.keys(LOGIC).map(refTo),
    },
    WalletRule: demanding(inputSchema(walletRuleInput), {
      anyOf: [ownObject('auto_transfer'), ownObject('permissionless_transfer_limit')],
    }),
  },
  descriptions: {
    Condition: {
      field: 'The field that is compared, such as `target.balance`.',
      op: 'The comparison operator. Every spelling is stored as its short form.',
      value: 'Stored exactly: at most 78 significant digits, and an exponent from -78 to 78.',
    },
    WalletRule: {
      auto_transfer_rule: 'Required if type is auto_transfer.',
      permissionless_transfer_limit_rule: 'Required if type is permissionless_transfer_limit.',
      sign_and_approve_rule: 'The approvals that are required; each member is optional.',
    },
  },
};

/** Returns a schema that requires the member `<type>_rule` of an object with this `type`. */
function ownObject(type: string): JsonSchema {
  return merged({ properties: { type: { const: type } } }, requiringMember(`${type}_rule`));
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
