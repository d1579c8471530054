import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import {
  gatewayJsonSchema,
  parseGatewayConfig,
  readGatewayConfig,
} from '../../src/gateway/endpoints/gateway-config.ts';
import { configFaults } from '../support/gateway/config-faults.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const HEAD = `services: {accounts: local, wallets: local}
webhook_alias: {deprecated_at: 2026-11-01T00:00:00Z, sunset: 2027-11-01T00:00:00Z}
`;

const faults = (source: string) => configFaults(() => parseGatewayConfig('gateway.yaml', source));

it('the committed schema/gateway.schema.json matches the schema that the program uses', () => {
  expect(readFileSync(join(ROOT, 'schema/gateway.schema.json'), 'utf8')).toBe(gatewayJsonSchema());
});

it('the shipped gateway.yaml is valid and names the schema for editors', () => {
  const path = join(ROOT, 'gateway.yaml');
  expect(readGatewayConfig(path).endpoints.length).toBeGreaterThan(10);
  expect(readFileSync(path, 'utf8')).toContain('yaml-language-server: $schema=./schema/gateway.schema.json');
});

it('every member of the JSON schema has a description', () => {
  const { properties } = JSON.parse(gatewayJsonSchema());
  const members = { ...properties.endpoints.items.properties, services: properties.services };
  for (const [name, member] of Object.entries(members)) expect(member, name).toHaveProperty('description');
});

it.each([
  ['an unknown member', '  - {methods: [GET], path: /a, pernissions: [x]}', 4, 'endpoints.0', 'pernissions'],
  ['an unknown method', '  - {methods: [FETCH], path: /a}', 4, 'endpoints.0.methods.0', 'must be one of GET, HEAD'],
  ['no method', '  - {methods: [], path: /a}', 4, 'endpoints.0.methods', 'must not be empty'],
  ['no path', '  - {methods: [GET]}', 4, 'endpoints.0.path', 'is required'],
  ['a path without a slash', '  - {methods: [GET], path: a}', 4, 'endpoints.0.path', 'must be a path'],
  ['a path that ends in a slash', '  - {methods: [GET], path: /a/}', 4, 'endpoints.0.path', 'must be a path'],
  ['a dot segment', '  - {methods: [GET], path: /a/../b}', 4, 'endpoints.0.path', 'must be a path'],
  ['an unknown service', '  - {methods: [GET], path: /a, services: [banks]}', 4, 'endpoints.0.services', '"banks"'],
  [
    'an unknown visibility',
    '  - {methods: [GET], path: /a, visibility: all}',
    4,
    'endpoints.0.visibility',
    'must be one of protected, public',
  ],
  [
    'an unknown token class',
    '  - {methods: [GET], path: /a, tokens: [mine]}',
    4,
    'endpoints.0.tokens.0',
    'must be one of user, discover, legacy',
  ],
  [
    'a negative limit',
    '  - {methods: [GET], path: /a, max_body_bytes: -1}',
    4,
    'endpoints.0.max_body_bytes',
    'must be at least 0',
  ],
  ...['tokens: [user]', 'permissions: [x]'].map((asked): [string, string, number, string, string] => [
    `what is asked of a token that nobody looks at (${asked})`,
    `  - {methods: [GET], path: /a, visibility: public, ${asked}}`,
    4,
    `endpoints.0.${asked.split(':')[0]}`,
    'must be absent: a public endpoint ignores tokens',
  ]),
  [
    'an endpoint twice',
    '  - {methods: [GET], path: "/a/{id}"}\n  - {methods: [GET, PUT], path: "/a/{other}"}',
    5,
    'endpoints.1.path',
    'GET /a/{} is registered twice',
  ],
])('%s is rejected with file, line and field', (_fault, endpoints, line, field, says) => {
  const found = faults(`${HEAD}endpoints:\n${endpoints}\n`);
  expect(found).toEqual([
    expect.stringMatching(new RegExp(`^gateway\\.yaml:${line}: ${field.replaceAll('.', '\\.')}: `)),
  ]);
  expect(found[0]).toContain(says);
});

/** A file with errors of its schema and of its members together; each is told, in any order. */
const together: [what: string, source: string, expected: string[]][] = [
  [
    'an unknown service and a missing alias',
    'services: {a: local}\nendpoints:\n  - {methods: [GET], path: /a, services: [ghost]}',
    [
      '1: webhook_alias: is required: set deprecated_at and sunset',
      '3: endpoints.0.services: "ghost" is not under services',
    ],
  ],
  [
    'an unknown service of an endpoint with a misspelt member',
    `${HEAD}endpoints:\n  - {methods: [GET], path: /a, services: [ghost], visibilty: public}`,
    ['4: endpoints.0: has the unknown member visibilty', '4: endpoints.0.services: "ghost" is not under services'],
  ],
  [
    'an unknown binding and a wrong method',
    `${HEAD}binding: [ghost]\nendpoints:\n  - {methods: [FETCH], path: /a}`,
    [
      '5: endpoints.0.methods.0: must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
      '3: binding.0: "ghost" is not under services',
    ],
  ],
  [
    'a duplicate endpoint and a limit that is a word',
    `${HEAD}endpoints:\n  - {methods: [GET], path: /a}\n  - {methods: [GET], path: /a, timeout_ms: soon}`,
    ['5: endpoints.1.timeout_ms: must be a number', '5: endpoints.1.path: GET /a is registered twice'],
  ],
  [
    'tokens of a public endpoint and a service with a wrong URL',
    `services: {accounts: 'ftp://x'}\nwebhook_alias: {deprecated_at: soon, sunset: 2027-11-01T00:00:00Z}\nendpoints:\n  - {methods: [GET], path: /a, services: [accounts], visibility: public, tokens: [user]}`,
    [
      '1: services.accounts: must be local, or an http or https URL without user and query',
      '2: webhook_alias.deprecated_at: must be a time in UTC such as 2026-11-21T10:30:00Z',
      '4: endpoints.0.tokens: must be absent: a public endpoint ignores tokens',
    ],
  ],
  [
    'a list for the services',
    'services: [a]\nendpoints: []',
    [
      '1: services: must be a mapping',
      '1: webhook_alias: is required: set deprecated_at and sunset',
      '2: endpoints: must not be empty',
    ],
  ],
  ['endpoints that are a word', `${HEAD}endpoints: all`, ['3: endpoints: must be a list']],
  [
    'endpoints of words and of null',
    `${HEAD}endpoints: [all, null]`,
    ['3: endpoints.0: must be a mapping', '3: endpoints.1: must be a mapping'],
  ],
  ['a single word', 'services', ['1: the file: must be a mapping']],
  ['nothing', '', ['1: the file: must be a mapping']],
];

it.each(together)('all errors are reported together, in words: %s', (_what, source, expected) => {
  const found = faults(source);
  expect([...found].sort()).toEqual(expected.map((line) => `gateway.yaml:${line}`).sort());
  expect(found.join('\n')).not.toMatch(/Invalid input|expected|received|Unrecognized|Too (?:small|big)/);
});

it('all errors are reported together, each with its own line', () => {
  const found = faults(
    `${HEAD}endpoints:\n  - {methods: [GET], path: a}\n  - methods: [GET]\n    path: /b\n    timeout_ms: 0\n`,
  );
  expect(found.map((fault) => fault.split(': ')[0])).toEqual(['gateway.yaml:4', 'gateway.yaml:7']);
});

it.each<[what: string, source: string, lines: number[]]>([
  ['in an endpoint', 'endpoints:\n  - path: /a\n    methods: [GET]\n    pernissions: [x]\n    services: [a]\n', [6]],
  ['in flow style', 'endpoints:\n  - {\n    path: /a, methods: [GET],\n    typo: 1,\n    services: [a] }\n', [6]],
  ['with a value on later lines', 'endpoints:\n  - path: /a\n    methods: [GET]\n    typo:\n      a: 1\n', [6]],
  ['at the top', 'endpoints:\n  - {path: /a, methods: [GET]}\n# why\nendpoint: []\n', [6]],
  ['twice', 'typo: 1\nendpoints:\n  - path: /a\n    one: 1\n    methods: [GET]\n    two: 2\n', [3, 6, 8]],
  ['with a null value', 'endpoints:\n  - path: /a\n    methods: [GET]\n    typo:\n', [6]],
  ['with a quoted name', 'endpoints:\n  - path: /a\n    methods: [GET]\n    "ty po": 1\n', [6]],
])('an unknown member %s is reported at its own line', (_what, source, lines) => {
  const found = faults(`${HEAD}${source}`).filter((fault) => fault.includes('unknown member'));
  expect(found.map((fault) => Number(fault.split(':')[1])).sort()).toEqual(lines);
});

it('an unknown member of a service or a block is reported at its own line', () => {
  const source = `services:
  accounts:
    at: http://host
    breaker:
      open_ms: 5
      failurs: 3
    conections: 3
