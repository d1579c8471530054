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
  /** Bodies of good requests for a token. */
  grants: readonly object[];
}

type Field = readonly [name: string, value: string];

interface Plan {
  method?: string;
  target: string;
  fields: readonly Field[];
  body?: string;
}

const JSON_FIELD: Field = ['Content-Type', 'application/json'];
const FORM_FIELD: Field = ['Content-Type', 'application/x-www-form-urlencoded'];
const OAUTH = ['/v2/oauth/token', '/v2/oauth/revoke', '/v2/oauth/introspect'];
const RULES = '/v1/wallets/00000000-0000-4000-8000-000000000000/rules';
const WRITES = [RULES, '/v2/users/migrate/with-wallet', '/v2/users/migrate/with-wallet/bulk', '/v2/webhooks/custodial'];
const READS = [
  '/v1/accounts',
  '/nowhere',
  '/swagger/',
  '/health',
  '/v1/../x',
  '/v1//accounts',
  '/graphql',
  '/graphql/',
];

function written({ method = 'POST', target, fields, body = '' }: Plan): string {
  const length = Buffer.byteLength(body);
  const all: Field[] = [['Host', 'localhost'], ['Connection', 'close'], ...fields];
  if (length > 0) all.push(['Content-Length', `${length}`]);
  return `${method} ${target} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}

/** Requests of all kinds that carry secrets where secrets belong. */
export function tellings(keys: Keys): fc.Arbitrary<Telling> {
  const bodiless = fc.oneof(inHeaders(keys), inAddress(keys), inBadHead);
  const bodied = fc.oneof(inJson(keys), inMcp(keys), inForm, inMultipart(keys), changedGrant(keys));
  const leaving = fc.option(fc.double({ min: 0.5, max: 0.99, noNaN: true }), { nil: undefined, freq: 4 });
  return fc.oneof(
    { weight: 3, arbitrary: bodiless.map((plan) => ({ text: written(plan), leavesAt: undefined })) },
    { weight: 5, arbitrary: fc.record({ text: bodied.map(written), leavesAt: leaving }) },
  );
}

const credentials = fc
  .tuple(plainSecret, fc.constantFrom('Bearer', 'Basic', 'basic', 'Token', ''))
  .map(([secret, scheme]) => {
    const value = /basic/i.test(scheme) ? Buffer.from(`somebody:${secret}`).toString('base64') : secret;
    return `${scheme} ${value}`.trim();
  });

/** Where a header is a secret by its name, and where an address in it has one. */
const secretField: fc.Arbitrary<Field> = fc.oneof(
  fc.tuple(fc.constantFrom('Authorization', 'Proxy-Authorization', 'AUTHORIZATION'), credentials),
  fc.tuple(
    fc.constant('Cookie'),
    plainSecret.map((secret) => `session=${secret}; other=${secret}`),
  ),
  fc.tuple(fc.constantFrom('X-Api-Token', 'X-Access-Token', 'Client-Secret', 'X-Password'), plainSecret),
  fc.tuple(
    fc.constantFrom('Referer', 'X-Forwarded-Uri', 'X-Original-Url'),
    fc
      .tuple(secretName, plainSecret)
      .map(([key, value]) => `https://a.example/cb?a=1&${encodeURIComponent(key)}=${value}`),
  ),
);

function inHeaders({ bearer }: Keys): fc.Arbitrary<Plan> {
  const target = fc.constantFrom(...READS, '/v2/mcp');
  const method = fc.constantFrom('GET', 'POST', 'OPTIONS', 'TRACE');
  const fields = fc.array(secretField, { minLength: 1, maxLength: 3 }).map((all): Field[] => {
    return all.some(([name]) => /^auth/i.test(name)) ? all : [['Authorization', bearer], ...all];
  });
  return fc.record({ method, target, fields });
}

/** A pair of a query or a form. */
const pair = fc
  .tuple(secretName, anySecret, fc.constantFrom('$', 'user[$]', 'a.$', '$[]'))
  .map(([name, secret, place]) => {
    return `${encodeURIComponent(place.replace('$', name))}=${encodeURIComponent(secret.toWellFormed())}`;
  });
