import DataLoader from 'dataloader';
import { type FieldNode, GraphQLError, type GraphQLResolveInfo } from 'graphql';
import type { z } from 'zod';
import { type Administrator, administratorOf } from '../../../access/administration/administration.ts';
import type { Caller, Principal } from '../../../access/identity/callers.ts';
import { isUuid } from '../../../lib/input.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, type Page, type PageKey, type PageRequest } from '../../../lib/keyset.ts';
import { camelName } from '../../../lib/spelling.ts';
import { type KeysetList, type NestedList, NO_ROWS, type PagedList } from '../../../platform/database/keyset-list.ts';
import { type DuplicateReason, Refusal, type RefusalCode } from '../../../platform/errors.ts';
import type { FeatureServices } from '../../shared/services.ts';

/** An invalid member of an input. The path starts at the root of the input, in camelCase. */
export interface InputIssue {
  path: string[];
  message: string;
}

/** The union member of mutations for an invalid input. */
export class ValidationError extends Error {
  override name = 'ValidationError';
  readonly issues: InputIssue[];

  constructor(issues: InputIssue[]) {
    super('the input is not valid');
    this.issues = issues;
  }
}

/** The union member of mutations for an id that the caller's tenant does not have. */
export class NotFoundError extends Error {
  override name = 'NotFoundError';

  constructor() {
    super('not found');
  }
}

/** The union member of mutations for a token that lacks a permission or may not be used for this particular change. */
export class ForbiddenError extends Error {
  override name = 'ForbiddenError';
  readonly permission: string;

  constructor(permission: string, message = `the permission ${permission} is missing`) {
    super(message);
    this.permission = permission;
  }
}

/** The union member of mutations for an identifier that is taken. */
export class DuplicateError extends Error {
  override name = 'DuplicateError';
  readonly reason: DuplicateReason;