webhook_alias:
  deprecated_at: 2026-11-01T00:00:00Z
  sunset: 2027-11-01T00:00:00Z
  sunrise: 1
endpoints:
  - {path: /a, methods: [GET], services: [accounts]}
`;
  expect([...faults(source)].sort()).toEqual([
    'gateway.yaml:11: webhook_alias: has the unknown member sunrise',
    'gateway.yaml:6: services.accounts.breaker: has the unknown member failurs',
    'gateway.yaml:7: services.accounts: has the unknown member conections',
  ]);
});

it.each([
  ['a tab', `${HEAD}endpoints:\n\t- {}`, 4],
  ['an open bracket', `${HEAD}endpoints: [`, 3],
  ['a duplicate member', `${HEAD}services: {}\nendpoints: []`, 3],
])('YAML with %s is rejected with its line', (_fault, source, line) => {
  expect(faults(source)[0]).toMatch(new RegExp(`^gateway\\.yaml:${line}: not valid YAML: `));
});

const LEVELS = 'abcdefghi';
const BOMB = [...LEVELS].map((name, at) => {
  const below = at === 0 ? '1' : `*${LEVELS[at - 1]}`;
  return `  ${name}: &${name} [${Array.from({ length: 9 }, () => below).join(', ')}]\n`;
});

it.each([
  ['an alias without an anchor', `${HEAD}endpoints:\n  - *nope\n`, 'Unresolved alias .*: nope'],
  ['an alias before its anchor', 'services: {\n  a: *x,\n  b: &x local}\n', 'Unresolved alias .*: x'],
  ['an alias in a member', `services: {\n  a: {at: *nope}}\n`, 'Unresolved alias .*: nope'],
  ['an alias inside its own anchor', 'services: &x\n  a: *x\n', 'services.a.at: '],
  ['an alias bomb', `services:\n${BOMB.join('')}`, 'Excessive alias count'],
])('YAML with %s is rejected, and the error says which', (_fault, source, says) => {
  expect(faults(source)[0]).toMatch(new RegExp(`^gateway\\.yaml:\\d+: .*${says}`));
});

it.each([
  ['nesting that would overflow the stack', `services: ${'['.repeat(50_000)}`],
  ['a merge of a value that is not a map', '%YAML 1.1\n---\nservices: {<<: 5}\n'],
])('YAML with %s is rejected as a configuration error, without an exception', (_fault, source) => {
  expect(faults(source)[0]).toMatch(/^gateway\.yaml:\d+: /);
});

it('an alias may be used once for each endpoint', () => {
  const endpoints = Array.from({ length: 300 }, (_, at) => `  - {methods: *get, path: /p${at}}\n`);
  const source = `${HEAD}endpoints:\n  - {methods: &get [GET], path: /p}\n${endpoints.join('')}`;
  expect(parseGatewayConfig('gateway.yaml', source).endpoints.at(-1)?.methods).toEqual(['GET']);
});