const pairs = fc
  .array(fc.oneof(pair, fc.constant(`limit=${SHOWN}`)), { minLength: 1, maxLength: 4 })
  .map((all) => all.join('&'));
const documentPair = fc
  .tuple(secretName, anySecret)
  .map(([name, secret]) => `filter=${encodeURIComponent(JSON.stringify({ a: { [name]: secret } }))}`);

function inAddress({ bearer }: Keys): fc.Arbitrary<Plan> {
  return fc.record({
    method: fc.constant('GET'),
    target: fc.tuple(fc.constantFrom(...READS), fc.oneof(pairs, documentPair)).map((both) => both.join('?')),
    fields: fc.constantFrom<Field[]>([], [['Authorization', bearer]]),
  });
}

/** A document with secrets at any depth, in lists and in documents within strings. */
const { document } = fc.letrec<{ document: Record<string, unknown> }>((tie) => {
  const value = fc.oneof(
    anySecret,
    anySecret.map((secret) => [{ a: secret }]),
  );
  const inner = fc.option(tie('document'), { nil: undefined, depthSize: 'small' });
  return {
    document: fc
      .tuple(fc.array(fc.tuple(secretName, value), { maxLength: 2 }), inner, inner)
      .map(([secrets, one, other]) => {
        return { name: SHOWN, ...Object.fromEntries(secrets), inner: one, text: other && JSON.stringify(other) };
      }),
  };
});

const broken = fc.constantFrom<(json: string) => string>(
  (json) => json,
  (json) => json.slice(0, json.length / 2),
  (json) => `${json}}`,
  (json) => `[${json},`,
  (json) => json.replace(/[a-z]/i, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`),
  (json) => json.replaceAll('Z', '\\u005a'),
);

function inJson({ bearer, basic }: Keys): fc.Arbitrary<Plan> {
  const type = fc.constantFrom(...Array(3).fill(JSON_FIELD[1]), 'text/plain', FORM_FIELD[1], '');
  return fc
    .tuple(fc.constantFrom(...WRITES, ...OAUTH, '/nowhere'), document, broken, type)
    .map(([target, members, change, contentType]) => {
      const fields: Field[] = [['Authorization', target.includes('webhooks') ? basic : bearer]];
      if (contentType !== '') fields.push(['Content-Type', contentType]);
      return { target, fields, body: change(JSON.stringify(members)) };
    });
}

/** Messages of agents, let in and not, whose arguments and params have secrets that are no tool's. */
function inMcp({ agent }: Keys): fc.Arbitrary<Plan> {
  const tools = ['get_access', 'list_users', 'migrate_users', 'create_wallet_rule', 'no_tool'];
  const name = fc.constantFrom(...tools, 'initialize', 'tools/list', 'ping', 'nobody');
  const bearer = fc.oneof(fc.constant(agent), credentials);
  return fc.tuple(document, name, broken, bearer, anySecret).map(([members, method, change, authorization, search]) => {
    const call = { name: method, arguments: { search, user_id: JSON.stringify(members), ...members } };
    const asked = tools.includes(method) ? { method: 'tools/call', params: call } : { method, params: members };
    const body = change(JSON.stringify({ jsonrpc: '2.0', id: 1, ...asked }));
    return { target: '/v2/mcp', fields: [JSON_FIELD, ['Authorization', authorization]], body };
  });
}

const inForm: fc.Arbitrary<Plan> = fc.record({
  target: fc.constantFrom(...OAUTH, RULES),
  fields: fc.option(credentials, { nil: undefined }).map((authorization): Field[] => {
    return authorization === undefined ? [FORM_FIELD] : [FORM_FIELD, ['Authorization', authorization]];
  }),
  body: fc.tuple(fc.constantFrom('grant_type=password&username=ada&', ''), pairs).map((both) => both.join('')),
});

/** Good requests for a token in JSON or a form, of which a piece is left out, doubled or replaced by noise. */
function changedGrant({ grants }: Keys): fc.Arbitrary<Plan> {
  const noise = fc.option(fc.string({ unit: 'binary', maxLength: 8 }), { nil: undefined });
  const change = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), length: fc.nat(8), noise });
  return fc.tuple(fc.constantFrom(...grants), fc.boolean(), change).map(([grant, isForm, { at, length, noise }]) => {
    const body = isForm ? `${new URLSearchParams({ ...grant })}` : JSON.stringify(grant);
    const start = Math.floor(at * body.length);
    const piece = noise ?? body.slice(start, start + length).repeat(2);
    const changed = body.slice(0, start) + piece + body.slice(start + length);
    return { target: '/v2/oauth/token', fields: [isForm ? FORM_FIELD : JSON_FIELD], body: changed };
  });
}

const SET = 'mutation ($id: ID!, $p: String!) { x: setSupervisorPassword(id: $id, password: $p) { __typename } }';

function inMultipart({ bearer }: Keys): fc.Arbitrary<Plan> {
  return fc
    .tuple(fc.constantFrom('/graphql', RULES, '/nowhere'), secretName, anySecret)
    .map(([target, name, secret]) => {
      const operations = JSON.stringify({ query: SET, variables: { id: null, p: secret } });
      const file = 'name="0"; filename="users.csv"\r\nContent-Type: text/csv';
      const body = [
        ['name="operations"', operations],
        ['name="map"', '{"0":["variables.id"]}'],
        [`name="${name}"`, secret],
        [file, `wallet_address,password\n0x1,${secret}\n`],
      ].map(([head, value]) => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`);
      const type: Field = ['Content-Type', 'multipart/form-data; boundary=b'];
      return { target, fields: [['Authorization', bearer], type], body: `${body.join('')}--b--\r\n` };
    });
}

