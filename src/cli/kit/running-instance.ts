import { readFileSync } from 'node:fs';
import type { DemoFile } from '../../app/demo/demo.ts';
import { parsedOrNone } from '../../lib/json.ts';
import { shellWord } from '../../lib/shell-word.ts';
import type { Config } from '../../platform/config/config.ts';
import { demoPath } from '../../platform/config/secrets.ts';

/**
 * Returns what the user can do instead of a command while the instance that runs with `config` uses the embedded
 * database; the end of an error message.
 */
export type Advice = (config: Config) => string;

/** Advises to paste an operation that does the same into GraphiQL. */
export function graphql(document: string, variables: object): Advice {
  return (config) =>
    [
      `run this operation in its GraphiQL instead, ${graphqlUrl(config)}, with a token of the tenant`,
      document,
      'Variables:',
      JSON.stringify(variables, null, 2),
    ].join('\n\n');
}

/**
 * Advises to paste a mutation that does the same into GraphiQL. Its arguments are its variables, which `types`
 * declares; `result` selects fields of the successful result.
 */
export function mutation(name: string, types: string, variables: object, result: string): Advice {
  return graphql(documentOf(name, types, Object.keys(variables), result), variables);
}

/** Advises to start the migration of a file of users, which GraphiQL cannot send, by curl. */
export function upload(file: string, dryRun: boolean): Advice {
  const variables = { file: null, dryRun };
  const types = '$file: File!, $dryRun: Boolean';
  const query = documentOf('startUserMigration', types, Object.keys(variables), 'Migration { id }');
  const operations = shellWord(JSON.stringify({ query, variables }));
  return (config) =>
    [
      'run this instead, with a token of the tenant',
      `curl -sS ${shellWord(graphqlUrl(config))} -H "authorization: Bearer $TOKEN" -F operations=${operations} -F map='{"0":["variables.file"]}' -F ${shellWord(`0=@${file};filename=users.csv`)}`,
    ].join('\n\n');
}

function documentOf(name: string, types: string, variables: readonly string[], result: string): string {
  const callArguments = variables.map((variable) => `${variable}: $${variable}`).join(', ');
  const selected = `... on ${result} ... on ValidationError { issues { path message } } ... on Error { message }`;
  return `mutation (${types}) { ${name}(${callArguments}) { __typename ${selected} } }`;
}

/** Returns the address of the running instance. Before it is up, says where the address will stand. */
function graphqlUrl(config: Config): string {
  return demoFileOf(config)?.graphql_url ?? `graphql_url of ${demoPath(config.dataDir)}`;
}

/**
 * Returns the demo, with the addresses that the running instance has written when it was up: the command's own
 * variables may name another port. Undefined if there is none.
 */
export function demoFileOf({ dataDir }: Config): DemoFile | undefined {
  return parsedOrNone(() => JSON.parse(readFileSync(demoPath(dataDir), 'utf8')));
}
