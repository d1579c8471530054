import fc from 'fast-check';
import { anySecret, plainSecret, SHOWN, secretName } from './secret-traces.ts';

/** A request as it goes over the wire, and where its client leaves: a share of it, or undefined. */
export interface Telling {
  text: string;
  leavesAt: number | undefined;
}

/** What requests need to get far. */
export interface Keys {
  /** Values of `Authorization` headers. */
  bearer: string;
  basic: string;
  agent: string;
}

type Fields = [name: string, value: string][];

const JSON_FIELD: Fields[number] = ['Content-Type', 'application/json'];
const FORM_FIELD: Fields[number] = ['Content-Type', 'application/x-www-form-urlencoded'];
const OAUTH = ['/v2/oauth/token', '/v2/oauth/revoke', '/v2/oauth/introspect'];
const RULES = '/v1/wallets/00000000-0000-4000-8000-000000000000/rules';
const WRITES = [RULES, '/v2/users/migrate/with-wallet', '/v2/users/migrate/with-wallet/bulk', '/v2/webhooks/custodial'];
const BOUNDARY = 'a-boundary';

interface Plan {
  method?: string;
  host?: string;
  target: string;
  fields: Fields;
  body?: string;
}

/** Requests of all kinds that carry secrets where secrets belong. */
export function tellings(keys: Keys): fc.Arbitrary<Telling> {
  const plans = fc.oneof(
    inHeaders(keys),
    inAddress(keys),
    inJson(keys),
    inMcp(keys),
    inForm,
    inMultipart(keys),
    inBadHead,
  );
  const leaving = fc.option(fc.double({ min: 0.5, max: 0.99, noNaN: true }), { nil: undefined, freq: 4 });
  return fc.tuple(plans, leaving).map(([plan, leavesAt]) => {
    const { method = 'POST', host = 'portcullis', target, fields, body = '' } = plan;
    const length = Buffer.byteLength(body);
    const all: Fields = [['Host', host], ['Connection', 'close'], ...fields];
    if (length > 0) all.push(['Content-Length', `${length}`]);
    const head = `${method} ${target} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
    return { text: head + body, leavesAt: length > 0 ? leavesAt : undefined };
  });
}

const credentials = fc
  .tuple(plainSecret, fc.constantFrom('Bearer', 'Basic', 'basic', 'Token', ''))
  .map(([secret, scheme]) => {
    const value = /basic/i.test(scheme) ? Buffer.from(`somebody:${secret}`).toString('base64') : secret;
    return `${scheme} ${value}`.trim();
  });

/** Where a header is a secret by its name, and where an address in it has one. */
const secretField: fc.Arbitrary<Fields[number]> = fc.oneof(
  fc.tuple(fc.constantFrom('Authorization', 'Proxy-Authorization', 'AUTHORIZATION'), credentials),
  plainSecret.map((secret): Fields[number] => ['Cookie', `session=${secret}; other=${secret}`]),
  fc.tuple(fc.constantFrom('X-Api-Token', 'X-Access-Token', 'Client-Secret', 'X-Password'), plainSecret),
  fc
    .tuple(fc.constantFrom('Referer', 'X-Forwarded-Uri', 'X-Original-Url'), secretName, plainSecret)
    .map(([name, key, secret]): Fields[number] => [
      name,
      `https://app.example/cb?a=1&${encodeURIComponent(key)}=${secret}`,
    ]),
);

function inHeaders({ bearer }: Keys): fc.Arbitrary<Plan> {
  const target = fc.constantFrom('/v1/accounts', '/health', '/nowhere', '/graphql', '/v1//accounts', '/v2/mcp');
  const method = fc.constantFrom('GET', 'POST', 'OPTIONS', 'TRACE');
  const fields = fc.array(secretField, { minLength: 1, maxLength: 3 });
  return fc.record({ method, target, fields }).map((plan) => ({
    ...plan,
    fields: plan.fields.some(([name]) => /^auth/i.test(name))
      ? plan.fields
      : [['Authorization', bearer], ...plan.fields],
  }));
}

/** A pair of a query or a form. */
const pair = fc
  .tuple(secretName, anySecret, fc.constantFrom('$', 'user[$]', 'a.$', '$[]'))
  .map(([name, secret, place]) => {
    const spelled = encodeURIComponent(place.replace('$', name));
    return `${spelled}=${encodeURIComponent(secret.toWellFormed())}`;
  });