/** What is no HTTP. */
const inBadHead: fc.Arbitrary<Plan> = fc
  .tuple(plainSecret, fc.constantFrom<Field>(['Bad Name', 'x'], ['Content-Length', 'x'], ['X', 'a\u0001b']))
  .map(([secret, fault]) => ({
    method: 'GET',
    target: `/v1/accounts?token=${secret}`,
    fields: [['Authorization', `Bearer ${secret}`], ['Cookie', secret], fault],
  }));

const NOBODY = '00000000-0000-4000-8000-000000000000';
const CREATE = 'mutation ($input: SupervisorInput!) { name: createSupervisor(input: $input) { __typename } }';

/** Secrets in literals, variables and defaults, under aliases; the last four are invalid. */
function operationsWith(secret: string): { query: string; variables?: object }[] {
  const literal = JSON.stringify(secret);
  const setting = (password: string) => `setSupervisorPassword(id: "${NOBODY}", password: ${password}) { __typename }`;
  return [
    { query: `mutation { ${SHOWN}: ${setting(literal)} }` },
    { query: SET, variables: { id: NOBODY, p: secret, token: secret } },
    { query: `mutation ($p: String! = ${literal}) { ${setting('$p')} }` },
    { query: CREATE, variables: { input: { username: SHOWN, password: secret, role: 'no role' } } },
    { query: `mutation { setPassword(pasword: ${literal}) { __typename } }` },
    { query: CREATE, variables: { input: { username: [SHOWN], password: [secret], role: 1 } } },
    { query: '{ me { subject } }', variables: { password: secret } },
  ];
}

/** Operations alone, in a batch, in an address, and broken. */
export function operations({ bearer }: Keys): fc.Arbitrary<Telling> {
  const one = anySecret.chain((secret) => fc.constantFrom(...operationsWith(secret)));
  return fc
    .tuple(fc.array(one, { minLength: 1, maxLength: 3 }), broken, fc.constantFrom('one', 'batch', 'address'))
    .map(([all, change, how]) => {
      const [first = { query: '' }] = all;
      const query = new URLSearchParams({ query: first.query, variables: JSON.stringify(first.variables ?? {}) });
      const sent =
        how === 'address'
          ? { method: 'GET', target: `/graphql?${query}` }
          : { target: '/graphql', body: change(JSON.stringify(how === 'one' ? first : all)) };
      return { text: written({ ...sent, fields: [['Authorization', bearer], JSON_FIELD] }), leavesAt: undefined };
    });
}