  constructor(reason: DuplicateReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The union member of mutations for a state that does not allow the change. */
export class PreconditionError extends Error {
  override name = 'PreconditionError';
}

/** Returns the error `FORBIDDEN` of queries and subscriptions, which names the missing permission. */
export function forbiddenError(permission: string): GraphQLError {
  const { message } = new ForbiddenError(permission);
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN', permission } });
}

/** Returns the error `BAD_USER_INPUT` of queries and subscriptions, which lists the invalid arguments. */
export function badInputError(issues: InputIssue[]): GraphQLError {
  const message = issues.map(({ path, message: text }) => `${path.join('.')}: ${text}`).join('; ');
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', issues } });
}

/**
 * Returns the issues of a failed parse of all arguments. Paths into the argument `input` start at the root of that
 * input.
 */
export function inputIssues(error: z.ZodError): InputIssue[] {
  return error.issues.map(({ path, message }) => {
    const parts = path.map(String);
    return { path: parts[0] === 'input' ? parts.slice(1) : parts, message };
  });
}

/**
 * Returns the options that make the result of a mutation a union of it and its errors: `ValidationError`,
 * `NotFoundError`, `ForbiddenError` and these.
 */
export function errorsOf(description: string, ...types: (typeof DuplicateError | typeof PreconditionError)[]) {
  return { types, union: { description } };
}

/**
 * Awaits the result of a service. `context` is given for a mutation that takes an idempotency key.
 * @throws the union member that stands for its Refusal; other errors as they are.
 */
export async function orMember<Result>(
  work: Promise<Result>,
  context?: { caller: { isRefused: boolean } | undefined },
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const member = error instanceof Refusal ? MEMBERS[error.code]?.(error) : undefined;
    if (member && context?.caller) context.caller.isRefused = true;
    throw member ?? error;
  }
}

/** The union members for refusals by the domain; a refusal of the request as a whole has none. */
const MEMBERS: Partial<Record<RefusalCode, (refusal: Refusal) => Error>> = {
  not_found: () => new NotFoundError(),
  forbidden: ({ details, message }) => new ForbiddenError(details.permission ?? '', message),
  duplicate: ({ details, message }) => new DuplicateError(details.taken ?? 'duplicate_id', message),
  precondition_failed: ({ message }) => new PreconditionError(message),
  invalid_input: ({ details, message }) =>
    new ValidationError(details.issues?.map(({ path }) => ({ path: [camelName(path)], message })) ?? []),
};

/** The caller of an operation, on which only that operation's own result may depend. */
interface OperationCaller extends Principal, Caller {
  /** The `Last-Event-ID` of an SSE client that reconnects; it takes precedence over the operation's `after`. */
  lastEventId: string | undefined;
  /** Whether the operation is a mutation with an idempotency key. */
  hasIdempotencyKey: boolean;
  /** Whether the domain has refused a mutation of the operation. */
  isRefused: boolean;
}

/**
 * The part of a principal that the result of an event may depend on. The context of an event contains only this part.
 */
export type SharedPrincipal = Pick<Principal, 'nodeId' | 'tokenClass' | 'tokenUse' | 'permissions'>;

/**
 * The context of the fields of one operation. Each event of a subscription has a fresh one, because its result goes to
 * every subscriber with the same `principal`.
 */
export interface GraphqlContext {
  principal: SharedPrincipal;
  /** Undefined in the context of an event. */
  caller: OperationCaller | undefined;
  services: FeatureServices;
  /**
   * What fields share, such as loaders, by what creates it. Not in a weak map by context: V8's young collections take
   * its values for live.
   */
  perOperation: Map<object, unknown>;
}

/** Returns a context with only these members, in which fields have shared nothing yet. */
export function freshContext({ principal, caller, services }: Omit<GraphqlContext, 'perOperation'>): GraphqlContext {
  return { principal, caller, services, perOperation: new Map() };
}

/**
 * Returns the caller of the operation.
 * @throws Error in the context of an event, whose result goes to many subscribers.
 */
export function callerOf({ caller }: Pick<GraphqlContext, 'caller'>): OperationCaller {
  if (!caller) throw new Error('the result of an event is shared by subscribers: it has no caller');
  return caller;
}

/**
 * Returns the tenant of the caller and the administrator that the caller acts as.
 * @throws Error in the context of an event.
 */
export function tenantAndAdministrator(context: GraphqlContext): [nodeId: string, by: Administrator] {
  const caller = callerOf(context);
  return [caller.nodeId, administratorOf(caller)];
}

/** Reads the values of keys, in their order; an Error stands for a key whose value cannot be read. */
type Load<Value, Args extends unknown[] = []> = (
  keys: readonly string[],
  context: GraphqlContext,
  ...args: Args
) => Promise<readonly (Value | Error)[]>;

/** Returns a function that creates one value per operation, on its first call for it. */
function perOperation<Value>(create: (context: GraphqlContext) => Value): (context: GraphqlContext) => Value {
  return (context) => context.perOperation.getOrInsertComputed(create, () => create(context)) as Value;
}

/** Creates a DataLoader for each operation. With `cache: false` a key that is loaded again is read again. */
export function loaderPerOperation<Value>(load: Load<Value>, options: { cache?: boolean } = {}) {
  return perOperation((context) => new DataLoader<string, Value>((keys) => load(keys, context), options));
}

/**
 * Creates a DataLoader for each operation of a list's rows by their ids. `absentOf` returns what stands for the row of an id
 * that the tenant does not have.
 */
export const loaderOfRows = <Row extends { id: string }, Absent = never>(
  listOf: (services: FeatureServices) => Pick<KeysetList<Row, never>, 'byIds'>,
  absentOf: (id: string) => Absent | Error,
) =>
  loaderPerOperation<Row | Absent>(async (ids, { services, principal }) => {
    const byId = new Map((await listOf(services).byIds(principal.nodeId, ids)).map((row) => [row.id, row]));
    return ids.map((id) => byId.get(id) ?? absentOf(id));
  });

/**
 * Creates a DataLoader for each field of an operation: all objects that have the field at the same place in the
 * document, and thus with the same arguments, are read together.
 */
export function loaderPerField<Args, Value>(load: Load<Value, [Args]>) {
  const loadersOf = perOperation(() => new Map<FieldNode | undefined, DataLoader<string, Value>>());
  return (args: Args, context: GraphqlContext, { fieldNodes: [field] }: GraphQLResolveInfo) => {
    const create = () => new DataLoader<string, Value>((keys) => load(keys, context, args), { cache: false });
    return loadersOf(context).getOrInsertComputed(field, create);
  };
}

/** The arguments that every connection has. */
interface ConnectionArgs {
  first?: number | null | undefined;
  last?: number | null | undefined;
  after?: string | null | undefined;
  before?: string | null | undefined;
}

/**
 * Returns the page that a connection's arguments request.
 * @throws GraphQLError BAD_USER_INPUT for `first` with `last`, a size out of range, or a cursor that is not of this
 * list.
 */
function pageRequest(args: ConnectionArgs, { services, principal }: GraphqlContext, connection: string): PageRequest {
  const { first = null, last = null } = args;
  const backward = last !== null;
  if (backward && first !== null) throw badInputError([{ path: ['first'], message: 'must not be combined with last' }]);
  const size = last ?? first ?? DEFAULT_PAGE_SIZE;
  if (size < 0 || size > MAX_PAGE_SIZE) {
    throw badInputError([{ path: [backward ? 'last' : 'first'], message: `must be 0 to ${MAX_PAGE_SIZE}` }]);
  }
  const scope = { connection, nodeId: principal.nodeId };
  function keyOf(name: 'after' | 'before'): PageKey | undefined {
    const cursor = args[name] ?? undefined;
    const key = cursor === undefined ? undefined : services.cursors.decode(scope, cursor);
    if (cursor !== undefined && !key) throw badInputError([{ path: [name], message: 'is not a cursor of this list' }]);
    return key;
  }
  return { size, backward, after: keyOf('after'), before: keyOf('before') };
}

/** The members of an object, without the null that GraphQL allows for an absent member. */
type WithoutNulls<Given> = { [Name in keyof Given]: Exclude<Given[Name], null> };

/** Returns the members that were given; a null member counts as absent, and so does a null object. */
export function withoutNulls<Given extends object>(input: Given | null | undefined): Partial<WithoutNulls<Given>> {
  const members = Object.entries(input ?? {}).filter(([, member]) => member !== null);
  return Object.fromEntries(members) as Partial<WithoutNulls<Given>>;
}

interface FilteredArgs<Filter> extends ConnectionArgs {
  filter?: { [Name in keyof Filter]?: Filter[Name] | null } | null | undefined;
}

/**
 * Returns the resolver of a connection. `name` identifies the list in its cursors. `filterOf` returns the filter of the
 * list; by default that is the argument `filter`, if there is one.
 */
export function connectionResolver<Filter, Row, Args extends ConnectionArgs = FilteredArgs<Filter>>(
  name: string,
  listOf: (services: FeatureServices) => PagedList<Row, Filter>,
  filterOf: (args: Args, info: GraphQLResolveInfo, context: GraphqlContext) => Filter | Promise<Filter> = ({
    filter,
  }: FilteredArgs<Filter>) => withoutNulls<object>(filter) as Filter,
) {
  return async (_root: unknown, args: Args, context: GraphqlContext, info: GraphQLResolveInfo) => {
    const { services, principal } = context;
    const request = pageRequest(args, context, name);
    const filter = await filterOf(args, info, context);
    const list = listOf(services);
    const page = await list.page(principal.nodeId, filter, request);
    return new Connection({
      ...{ name, page, request, context, keyOf: list.keyOf },
      totalCount: () => list.count(principal.nodeId, filter),
    });
  };
}

/**
 * Returns the resolver of a connection that belongs to an object, such as the wallets of an account. The pages of all
 * objects at the same place in an operation are read together, and so are all totals of the operation.
 */
export function ownedConnectionResolver<Row>(name: string, listsOf: (services: FeatureServices) => NestedList<Row>) {
  const totals = loaderPerOperation<number>(async (ownerIds, { services, principal }) => {
    const counted = await listsOf(services).counts(principal.nodeId, ownerIds);
    return ownerIds.map((ownerId) => counted.get(ownerId) ?? 0);
  });
  const connections = loaderPerField(async (ownerIds, context, args: ConnectionArgs) => {
    const { services, principal } = context;
    const request = pageRequest(args, context, name);
    const lists = listsOf(services);
    const read = await lists.pages(principal.nodeId, ownerIds, request);
    return ownerIds.map((ownerId) => {
      return new Connection({
        name,
        page: read.get(ownerId) ?? NO_ROWS,
        request,
        context,
        keyOf: lists.keyOf,
        totalCount: () => totals(context).load(ownerId),
      });
    });
  });
  return ({ id }: { id: string }, args: ConnectionArgs, context: GraphqlContext, info: GraphQLResolveInfo) =>
    connections(args, context, info).load(id);
}

interface ConnectionOptions<Row> {
  /** Identifies the list in its cursors. */
  name: string;
  page: Page<Row>;
  request: PageRequest;
  context: GraphqlContext;
  keyOf: (row: Row) => PageKey;
  totalCount: () => Promise<number>;
}

// These are classes because a result has hundreds of them, and getters on object literals take several times the
// memory.

/** A page as a connection: cursors are signed, and rows counted, only when they are requested. */
class Connection<Row> {
  readonly edges: readonly Edge<Row>[];
  readonly #options: ConnectionOptions<Row>;
  #total: Promise<number> | undefined;

