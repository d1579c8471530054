import {
  type ArgumentNode,
  type ASTNode,
  type DocumentNode,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type ObjectFieldNode,
  type OperationDefinitionNode,
  print,
  type StringValueNode,
  visit,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { z } from 'zod';
import { maskBody } from '../../../audit/mask.ts';
import { isHidden, maskEmbedded } from '../../../audit/mask-json.ts';
import { MASK, maskValues } from '../../../audit/mask-values.ts';
import type { SecretNames } from '../../../audit/masked-names.ts';
import { notingUsers, type UserNotes } from '../../../audit/noted-users.ts';
import { MAX_BODY_BYTES } from '../../../gateway/exchange/audit.ts';
import type { AuditedOperation, Exchange } from '../../../gateway/exchange/exchange.ts';
import { isSecretInput } from '../../../lib/input.ts';
import { isObject, parseJson } from '../../../lib/json.ts';
import { areVariablesGood, rootFieldsOf } from '../execution/documents.ts';
import type { OperationParams } from './document-limits.ts';

/** A valid document with its secrets masked. */
interface MaskedDocument {
  text: string;
  /** The names of the variables whose values are used as secrets, wholly or in part. */
  variables: ReadonlySet<string>;
  /** The names of response fields that are masked: aliases of secrets, and content of other records. */
  aliases: ReadonlySet<string>;
}

/** The kinds of values that stay under the name of a secret: they hold none. */
const UNMASKED_KINDS: ReadonlySet<Kind> = new Set([Kind.VARIABLE, Kind.BOOLEAN, Kind.NULL]);
const MASKED_VALUE: StringValueNode = { kind: Kind.STRING, value: MASK };

/** The fields of an audit record that an erasure removes: a copy of them would stay. */
const ERASABLE_FIELDS: ReadonlySet<string> = new Set(['query', 'requestBody', 'responseBody']);

/** The names of the members that hold the message of an error, which may quote the request. */
const MESSAGES: ReadonlySet<string> = new Set(['message']);

/** Returns the arguments of a schema whose input is declared as a secret: `field.argument`. */
function secretArguments(schema: GraphQLSchema): ReadonlySet<string> {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const fields = roots.flatMap((root) => Object.values(root?.getFields() ?? {}));
  const all = fields.flatMap(({ name: field, args }) =>
    args.map(({ name, extensions }) => ({ field, name, extensions })),
  );
  return new Set(all.filter(isDeclaredSecret).map(({ field, name }) => `${field}.${name}`));
}

function isDeclaredSecret({
  extensions: { pothosOptions },
}: {
  extensions: Readonly<Record<string, unknown>>;
}): boolean {
  const validate = isObject(pothosOptions) ? pothosOptions.validate : undefined;
  const schema = isObject(validate) ? validate.schema : undefined;
  return schema instanceof z.ZodType && isSecretInput(schema);
}

/**
 * Masks the arguments, input fields and defaults of variables of a valid document that are secrets by their name in the
 * schema. A document with comments or anything to mask is printed again, without its comments.
 */
function maskDocument(
  document: DocumentNode,
  {
    secrets,
    declared,
  }: {
    secrets: SecretNames;
    /** The arguments that are secrets although their names do not say so. */
    declared: ReadonlySet<string>;
  },
): MaskedDocument {
  const variables = new Set<string>();
  const aliases = new Set<string>();
  function maskSecret(
    node: ArgumentNode | ObjectFieldNode,
    _key: unknown,
    _parent: unknown,
    _path: unknown,
    ancestors: readonly (ASTNode | readonly ASTNode[])[],
  ): ASTNode | undefined {
    const owner = ancestors.at(-1);
    const isDeclared = owner && 'name' in owner && declared.has(`${owner.name?.value}.${node.name.value}`);
    if (!isDeclared && !secrets.isSecretKey(node.name.value)) return undefined;
    // A variable of this name that the operation does not declare is meant for the argument.
    variables.add(node.name.value);
    visit(node.value, { Variable: ({ name }) => void variables.add(name.value) });
    return UNMASKED_KINDS.has(node.value.kind) ? undefined : { ...node, value: MASKED_VALUE };
  }
  const masked: DocumentNode = visit(document, {
    Argument: maskSecret,
    ObjectField: maskSecret,
    Field({ alias, name, selectionSet }) {
      if (ERASABLE_FIELDS.has(name.value)) aliases.add((alias ?? name).value);
      else if (alias && (!selectionSet || secrets.isListed(name.value)) && secrets.isSecretKey(name.value))
        aliases.add(alias.value);
    },
    StringValue(node, key) {
      const value = key === 'description' ? MASK : maskEmbedded(node.value, secrets);
      return value === node.value ? undefined : { ...node, value };
    },
  });
  const shown: DocumentNode = visit(masked, {
    VariableDefinition(node) {
      const { value: name } = node.variable.name;
      const isMasked = node.defaultValue && (variables.has(name) || secrets.isSecretKey(name));
      return isMasked ? { ...node, defaultValue: MASKED_VALUE } : undefined;
    },
  });
  const source = document.loc?.source.body ?? '';
  return { text: shown === document && !source.includes('#') ? source : print(shown), variables, aliases };
}

/** A valid document, and the users that its operation has noted. */
interface ValidOperation extends UserNotes {
  document: DocumentNode;
}

/** The property of an operation's parameters that holds it; a weak map would outlive young collections. */
const VALID: unique symbol = Symbol('valid operation');

function validOf(params: object): ValidOperation | undefined {
  return VALID in params ? (params[VALID] as ValidOperation) : undefined;
}

/** Decides what the audit records of operations may show. */
export class OperationAudits {
  readonly #schema: GraphQLSchema;
  readonly #declared: ReadonlySet<string>;
  readonly #masked = new WeakMap<DocumentNode, MaskedDocument & { secrets: SecretNames }>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
    this.#declared = secretArguments(schema);
  }

  /** Begins to follow a request. Until its operations are known, its record shows nothing of its body. */
  begin({ audit }: Exchange): void {
    audit.operations = showNothing;
  }

  /** Stores the parameters of a request's operation, or of each operation of a batch. */
  recordRequest({ audit, req }: Exchange, params: unknown): void {
    const operations = (secrets: SecretNames): AuditedOperation[] => {
      if (Array.isArray(params))
        return params.map((operationParams) => this.#operationOf(operationParams, secrets, true));
      const operation = this.#operationOf(params, secrets, false);
      return [req.method === 'GET' ? { ...operation, query: queryOf(operation.request.text) } : operation];
    };
    audit.operations = operations;
  }

  /** Creates the Envelop plugin that stores which operations have a valid document, and notes the users of each. */
  plugin(): Plugin<OperationParams> {
    return {
      onValidate:
        ({ params: { documentAST: document }, context }) =>
        ({ valid }) => {
          const value: ValidOperation = { document, notedUsers: undefined };
          if (valid) Object.defineProperty(context.params, VALID, { value, configurable: true });
        },
      onExecute: ({ executeFn, setExecuteFn, context }) => {
        const notes = validOf(context.params);
        if (notes) setExecuteFn((args) => notingUsers(notes, () => executeFn(args)));
      },
      onSubscribe: ({ subscribeFn, setSubscribeFn, args }) => {
        const notes = validOf(args.contextValue.params);
        if (notes) setSubscribeFn((subscribeArgs) => notingUsers(notes, () => subscribeFn(subscribeArgs)));
      },
    };
  }

  /** Stores the JSON of each result of a batch. */
  recordResults({ audit }: Exchange, texts: readonly string[]): void {
    const { operations = () => [] } = audit;
    const withResponses = (secrets: SecretNames) =>
      operations(secrets).map((operation, index) => withResponse(operation, texts[index] ?? '', secrets));
    audit.operations = withResponses;
  }

  /** Returns what the audit record of an operation on a WebSocket shows, from what was sent in response. */
  ofSocket(params: unknown, responseText: string, secrets: SecretNames): AuditedOperation {
    return withResponse(this.#operationOf(params, secrets, true), responseText, secrets);
  }

  /**
   * Returns what the record of an operation shows. An invalid one, whose strings may be misplaced secrets, is recorded
   * only as its length.
   */
  #operationOf(params: unknown, secrets: SecretNames, isPart: boolean): AuditedOperation {
    const valid = isObject(params) ? validOf(params) : undefined;
    const name = isObject(params) && typeof params.operationName === 'string' ? params.operationName : undefined;
    const operation = valid && getOperationAST(valid.document, name);
    const recorded =
      valid && operation
        ? { name: [...new Set(rootFieldsOf(valid.document, operation))].join(', '), notes: valid }
        : {};
    const sent = isPart || valid ? (textOf(params) ?? '') : '';
    const bytes = isPart ? Buffer.byteLength(sent) : undefined;
    if (!isObject(params) || !valid || !operation || !hasGoodVariables(this.#schema, operation, params)) {
      return { ...recorded, request: { text: null, bytes }, response: { maskedNames: MESSAGES } };
    }
    const { text: query, variables, aliases } = this.#maskedOf(valid.document, secrets);
    const text =
      textOf(params, function mask(this: unknown, name: string, value: unknown) {
        if (this === params && name === 'query') return query;
        if (this === params.variables && variables.has(name)) return masked(value);
        if (secrets.kindOf(name) === 'any' || isHidden(this, name, secrets)) return masked(value);
        if (typeof value !== 'string') return value;
        return secrets.isSecretKey(name) ? MASK : maskValues(maskEmbedded(value, secrets));
      }) ?? JSON.stringify({ query });
    return {
      ...recorded,
      request: { text, bytes },
      response: { maskedNames: text === sent ? aliases : aliases.union(MESSAGES) },
    };
  }

  #maskedOf(document: DocumentNode, secrets: SecretNames): MaskedDocument {
    const last = this.#masked.get(document);
    if (last?.secrets === secrets) return last;
    const masked = { ...maskDocument(document, { secrets, declared: this.#declared }), secrets };
    this.#masked.set(document, masked);
    return masked;
  }
}

/** Masks a value under the name of a secret; booleans and null hold none. */
function masked(value: unknown): unknown {
  return typeof value === 'boolean' || value === null ? value : MASK;
}

/** Returns the JSON of parameters; undefined if they are nested too deeply to be written. */
function textOf(params: unknown, replacer?: (this: unknown, name: string, value: unknown) => unknown) {
  try {
    return JSON.stringify(params, replacer);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function withResponse(operation: AuditedOperation, lines: string, secrets: SecretNames): AuditedOperation {
  const form = {
    maxBytes: MAX_BODY_BYTES,
    truncated: true,
    wellFormed: true,
    names: operation.response.maskedNames,
    secrets,
  };
  const text = maskBody('application/x-ndjson', lines, form);
  return { ...operation, response: { text, bytes: Buffer.byteLength(lines) } };
}

/** Returns the query of a GET, written again from the masked JSON of its operation. */
function queryOf(shown: string | null | undefined): string {
  const params = parseJson(shown ?? 'null');
  if (!isObject(params)) return MASK;
  const texts = Object.entries(params).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  // Yoga takes empty objects for parameters that were not sent.
  return new URLSearchParams(texts.filter(([, value]) => value !== '{}')).toString();
}

/** Checks the variables of a valid operation. If they are invalid, any of them may be a misplaced secret. */
function hasGoodVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  { variables }: Readonly<Record<string, unknown>>,
) {
  if (!(variables === undefined || variables === null || isObject(variables))) return false;
  return areVariablesGood(schema, operation, variables ?? {});
}

function showNothing(): AuditedOperation[] {
  return [{ request: { text: null }, response: {} }];
}
