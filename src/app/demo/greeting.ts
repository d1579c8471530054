import { resolve } from 'node:path';
import { getGraphql } from '../../api/rest/graphql.rest.ts';
import { sendMcpMessage } from '../../api/rest/mcp.rest.ts';
import { showSwagger } from '../../api/rest/static-files.rest.ts';
import { listAccounts } from '../../features/accounts/accounts.rest.ts';
import { issueToken } from '../../features/oauth/oauth.rest.ts';
import type { Secrets } from '../../platform/config/secrets.ts';
import { consoleUrl, type Demo } from './demo.ts';

const PROGRAM = resolve(import.meta.dirname, '../../../bin/portcullis');

interface Greeting {
  demo: Demo;
  /** An access token of the demo's client; undefined if the client no longer exists. */
  token: string | undefined;
  baseUrl: string;
  adminUrl: string;
  dataDir: string;
  hasConsole: boolean;
  webhook: Secrets['webhook'];
  startedInMs: number;
}

/**
 * Returns the text that an embedded run prints at its start: the addresses, the credentials, a header to paste into
 * GraphiQL, and three commands to paste into a POSIX shell.
 */
export function greeting({
  demo,
  token,
  hasConsole,
  baseUrl,
  adminUrl,
  dataDir,
  webhook,
  startedInMs,
}: Greeting): string {
  const transaction = demo.transactions.token_transactions;
  return `
Portcullis is up: ${baseUrl} (in ${(startedInMs / 1000).toFixed(1)} s)
${hasConsole ? `  Console, for the supervisor:\n    ${consoleUrl(baseUrl, demo)}\n` : ''}  GraphiQL    ${baseUrl}${getGraphql.path}
  Swagger UI  ${baseUrl}${showSwagger.path.replace('*', '')}
  MCP         ${baseUrl}${sendMcpMessage.path} (Bearer: the client's secret)
  Metrics     ${adminUrl}/metrics
  Client      ${demo.client.client_id}
              ${demo.client.client_secret}
  Supervisor  ${demo.supervisor.username} / ${demo.supervisor.password}
  Webhook     ${webhook.username} / ${webhook.password.current}
  Demo file   ${dataDir}/demo.json

The embedded database survives a crash of the process, but not of the machine:
it writes without fsync. Production runs on PostgreSQL, Redis and Kafka.

Paste this into GraphiQL, under Headers; it is good for an hour:

{"Authorization": "Bearer ${token ?? '…'}"}

1. Get a token:

TOKEN=$(curl -s ${baseUrl}${issueToken.path} \\
  -H 'content-type: application/json' -d '{
    "grant_type": "client_credentials",
    "client_id": "${demo.client.client_id}",
    "client_secret": "${demo.client.client_secret}"
  }' | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'); echo "$TOKEN"

2. List accounts:

curl -s '${baseUrl}${listAccounts.path}?limit=3' \\
  -H "authorization: Bearer $TOKEN"; echo

3. Simulate a transaction while a subscriber waits, and watch it arrive:

({ sleep 1; DATA_DIR=${shellWord(dataDir)} \\
  ${shellWord(PROGRAM)} simulate transaction; } &
curl -sN ${baseUrl}${getGraphql.path} \\
  -H "authorization: Bearer $TOKEN" -H 'accept: text/event-stream' \\
  -H 'content-type: application/json' -d '{
    "variables": {"id": "${transaction}"}, "query":
    "subscription ($id: ID!) {transaction(id: $id) {status transactionHash}}"
  }'; wait)

`;
}

/** Returns a text as one word of a POSIX shell, quoted only if needed. */
function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