  constructor(options: ConnectionOptions<Row>) {
    this.#options = options;
    this.edges = options.page.rows.map((row) => new Edge(row, options));
  }

  /** Counts the rows over all pages, once for all fields that show the number. */
  totalCount(): Promise<number> {
    this.#total ??= this.#options.totalCount();
    return this.#total;
  }

  get pageInfo() {
    return this;
  }

  get hasNextPage(): boolean {
    const { page, request } = this.#options;
    return request.backward ? request.before !== undefined : page.hasMore;
  }

  get hasPreviousPage(): boolean {
    const { page, request } = this.#options;
    return request.backward ? page.hasMore : request.after !== undefined;
  }

  get startCursor(): string | null {
    return this.edges[0]?.cursor ?? null;
  }

  get endCursor(): string | null {
    return this.edges.at(-1)?.cursor ?? null;
  }
}

class Edge<Row> {
  readonly node: Row;
  readonly #options: ConnectionOptions<Row>;

  constructor(row: Row, options: ConnectionOptions<Row>) {
    this.node = row;
    this.#options = options;
  }

  get cursor(): string {
    const { name, context, keyOf } = this.#options;
    return context.services.cursors.encode({ connection: name, nodeId: context.principal.nodeId }, keyOf(this.node));
  }
}

/**
 * Returns the resolver of one row by its UUID; it gives null for an id that is malformed, unknown or of another tenant.
 */
export function rowResolver<Row>(
  find: (services: FeatureServices, nodeId: string, id: string) => Promise<Row | undefined>,
) {
  return async (_root: unknown, { id }: { id: string }, { services, principal }: GraphqlContext) =>
    isUuid(id) ? ((await find(services, principal.nodeId, id.toLowerCase())) ?? null) : null;
}

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
  readOnce(): AsyncIterable<Uint8Array> {
    if (this.#isTaken) throw new ValidationError([{ path: ['file'], message: 'was already read by another field' }]);
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
