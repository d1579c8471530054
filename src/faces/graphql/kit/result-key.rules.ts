import { createHash } from 'node:crypto';
import {
  type DocumentNode,
  Kind,
  type OperationDefinitionNode,
  print,
  type ValidatedSubscriptionArgs,
  visit,
} from 'graphql';
import type { Principal } from '../../../access/identity/principal.ts';

/** Where a subscription begins; the resolvers of root fields give an event as it is, whatever this says. */
const BEGINNING = 'after';

type Subscription = Pick<ValidatedSubscriptionArgs, 'document' | 'operation' | 'rawVariableValues'>;

/** The part of a principal that the result of an event may depend on; the context of an event has no other. */
export type SharedPrincipal = Pick<Principal, 'nodeId' | 'tokenClass' | 'tokenUse' | 'permissions'>;

/** Returns that part of a principal, without its other members. */
export function sharedPrincipalOf({ nodeId, tokenClass, tokenUse, permissions }: Principal): SharedPrincipal {
  return { nodeId, tokenClass, tokenUse, permissions };
}

/**
 * What the answer to an event depends on beside the event: the document, the operation, its variables but for the one
 * that says where it begins, and every member of the principal that there is where it is answered.
 */
export function resultKeyOf(
  { document, operation, rawVariableValues }: Subscription,
  principal: SharedPrincipal,
): string {
  const source = document.loc?.source.body ?? print(document);
  const beginnings = beginningsOf(document, operation);
  const declared = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
  const variables = declared
    .filter((name) => !beginnings.has(name) && Object.hasOwn(rawVariableValues ?? {}, name))
    .sort()
    .map((name) => [name, rawVariableValues?.[name]]);
  const text = JSON.stringify([source, operation.name?.value, variables, principal], canonical);
  return createHash('sha256').update(text).digest('base64');
}

/** The variables that say where the operation begins, and nothing else. */
function beginningsOf(document: DocumentNode, { selectionSet }: OperationDefinitionNode): ReadonlySet<string> {
  const names = selectionSet.selections.flatMap((field) =>
    field.kind === Kind.FIELD
      ? (field.arguments ?? []).flatMap(({ name, value }) =>
          name.value === BEGINNING && value.kind === Kind.VARIABLE ? [value.name.value] : [],
        )
      : [],
  );
  if (names.length === 0) return new Set();
  const mentions = new Map<string, number>();
  visit(document, {
    Variable: ({ name }) => void mentions.set(name.value, (mentions.get(name.value) ?? 0) + 1),
  });
  // Its definition, and this one use.
  return new Set(names.filter((name) => mentions.get(name) === 2));
}

/** Members in one order, those of a set as well, and integers that JSON does not know. */
function canonical(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (value instanceof Set) return [...value].sort();
  if (typeof value !== 'object' || value === null || Array.isArray(value) || 'toJSON' in value) return value;
  // A raw number is no plain object, and has no members to put in order.
  if (Object.getPrototypeOf(value) === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
