import { randomInt, randomUUID } from 'node:crypto';
import type { Call, Caller, Json } from './caller.ts';
import {
  ACCOUNTS,
  errorsOf,
  isPriced,
  limitRule,
  type Notified,
  newUser,
  notification,
  REGISTER,
  STATUSES,
  TRANSACTIONS,
  wrongCalls,
} from './messages.ts';
import type { World } from './world.ts';

/** One kind of traffic, and how often it comes beside the others. */
export interface Kind {
  name: string;
  weight: number;
  ask(): Promise<void>;
}

const PAGES = 3;
const BULK_USERS = 20;
const RULES = 20;
const REPEAT_EVERY = 10;

/** What is asked of an instance: its state is what answers gave, as a client's would be. */
export class Traffic {
  /** Notifications that were accepted and say something new: so many changes the log is to have. */
  changes = 0;
  /** Users and rules that were acknowledged as made. */
  readonly made = { users: 0, rules: 0 };
  token = '';
  readonly #caller: Caller;
  readonly #world: World;
  readonly #waiting: Notified[] = [];
  readonly #rules: string[] = [];
  #refreshToken: string | undefined;

  constructor(caller: Caller, world: World) {
    this.#caller = caller;
    this.#world = world;
  }

  /** All kinds but those of subscribers. */
  kinds(): Kind[] {
    const kind = (name: string, weight: number, ask: (kind: string) => Promise<unknown>): Kind => ({
      name,
      weight,
      ask: async () => void (await ask(name)),
    });
    return [
      kind('accounts', 20, (name) => this.#accounts(name)),
      kind('webhook', 24, (name) => this.#notify(name)),
      kind('graphql register', 8, (name) => this.#register(name)),
      kind('graphql accounts', 8, (name) => this.#graphql(name, ACCOUNTS)),
      kind('graphql transactions', 6, (name) => this.#graphql(name, TRANSACTIONS)),
      kind('token client', 4, (name) => this.clientToken(name)),
      kind('token refresh', 3, (name) => this.#refresh(name)),
      kind('token password', 1, (name) => this.#login(name)),
      kind('rule create', 1, (name) => this.#createRule(name)),
      kind('rule replace', 3, (name) => this.#replaceRule(name)),
      kind('migrate', 4, (name) => this.#migrate(name)),
      kind('migrate bulk', 1, (name) => this.#bulk(name)),
      kind('gas fee', 4, (name) => this.#gasFees(name)),
      kind('mcp', 3, (name) => this.#agent(name)),
      kind('health', 4, (name) => this.#call({ kind: name, method: 'GET', path: '/health', expected: 200 })),
      kind('wrong credentials', 3, (name) => this.#wrong(name)),
    ];
  }

  async #agent(kind: string): Promise<void> {
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'list_accounts', arguments: { limit: 5 } },
    };
    await this.#call({
      kind,
      method: 'POST',
      path: '/v2/mcp',
      token: this.#world.demo.client.client_secret,
      headers: { accept: 'application/json, text/event-stream' },
      json: call,
      expected: 200,
      faultOf: ({ result }) => (result?.structuredContent ? undefined : 'no structured content'),
    });
  }

  /** Another access token of the client, which the others use from then on. */
  async clientToken(kind: string): Promise<void> {
    const json = { grant_type: 'client_credentials', ...this.#world.demo.client };
    const answer = await this.#call({ kind, method: 'POST', path: '/v2/oauth/token', json, expected: 200 });
    if (answer) this.token = answer.json.access_token;
  }

  async #login(kind: string): Promise<void> {
    const { client, supervisor } = this.#world.demo;
    const json = { grant_type: 'password', ...client, ...supervisor };
    const answer = await this.#call({ kind, method: 'POST', path: '/v2/oauth/token', json, expected: 200 });
    if (answer) this.#refreshToken = answer.json.refresh_token;
  }

  async #refresh(kind: string): Promise<void> {
    const refreshToken = this.#refreshToken;
    this.#refreshToken = undefined;
    if (refreshToken === undefined) return;
    const json = { grant_type: 'refresh_token', ...this.#world.demo.client, refresh_token: refreshToken };
    const answer = await this.#call({ kind, method: 'POST', path: '/v2/oauth/token', json, expected: 200 });
    if (answer) this.#refreshToken = answer.json.refresh_token;
  }

  #accounts(kind: string): Promise<unknown> {
    const path = `/v1/accounts?limit=10&page=${1 + randomInt(PAGES)}`;
    const headers = { 'x-target-server': 'accounts' };
    return this.#call({ kind, method: 'GET', path, token: this.token, headers, expected: 200 });
  }

  async #notify(kind: string): Promise<void> {
    const next = this.#waiting.shift();
    if (next === undefined) return this.#register('graphql register');
    const times = randomInt(REPEAT_EVERY) === 0 ? 2 : 1;
    for (let time = 0; time < times; time += 1) {
      const answer = await this.#call({
        kind,
        method: 'POST',
        path: '/v2/webhooks/custodial',
        headers: { authorization: this.#basic() },
        json: notification(next),
        expected: 200,
      });
      // What is sent again says nothing new.
      if (answer && time === 0) this.changes += 1;
    }
    next.step += 1;
    if (next.step < STATUSES.length) this.#waiting.push(next);
  }

  async #register(kind: string): Promise<void> {
    const id = randomUUID();
    const variables = { input: { id, collection: 'USER_TRANSACTIONS', type: 1 } };
    const isMade = (json: Json) =>
      json.data?.registerTransaction?.__typename === 'Transaction' ? undefined : 'not registered';
    if (await this.#graphql(kind, REGISTER, variables, isMade)) this.#waiting.push({ id, step: 0 });
  }

  #graphql(kind: string, query: string, variables?: object, faultOf: Call['faultOf'] = errorsOf) {
    const json = { query, variables };
    return this.#call({ kind, method: 'POST', path: '/graphql', token: this.token, json, expected: 200, faultOf });
  }

  #post(kind: string, path: string, json: object, expected: number) {
    return this.#call({ kind, method: 'POST', path, token: this.token, json, expected });
  }

  async #migrate(kind: string): Promise<void> {
    if (await this.#post(kind, '/v2/users/migrate/with-wallet', newUser(), 201)) this.made.users += 1;
  }

  async #bulk(kind: string): Promise<void> {
    const users = Array.from({ length: BULK_USERS }, newUser);
    const answer = await this.#post(kind, '/v2/users/migrate/with-wallet/bulk', { users }, 200);
    if (answer) this.made.users += Number(answer.json.success);
  }

  async #createRule(kind: string): Promise<void> {
    const { wallet_id: walletId } = this.#world.demo;
    const answer = await this.#call({
      ...this.#ruleCall(kind),
      method: 'POST',
      path: `/v1/wallets/${walletId}/rules`,
      expected: 201,
    });
    if (answer) this.made.rules += 1;
    const location = answer?.headers.location;
    if (typeof location === 'string' && this.#rules.length < RULES) this.#rules.push(location);
  }

  async #replaceRule(kind: string): Promise<void> {
    const path = this.#rules[randomInt(Math.max(1, this.#rules.length))];
    if (path === undefined) return this.#createRule('rule create');
    await this.#call({ ...this.#ruleCall(kind), method: 'PUT', path, expected: 200 });
  }

  #ruleCall(kind: string): Pick<Call, 'kind' | 'token' | 'headers' | 'json'> {
    const headers = { 'x-target-server': 'wallet-rules' };
    return { kind, token: this.token, headers, json: limitRule(this.#world.demo) };
  }

  #gasFees(kind: string): Promise<unknown> {
    const faultOf = ({ data }: Json) => (data.length === 2 && data.every(isPriced) ? undefined : 'a network is away');
    return this.#call({ kind, method: 'GET', path: '/v2/blockchain/gas-fee', expected: 200, faultOf });
  }

  /** Credentials that nobody has, each time others: the same ones again and again are throttled. */
  #wrong(kind: string): Promise<unknown> {
    const calls = wrongCalls(this.token);
    const [call] = calls.slice(randomInt(calls.length));
    return call === undefined ? Promise.resolve() : this.#call({ kind, ...call, expected: 401 });
  }

  #call(call: Call) {
    return this.#caller.call({ ...call, kind: call.kind.replaceAll(' ', '.') });
  }

  #basic(): string {
    const { username, password } = this.#world.demo.webhook;
    return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
}
