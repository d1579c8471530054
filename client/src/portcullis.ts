import { PortcullisError } from './errors.ts';
import type * as rest from './generated/rest.ts';
import {
  type CallOptions,
  errorIn,
  type HttpRequest,
  type HttpResponse,
  mayBeApplied,
  send,
  type Transport,
} from './http.ts';
import { writeJson } from './json.ts';
import { openStream, type SubscriptionOptions, subscribe } from './stream.ts';
import { keptToken, type TokenSource } from './tokens.ts';
import {
  TRANSACTION,
  type Transaction,
  type TransactionFilter,
  type TransactionUpdate,
  type TypedDocument,
  UPDATES,
} from './updates.ts';
import { abortable, PROMPT_MS } from './waiting.ts';
import { sign } from './webhooks.ts';

export interface PortcullisOptions extends Transport {
  /** The address of the gateway, such as `https://api.example.com`; it may have a path. */
  baseUrl: string;
  clientId?: string;
  clientSecret?: string;
  /** The permissions to request, separated by spaces; all of the client's by default. */
  scope?: string;
  /** Supplies access tokens in place of `clientId` and `clientSecret`, for example in a browser. */
  token?: TokenSource;
}

export interface WriteOptions extends CallOptions {
  /** Identifies the write over retries, also by another process; random by default. */
  idempotencyKey?: string;
}

/** A wallet rule in the gateway, with its version for `ifMatch`. */
export interface StoredRule {
  id: string;
  etag: string;
}

/** How a token is requested, which streams wait for: repeated for half a minute with short pauses. */
const PROMPT = { retries: 16, longestPauseMs: PROMPT_MS };