const pairs = fc
  .array(fc.oneof(pair, fc.constant(`limit=${SHOWN}`)), { minLength: 1, maxLength: 4 })
  .map((all) => all.join('&'));
const documentPair = fc
  .tuple(secretName, anySecret)
  .map(([name, secret]) => `filter=${encodeURIComponent(JSON.stringify({ a: { [name]: secret } }))}`);

function inAddress({ bearer }: Keys): fc.Arbitrary<Plan> {
  const path = fc.constantFrom('/v1/accounts', '/nowhere', '/swagger/', '/health', '/v1/../x', '/graphql', '/graphql/');
  return fc.tuple(path, fc.oneof(pairs, documentPair), fc.boolean()).map(([target, query, isKnown]) => ({
    method: 'GET',
    target: `${target}?${query}`,
    fields: isKnown ? [['Authorization', bearer] as Fields[number]] : [],
  }));
}

/** A document with secrets at any depth, in lists and in documents within strings. */
const { document } = fc.letrec<{ document: Record<string, unknown> }>((tie) => ({
  document: fc
    .tuple(
      fc.array(
        fc.tuple(
          secretName,
          fc.oneof(
            anySecret,
            anySecret.map((secret) => [{ a: secret }]),
          ),
        ),
        { maxLength: 2 },
      ),
      fc.option(tie('document'), { nil: undefined, depthSize: 'small' }),
      fc.option(
        tie('document').map((inner) => JSON.stringify(inner)),
        { nil: undefined, depthSize: 'small' },
      ),
    )
    .map(([secrets, inner, text]) => ({ name: SHOWN, ...Object.fromEntries(secrets), inner, text })),
}));

