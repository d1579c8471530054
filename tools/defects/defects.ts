/** A change of the sources that breaks a guarantee, and the tests that must notice. */
export interface Defect {
  /** What is broken. */
  name: string;
  /** The file, from the root of the repository. */
  file: string;
  /** Text that occurs once in the file. */
  find: string;
  /** What takes its place. */
  replacement: string;
  /** The test files that must fail, the cheapest that do. They need no real servers. */
  caughtBy: readonly string[];
}

/** One defect or more in each feature. A text that has changed is found by a test: choose the defect anew then. */
export const DEFECTS: readonly Defect[] = [
  {
    name: 'routing: `*` matches several segments',
    file: 'src/gateway/routing.ts',
    find: '  if (slash < 0) {\n    const one',
    replacement: '  if (node.one.size > 0) {\n    const one',
    caughtBy: ['test/gateway/matching.test.ts'],
  },
  {
    name: 'tokens: any class is accepted anywhere',
    file: 'src/access/tokens/token-verifier.ts',
    find: "  if (!accepted.includes(signed.tokenClass)) throw anotherClass(signed.tokenClass, accepted.join(' or '));\n",
    replacement: '',
    caughtBy: ['test/gateway/token-matrix.test.ts'],
  },
  {
    name: 'tokens: a second spelling of a signature passes',
    file: 'src/access/tokens/token-verifier.ts',
    find: "signature !== undefined && Buffer.from(signature, 'base64url').toString('base64url') === signature",
    replacement: 'signature !== undefined',
    caughtBy: ['test/oauth/hostile-token.test.ts'],
  },
  {
    name: 'revocation: a session that has ended stays live',
    file: 'src/access/tokens/token-authenticator.ts',
    find: "  if (!isLive) throw new InvalidTokenError('revoked');\n",
    replacement: '',
    caughtBy: ['test/oauth/revocation.test.ts'],
  },
  {
    name: 'permissions: one that is missing is forgiven',
    file: 'src/gateway/chain.ts',
    find: 'if (missing.length > 0) throw forbidden(missing);',
    replacement: 'if (missing.length > 1) throw forbidden(missing);',
    caughtBy: ['test/gateway/stage-order.test.ts', 'test/gateway/token-matrix.test.ts'],
  },
  {
    name: 'address allowlist: an address that cannot be told is allowed',
    file: 'src/access/limits/guards.ts',
    find: 'if (address === undefined || !isAllowedAddress(client, address))',
    replacement: 'if (address !== undefined && !isAllowedAddress(client, address))',
    caughtBy: ['test/oauth/client-guards.test.ts'],
  },
  {
    name: 'rate: one request too many in a minute',
    file: 'src/platform/cache/counts.rules.ts',
    find: 'minute >= limits.perMinute',
    replacement: 'minute > limits.perMinute',
    caughtBy: ['test/cache/memory-cache.test.ts'],
  },
  {
    name: 'monthly quota: what another source has counted is forgotten',
    file: 'src/platform/cache/counts.rules.ts',
    find: 'seed !== undefined && seed > month) month = seed',
    replacement: 'seed !== undefined) month = seed',
    caughtBy: ['test/cache/request-counts.test.ts', 'test/cache/memory-cache.test.ts'],
  },
  {
    name: 'certificate: a client without a fingerprint needs none',
    file: 'src/access/limits/guards.ts',
    find: "if (expected === '' || plainFingerprint(fingerprint) !== expected)",
    replacement: 'if (plainFingerprint(fingerprint) !== expected)',
    caughtBy: ['test/oauth/client-guards.test.ts'],
  },
  {
    name: 'correlation id: a long one is kept',
    file: 'src/gateway/exchange/request-head.ts',
    find: 'received && !tooLong ? received : uuidV7()',
    replacement: 'received ? received : uuidV7()',
    caughtBy: ['test/gateway/correlation.test.ts'],
  },
  {
    name: 'proxies: anybody may name the address it comes from',
    file: 'src/gateway/exchange/request-head.ts',
    find: '    for (const name in req.headers) if (PROXY_HEADER.test(name)) delete req.headers[name];\n',
    replacement: '',
    caughtBy: ['test/gateway/proxy-headers.test.ts'],
  },
  {
    name: 'audit masking: tokens are no secrets',
    file: 'src/audit/mask-keys.ts',
    find: "const SECRET_ENDINGS = ['secret', 'password', 'token'];",
    replacement: "const SECRET_ENDINGS = ['secret', 'password'];",
    caughtBy: ['test/audit/mask.test.ts'],
  },
  {
    name: 'spool: a damaged line is believed',
    file: 'src/audit/spool-log.ts',
    find: 'if (sum === sumOf(crc32(line)))',
    replacement: 'if (sum.length === SUM_LENGTH)',
    caughtBy: ['test/audit/spool-crash.test.ts'],
  },
  {
    name: 'grants: a client may use any',
    file: 'src/access/token-endpoint/token-endpoint.ts',
    find: "  if (!client.grantTypes.includes(grant.grantType)) throw new Refusal('unauthorized_client');\n",
    replacement: '',
    caughtBy: ['test/oauth/token-refusals.test.ts', 'test/oauth/standard-clients.test.ts'],
  },
  {
    name: 'refresh rotation: a token that was redeemed can be redeemed again',
    file: 'src/access/tokens/revocations.ts',
    find: 'return first !== undefined || !(await this.isSpent(token, { nodeId, clientId }));',
    replacement: 'return true;',
    caughtBy: ['test/oauth/refresh-once.test.ts'],
  },
  {
    name: 'client authentication: the body may name another client than HTTP Basic',
    file: 'src/access/token-endpoint/token-endpoint.ts',
    find: 'clientId !== undefined && clientId !== basic.clientId',
    replacement: "clientId === ''",
    caughtBy: ['test/oauth/standard-clients.test.ts'],
  },
  {
    name: 'rules, evaluation: a transfer at the beginning of the window counts',
    file: 'src/domain/wallet-rules/evaluate.rules.ts',
    find: 'compareInstants(transfer.at, start) > 0',
    replacement: 'compareInstants(transfer.at, start) >= 0',
    caughtBy: ['test/wallet-rules/evaluate.test.ts'],
  },
  {
    name: 'rules, If-Match: a weak tag matches',
    file: 'src/api/rest/wallet-rules.rest.ts',
    find: 'if (weak === undefined && VERSION.test(tag)',
    replacement: 'if (VERSION.test(tag)',
    caughtBy: ['test/wallet-rules/if-match.test.ts'],
  },
  {
    name: 'rules, validation: an amount may be negative',
    file: 'src/domain/wallet-rules/wallet-rule.input.ts',
    find: "return decimal !== '0' && !decimal.startsWith('-');",
    replacement: "return decimal !== '0';",
    caughtBy: ['test/wallet-rules/input.test.ts'],
  },
  {
    name: 'networks: one of another chain can be assigned',
    file: 'src/domain/networks/networks.service.ts',
    find: "    if (!isOfChain) throw invalidInput('network_id', \"must be a network of the wallet's chain\");\n",
    replacement: '',
    caughtBy: ['test/networks/rest.test.ts'],
  },
  {
    name: 'webhook: a signature of the future is valid',
    file: 'src/api/rest/webhooks.rest.ts',
    find: 'Math.abs(aheadS) > TOLERANCE_S',
    replacement: '-aheadS > TOLERANCE_S',
    caughtBy: ['test/webhook/signature-rules.test.ts'],
  },
  {
    name: 'notifications: a repeat is one more event',
    file: 'src/domain/transactions/join.rules.ts',
    find: 'visible: changed && differsVisibly(state, joined),',
    replacement: 'visible: true,',
    caughtBy: ['test/transactions/rules/join.test.ts', 'test/transactions/rules/join-properties.test.ts'],
  },
  {
    name: 'notifications: the latest to arrive wins',
    file: 'src/domain/transactions/join.rules.ts',
    find: 'const top = a.statusKey >= b.statusKey ? a : b;',
    replacement: 'const top = b.statusKey === NO_KEY ? a : b;',
    caughtBy: ['test/transactions/rules/join.test.ts', 'test/transactions/rules/join-properties.test.ts'],
  },
  {
    name: 'migration outcomes: an email twice in one request',
    file: 'src/domain/user-migrations/migration-outcome.rules.ts',
    find: 'if (taken.email || (emailKey !== undefined && created.emails.has(emailKey)))',
    replacement: 'if (taken.email)',
    caughtBy: ['test/user-migrations/outcome-rules.test.ts'],
  },
  {
    name: 'CSV: a doubled quote stays doubled',
    file: 'src/domain/user-migrations/csv.rules.ts',
    find: `.toString('utf8', start, end).replaceAll('""', '"')`,
    replacement: `.toString('utf8', start, end)`,
    caughtBy: ['test/user-migrations/files-csv.test.ts'],
  },
  {
    name: 'paging: a full page says that there is more',
    file: 'src/lib/keyset.ts',
    find: 'hasMore: read.length > size',
    replacement: 'hasMore: read.length >= size',
    caughtBy: ['test/accounts/graphql-walk.test.ts'],
  },
  {
    name: 'cursors: one of another tenant is valid',
    file: 'src/lib/keyset.ts',
    find: '#mac({ connection, nodeId }: CursorScope, sortKey: Uint8Array)',
    replacement: "#mac({ connection }: CursorScope, sortKey: Uint8Array, nodeId = '')",
    caughtBy: ['test/graphql/pages.test.ts', 'test/graphql/tenancy.test.ts'],
  },
  {
    name: 'health: a worker without a bus is ready',
    file: 'src/platform/health.ts',
    find: "worker: ['database', 'bus'],",
    replacement: "worker: ['database'],",
    caughtBy: ['test/health/readyz.test.ts'],
  },
  {
    name: 'gas fee: of two in the middle the higher is the median',
    file: 'src/domain/gas-fee/fee-history.rules.ts',
    find: 'Math.floor((sorted.length - 1) / 2)',
    replacement: 'Math.floor(sorted.length / 2)',
    caughtBy: ['test/gas-fee/fee-history.test.ts'],
  },
  {
    name: 'MCP: an argument that no tool has is ignored',
    file: 'src/api/mcp/kit/tool.ts',
    find: '.filter((member) => !known.includes(member))',
    replacement: ".filter((member) => member === '' && !known.includes(member))",
    caughtBy: ['test/mcp/tools.test.ts', 'test/mcp/messages.test.ts'],
  },
  {
    name: 'GraphQL limits: one level too deep',
    file: 'src/api/graphql/plugins/document-limits.ts',
    find: 'if (depth > MAX_DEPTH) throw',
    replacement: 'if (depth > MAX_DEPTH + 1) throw',
    caughtBy: ['test/graphql/limits.test.ts'],
  },
  {
    name: 'GraphQL permissions: who subscribes needs none',
    file: 'src/api/graphql/kit/builder.ts',
    find: 'permission: (name) => principal.permissions.has(name)',
    replacement: 'permission: () => principal.permissions.size > 0',
    caughtBy: ['test/graphql/permissions.test.ts'],
  },
  {
    name: 'persisted operations: `only` runs any document',
    file: 'src/api/graphql/plugins/persisted-operations.ts',
    find: '.some((listed) => listed === text)',
    replacement: '.some((listed) => listed !== undefined)',
    caughtBy: ['test/graphql/persisted.test.ts'],
  },
  {
    name: 'subscriptions: the event at the cursor comes again',
    file: 'src/events/streams/event-queue.ts',
    find: 'event.seq <= this.#liveAfter',
    replacement: 'event.seq < this.#liveAfter',
    caughtBy: ['test/realtime/replay.test.ts', 'test/realtime/event-stream.test.ts'],
  },
  {
    name: "tenancy door: a row of another tenant's can be inserted",
    file: 'src/platform/database/node-scope.ts',
    find: '    for (const row of values.values) refuseOther(row.values[at], nodeId);\n',
    replacement: '',
    caughtBy: ['test/tenancy/refusals.test.ts'],
  },
  {
    name: 'outbox: an event is removed before it is published',
    file: 'src/events/outbox/outbox.ts',
    find:
      '    await this.#parts.bus.publish(events.map(messageOf), { deadlineMs: PUBLISH_DEADLINE_MS });\n' +
      '    await this.#store.remove(events.map(({ id }) => id));\n',
    replacement:
      '    await this.#store.remove(events.map(({ id }) => id));\n' +
      '    await this.#parts.bus.publish(events.map(messageOf), { deadlineMs: PUBLISH_DEADLINE_MS });\n',
    caughtBy: ['test/outbox/relay.test.ts'],
  },
  {
    name: 'idempotency: a key is good for another body',
    file: 'src/domain/idempotency/idempotent-responses.ts',
    find: '    if (stored && !sha256(bytes).equals(stored.body_sha256)) throw conflict();\n',
    replacement: '',
    caughtBy: ['test/idempotency/key.test.ts'],
  },
  {
    name: 'reload: a refused file counts as in force',
    file: 'src/gateway/endpoints/reload.ts',
    find: '      this.inForce.set(0);\n',
    replacement: '',
    caughtBy: ['test/gateway/reload-file.test.ts'],
  },
  {
    name: 'database: a standby is taken for the primary',
    file: 'src/platform/database/server-watch.ts',
    find: 'if (identity && !identity.standby) return identity;',
    replacement: 'if (identity) return identity;',
    caughtBy: ['test/faults/server-watch.test.ts'],
  },
  {
    name: 'database: a connection whose statement its server does not have is waited for',
    file: 'src/platform/database/server-watch.ts',
    find: '!asked?.busy.includes(processID ?? 0)',
    replacement: 'asked?.busy.includes(processID ?? 0)',
    caughtBy: ['test/faults/server-watch.test.ts'],
  },
  {
    name: 'config check: of several faults one is told',
    file: 'src/cli/commands/config-check.ts',
    find: '    faults.push(...error.faults);\n',
    replacement: '    faults.push(...error.faults.slice(0, 1));\n',
    caughtBy: ['test/cli/config-check.test.ts'],
  },
  {
    name: 'command line: of a flag that is given twice the last counts',
    file: 'src/cli/kit/parse.ts',
    find: 'if (twice !== undefined) return',
    replacement: "if (twice === '') return",
    caughtBy: ['test/cli/usage.test.ts'],
  },
];