function basic(username: string, password: string): { authorization: string } {
  const bytes = new TextEncoder().encode(`${username}:${password}`);
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/** Returns an id as a segment of a path. */
function segment(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new TypeError(`${JSON.stringify(id)} is not an id`);
  return encodeURIComponent(id);
}

const wallet = (id: string) => `/v1/wallets/${segment(id)}`;

/** Returns the body of a GraphQL request: JSON, or a form if variables are files. */
function operation(query: string, variables: unknown): string | FormData {
  const entries = Object.entries<unknown>(Object(variables));
  const files = entries.filter((entry): entry is [string, Blob] => entry[1] instanceof Blob);
  const json = JSON.stringify({ query, variables }, (_key, value) => (value instanceof Blob ? null : value));
  if (files.length === 0) return json;
  const form = new FormData();
  form.set('operations', json);
  form.set('map', JSON.stringify(Object.fromEntries(files.map(([name], at) => [at, [`variables.${name}`]]))));
  for (const [at, [, file]] of files.entries()) form.set(String(at), file);
  return form;
}

/**
 * A client of one gateway. Methods throw PortcullisError or one of its classes: NoResponseError if the gateway cannot be
 * reached. When the signal aborts, they throw its reason, or NoResponseError if a write may have been applied.
 */
export class Portcullis {
  readonly #options: PortcullisOptions;
  readonly #baseUrl: string;
  readonly #token: TokenSource;
  #metadata: rest.ServerMetadata | undefined;

  constructor(options: PortcullisOptions) {
    const { baseUrl, clientId, scope, token } = options;
    if (!clientId === !token) throw new TypeError('Portcullis needs either clientId and clientSecret, or token');
    const { search, hash } = new URL(baseUrl);
    if (search + hash !== '') throw new TypeError('baseUrl must have neither a query nor a fragment');
    this.#options = options;
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    const form = { grant_type: 'client_credentials', ...(scope !== undefined && { scope }) };
    this.#token = token ?? keptToken(() => this.#clientCall<rest.TokenResponse>('token_endpoint', form));
  }

  /** Lists accounts, oldest first. Requests pages of `limit` accounts (1 to 100) as the caller reads. */
  async *listAccounts(
    options: CallOptions & { includeDeleted?: boolean; limit?: number } = {},
  ): AsyncGenerator<rest.AccountPage['data'][number], void> {
    const { includeDeleted = false, limit = 100, ...call } = options;
    for (let page = 1; ; page += 1) {
      const path = `/v1/accounts?page=${page}&limit=${limit}&include_deleted=${includeDeleted}`;
      const { data } = await this.#get<rest.AccountPage>(path, call);
      yield* data;
      if (data.length < limit) return;
    }
  }

  /** Creates a rule of a wallet. */
  async createWalletRule(walletId: string, rule: rest.WalletRule, options?: WriteOptions): Promise<StoredRule> {
    const { headers } = await this.#write(`${wallet(walletId)}/rules`, rule, options);
    return { id: headers.get('location')?.split('/').at(-1) ?? '', etag: headers.get('etag') ?? '' };
  }

  /**
   * Replaces a rule in full; with `ifMatch` only if its version is that one.
   * @throws PreconditionFailedError for another version.
   */
  async replaceWalletRule(
    walletId: string,
    id: string,
    rule: rest.WalletRule,
    { ifMatch, ...call }: CallOptions & { ifMatch?: string } = {},
  ): Promise<StoredRule> {
    // Repeating a conditional replacement would fail, because the first attempt may have changed the version.
    const condition = ifMatch === undefined ? { repeatable: true } : { headers: { 'if-match': ifMatch } };
    const request = { ...call, ...condition, body: writeJson(rule) };
    const { headers } = await this.#call('PUT', `${wallet(walletId)}/rules/${segment(id)}`, request);
    return { id, etag: headers.get('etag') ?? '' };
  }

  /** Assigns a network to a wallet; repeating it changes nothing. */
  async assignNetwork(walletId: string, networkId: string, call?: CallOptions): Promise<void> {
    const path = `${wallet(walletId)}/networks/${segment(networkId)}`;
    await this.#call('POST', path, { ...call, repeatable: true });
  }

  /**
   * Migrates a user.
   * @throws PortcullisError with the code `duplicate_email`, `duplicate_external_id`, `duplicate_wallet` or
   * `missing_email_and_external_id`.
   */
  async migrateUser(user: rest.MigrateUser, options?: WriteOptions): Promise<rest.MigratedUser> {
    return (await this.#write('/v2/users/migrate/with-wallet', user, options)).body as rest.MigratedUser;
  }

  /** Migrates 1 to 500 users. The results are in the order of the users. */
  async migrateUsers(users: readonly rest.MigrateUserRow[], options?: WriteOptions): Promise<rest.BulkResult> {
    return (await this.#write('/v2/users/migrate/with-wallet/bulk', { users }, options)).body as rest.BulkResult;
  }

  /** Returns a tokenized asset. */
  async getAsset(id: string, call?: CallOptions): Promise<rest.Asset> {
    return this.#get(`/v2/admin/tokens/${segment(id)}`, call);
  }

  /** Returns the gas fees of every network, in wei. */
  async getGasFees(call?: CallOptions): Promise<rest.GasFees['data']> {
    return (await this.#get<rest.GasFees>('/v2/blockchain/gas-fee', call)).data;
  }

  /** Returns the health of the gateway, also if it is down. */
  async getHealth(call?: CallOptions): Promise<rest.Health> {
    const once = { ...this.#options, retries: 0 };
    const response = await send(once, 'GET', `${this.#baseUrl}/health`, { ...call, expected: 503 });
    if (!Object(response.body).status) throw errorIn(response);
    return response.body as rest.Health;
  }

  /**
   * Posts a notification of a transaction, as the chain processor does, with the credentials of the webhook. With
   * `signingSecret` (`whsec_…`) each attempt is signed by Standard Webhooks.
   */
  async notifyTransaction(
    notification: rest.Notification,
    { username, password, signingSecret }: { username: string; password: string; signingSecret?: string | undefined },
    call?: CallOptions,
  ): Promise<void> {
    const body = writeJson(notification);
    const id = `msg_${crypto.randomUUID()}`;
    const signed = signingSecret === undefined ? {} : { signed: () => sign(body, signingSecret, id) };
    const request = { ...call, ...signed, headers: basic(username, password), body, repeatable: true };
    await send(this.#options, 'POST', `${this.#baseUrl}/v2/webhooks/custodial`, request);
  }

  /** Returns what the gateway knows about a token of this client (RFC 7662). */
  async introspectToken(token: string, call?: CallOptions): Promise<rest.Introspection> {
    return this.#clientCall('introspection_endpoint', { token }, call);
  }

  /** Revokes a token of this client (RFC 7009). */
  async revokeToken(token: string, call?: CallOptions): Promise<void> {
    await this.#clientCall('revocation_endpoint', { token }, call);
  }

  /**
   * Sends a request with a token, for paths without a method here.
   * @param path with the query, such as `/v1/discovers/assets?page=2`
   */
  async request(
    method: string,
    path: string,
    { json, ...call }: CallOptions & { json?: unknown } = {},
  ): Promise<HttpResponse> {
    if (!path.startsWith('/')) throw new TypeError('the path must begin with /');
    const body = json === undefined ? {} : { body: JSON.stringify(json) };
    return this.#call(method, path, { ...call, ...body });
  }

  /**
   * Runs a query or a mutation, and returns its data. Queries, and mutations with an idempotency key, are repeated after
   * failures. A file is a Blob among the variables.
   */
  async graphql<Result = Record<string, unknown>, Variables = Record<string, unknown>>(
    document: string | TypedDocument<Result, Variables>,
    variables?: Variables,
    { idempotencyKey, ...call }: WriteOptions = {},
  ): Promise<Result> {
    const query = String(document);
    const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    const isRead = !/\bmutation\b/.test(query);
    const repeatable = isRead || idempotencyKey !== undefined;
    const request = { ...call, headers, body: operation(query, variables), isRead, repeatable };
    const response = await this.#call('POST', '/graphql', request);
    const { data, errors } = Object(response.body) as { data?: Result; errors?: unknown };
    if (!errors && data) return data;
    const error = errorIn(response);
    throw Object.assign(error, { mayHaveBeenApplied: !isRead && mayBeApplied(error), idempotencyKey });
  }

  /** Yields the results of any subscription. `variables` is called for each connection, so that it can resume. */
  subscribe<Result = Record<string, unknown>, Variables = Record<string, unknown>>(
    document: string | TypedDocument<Result, Variables>,
    variables: () => Variables,
    options: SubscriptionOptions = {},
  ): AsyncGenerator<Result, void> {
    const query = String(document);
    // Variables that are no JSON are an error of the caller, not of a connection.
    JSON.stringify(variables());
    const open = (signal: AbortSignal) =>
      this.#authorized(signal, (authorization) => {
        const headers = { authorization, 'content-type': 'application/json', accept: 'text/event-stream' };
        const body = JSON.stringify({ query, variables: variables() });
        return openStream(this.#options, `${this.#baseUrl}/graphql`, { method: 'POST', headers, body, signal });
      });
    return subscribe(open, options);
  }

  /**
   * Yields each change of a transaction's status after the cursor `after`, without gaps or duplicates, for as long as
   * the caller reads. Store `cursor` with what you derive from an update, and pass it as `after` to resume: "0" begins
   * with the oldest stored. Without `after` it begins now, and updates before the first received one can be missed if
   * the connection breaks.
   * @throws CursorExpiredError if the updates after the cursor are no longer stored.
   */
  async *updates(
    options: SubscriptionOptions & { after?: string; filter?: TransactionFilter } = {},
  ): AsyncGenerator<TransactionUpdate, void> {
    const variables = { after: options.after, filter: options.filter };
    for await (const { transactionUpdates: update } of this.subscribe(UPDATES, () => variables, options)) {
      variables.after = update.cursor;
      yield update;
    }
  }

  /**
   * Resolves with the transaction when its status is DONE or ERROR.
   * @throws NotFoundError if no transaction has this id.
   */
  async waitFor(transactionId: string, options?: SubscriptionOptions): Promise<Transaction> {
    for await (const { transaction } of this.subscribe(TRANSACTION, () => ({ id: transactionId }), options)) {
      if (transaction.status === 'DONE' || transaction.status === 'ERROR') return transaction;
    }
    throw new Error('the subscription ended before the transaction was final');
  }

  async #get<Body>(path: string, call?: CallOptions): Promise<Body> {
    return (await this.#call('GET', path, call)).body as Body;
  }

  /** Sends a write that takes an idempotency key, which stays the same over retries. */
  #write(path: string, value: unknown, { idempotencyKey, ...call }: WriteOptions = {}): Promise<HttpResponse> {
    const headers = { 'idempotency-key': idempotencyKey ?? crypto.randomUUID() };
    return this.#call('POST', path, { ...call, headers, body: writeJson(value), repeatable: true });
  }

  /** Sends a request with a token. */
  #call(method: string, path: string, call: HttpRequest = {}): Promise<HttpResponse> {
    return this.#authorized(call.signal, (authorization) =>
      send(this.#options, method, this.#baseUrl + path, { ...call, headers: { authorization, ...call.headers } }),
    );
  }

  /** Does something with a token, and once more with another one after a 401. */
  async #authorized<T>(signal: AbortSignal | undefined, act: (authorization: string) => Promise<T>): Promise<T> {
    const token = await abortable(this.#token(), signal);
    return act(`Bearer ${token}`).catch(async (error: unknown) => {
      if (!(error instanceof PortcullisError) || error.status !== 401) throw error;
      const { mayHaveBeenApplied, idempotencyKey } = error;
      const again = abortable(this.#token(token), signal).then((other) => act(`Bearer ${other}`));
      // An attempt before the 401 may have been applied.
      return again.catch((reason: unknown) => {
        const isUncertain = mayHaveBeenApplied && reason instanceof PortcullisError;
        throw isUncertain ? Object.assign(reason, { mayHaveBeenApplied, idempotencyKey }) : reason;
      });
    });
  }

  /** Sends a form with the client's credentials to an endpoint of the authorization server. */
  async #clientCall<Body>(
    endpoint: 'token_endpoint' | 'introspection_endpoint' | 'revocation_endpoint',
    form: Record<string, string>,
    call?: CallOptions,
  ): Promise<Body> {
    const { clientId = '', clientSecret = '' } = this.#options;
    this.#metadata ??= await this.#discover(call);
    const { issuer, [endpoint]: address } = this.#metadata;
    // The gateway may be reached by another address than its public one. The secret goes to this address alone.
    if (!`${address}`.startsWith(`${issuer}/`)) throw new Error(`${issuer} has no ${endpoint} of its own`);
    const headers = basic(encodeURIComponent(clientId), encodeURIComponent(clientSecret));
    const isRead = endpoint !== 'revocation_endpoint';
    const request = { ...call, headers, body: new URLSearchParams(form), isRead, repeatable: true };
    const url = this.#baseUrl + address.slice(issuer.length);
    return (await send({ ...PROMPT, ...this.#options }, 'POST', url, request)).body as Body;
  }

  /** Returns the metadata of the authorization server (RFC 8414). */
  async #discover(call?: CallOptions): Promise<rest.ServerMetadata> {
    const { origin, pathname } = new URL(this.#baseUrl);
    const url = `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`;
    const response = await send({ ...PROMPT, ...this.#options }, 'GET', url, { ...call });
    const metadata = Object(response.body) as rest.ServerMetadata;
    if (!metadata.issuer) throw errorIn(response);
    return metadata;
  }
}