const broken = fc.constantFrom<(json: string) => string>(
  (json) => json,
  (json) => json.slice(0, json.length / 2),
  (json) => `${json}}`,
  (json) => `[${json},`,
  (json) => json.replace(/[a-z]/i, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`),
  (json) => json.replaceAll('Z', '\\u005a'),
);

function inJson({ bearer, basic }: Keys): fc.Arbitrary<Plan> {
  const type = fc.constantFrom(
    'application/json',
    'application/json',
    'application/json',
    'text/plain',
    FORM_FIELD[1],
    '',
  );
  return fc
    .tuple(fc.constantFrom(...WRITES, ...OAUTH, '/nowhere'), document, broken, type)
    .map(([target, members, change, contentType]) => {
      const fields: Fields = [['Authorization', target.includes('webhooks') ? basic : bearer]];
      if (contentType !== '') fields.push(['Content-Type', contentType]);
      return { target, fields, body: change(JSON.stringify(members)) };
    });
}

/** Messages of agents, let in and not, whose arguments and params have secrets that are no tool's. */
function inMcp({ agent }: Keys): fc.Arbitrary<Plan> {
  const message = fc.oneof(
    fc.tuple(document, fc.constantFrom('get_access', 'list_users', 'migrate_user', 'create_wallet_rule', 'no_tool')),
    fc.tuple(document, fc.constantFrom('initialize', 'tools/list', 'ping', 'nobody')),
  );
  const bearer = fc.oneof(fc.constant(agent), credentials);
  return fc.tuple(message, broken, bearer).map(([[members, name], change, authorization]) => {
    const isTool = /_/.test(name);
    const params = isTool ? { name, arguments: { search: JSON.stringify(members), ...members } } : members;
    const body = change(JSON.stringify({ jsonrpc: '2.0', id: 1, method: isTool ? 'tools/call' : name, params }));
    return { target: '/v2/mcp', host: 'localhost', fields: [JSON_FIELD, ['Authorization', authorization]], body };
  });
}

const inForm: fc.Arbitrary<Plan> = fc
  .tuple(fc.constantFrom(...OAUTH, RULES), pairs, fc.option(credentials, { nil: undefined }), fc.boolean())
  .map(([target, body, authorization, isGrant]) => ({
    target,
    fields: [FORM_FIELD, ...(authorization === undefined ? [] : [['Authorization', authorization] as Fields[number]])],
    body: `${isGrant ? 'grant_type=password&username=ada&' : ''}${body}`,
  }));

function inMultipart({ bearer }: Keys): fc.Arbitrary<Plan> {
  return fc
    .tuple(fc.constantFrom('/graphql', RULES, '/nowhere'), secretName, anySecret)
    .map(([target, name, secret]) => {
      const query =
        'mutation ($id: ID!, $password: String!) { setSupervisorPassword(id: $id, password: $password) { __typename } }';
      const operations = JSON.stringify({ query, variables: { id: null, password: secret } });
      const parts = [
        ['name="operations"', operations],
        ['name="map"', '{"0":["variables.id"]}'],
        [`name="${name}"`, secret],
        ['name="0"; filename="users.csv"\r\nContent-Type: text/csv', `wallet_address,password\n0x1,${secret}\n`],
      ];
      const body = parts.map(
        ([head, value]) => `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`,
      );
      const fields: Fields = [
        ['Authorization', bearer],
        ['Content-Type', `multipart/form-data; boundary=${BOUNDARY}`],
      ];
      return { target, fields, body: `${body.join('')}--${BOUNDARY}--\r\n` };
    });
}

/** What is no HTTP. */
const inBadHead: fc.Arbitrary<Plan> = fc
  .tuple(plainSecret, fc.constantFrom<Fields[number]>(['Bad Name', 'x'], ['Content-Length', 'x'], ['X', 'a\u0001b']))
  .map(([secret, fault]) => ({
    method: 'GET',
    target: `/v1/accounts?token=${secret}`,
    fields: [['Authorization', `Bearer ${secret}`], ['Cookie', secret], fault],
  }));

/** Operations with secrets in literals, variables and defaults, under aliases, alone, in a batch, invalid and broken. */
export function operations({ bearer }: Keys): fc.Arbitrary<Telling> {
  const one = fc.tuple(anySecret, fc.constantFrom(...OPERATIONS)).map(([secret, make]) => make(secret));
  return fc
    .tuple(fc.array(one, { minLength: 1, maxLength: 3 }), broken, fc.constantFrom('one', 'batch', 'address'))
    .map(([all, change, how]): Telling => {
      const [first] = all;
      const body = how === 'address' ? '' : change(JSON.stringify(how === 'one' ? first : all));
      const query = new URLSearchParams({
        query: first?.query ?? '',
        variables: JSON.stringify(first?.variables ?? {}),
      });
      const fields: Fields = [['Host', 'a'], ['Connection', 'close'], ['Authorization', bearer], JSON_FIELD];
      fields.push(['Content-Length', `${Buffer.byteLength(body)}`]);
      const start = how === 'address' ? `GET /graphql?${query}` : 'POST /graphql';
      const head = `${start} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
      return { text: head + body, leavesAt: undefined };
    });
}

interface Operation {
  query: string;
  variables?: Record<string, unknown>;
}

const NOBODY = '00000000-0000-4000-8000-000000000000';

const OPERATIONS: readonly ((secret: string) => Operation)[] = [
  (secret) => ({
    query: `mutation { ${SHOWN}: setSupervisorPassword(id: "${NOBODY}", password: ${JSON.stringify(secret)}) { __typename } }`,
  }),
  (password) => ({
    query: `mutation ($id: ID!, $p: String!) { x: setSupervisorPassword(id: $id, password: $p) { __typename } }`,
    variables: { id: NOBODY, p: password, token: password },
  }),
  (secret) => ({
    query: `mutation ($p: String! = ${JSON.stringify(secret)}) { setSupervisorPassword(id: "${NOBODY}", password: $p) { __typename } }`,
  }),
  (password) => ({
    query: 'mutation ($input: SupervisorInput!) { name: createSupervisor(input: $input) { __typename } }',
    variables: { input: { username: SHOWN, password, role: 'no role' } },
  }),
  // Invalid: an unknown field, a wrong type, an unknown variable.
  (secret) => ({ query: `mutation { setPassword(pasword: ${JSON.stringify(secret)}) { __typename } }` }),
  (password) => ({
    query: 'mutation ($input: SupervisorInput!) { createSupervisor(input: $input) { __typename } }',
    variables: { input: { username: [SHOWN], password: [password], role: 1 } },
  }),
  (secret) => ({ query: '{ me { subject } }', variables: { password: secret } }),
];
