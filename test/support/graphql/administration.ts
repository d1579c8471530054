import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { print } from 'graphql';
import {
  type ClientInput,
  CreateClientDocument,
  CreateSupervisorDocument,
  RotateClientSecretDocument,
  type SupervisorInput,
} from '../../graphql/generated/graphql.ts';
import type { Portcullis } from '../harness.ts';
import type { ClientCredentials } from '../oauth/clients.ts';

export const PASSWORD = 'correct horse battery staple';
/** An id of nothing. */
export const MISSING = 'ffffffff-0000-4000-8000-00000000000f';

/** Runs a generated operation over HTTP with a token; the answer must be without errors. */
export async function operate<Result, Variables extends Record<string, unknown>>(
  p: Portcullis,
  token: string,
  document: TypedDocumentNode<Result, Variables>,
  variables: Variables,
): Promise<Result> {
  const answer = await p.call('POST', '/graphql', { token, json: { query: print(document), variables } });
  if (answer.status !== 200 || answer.json.errors) throw new Error(`${answer.status} ${answer.text}`);
  return answer.json.data;
}

/** Creates a client, which must succeed. */
export async function createdClient(p: Portcullis, token: string, input: Partial<ClientInput> = {}) {
  const least: ClientInput = { name: 'Trader', grantTypes: ['CLIENT_CREDENTIALS', 'REFRESH_TOKEN'], scopes: [] };
  const { result } = await operate(p, token, CreateClientDocument, { input: { ...least, ...input } });
  if (result.__typename !== 'CreatedClient') throw new Error(JSON.stringify(result));
  const credentials: ClientCredentials = { client_id: result.client.id, client_secret: result.clientSecret };
  return { ...result, credentials };
}

/** Rotates the secret of a client, which must succeed, and gives the new one. */
export async function rotatedSecret(p: Portcullis, token: string, id: string, overlapSeconds?: number | null) {
  const variables = overlapSeconds === undefined ? { id } : { id, overlapSeconds };
  const { result } = await operate(p, token, RotateClientSecretDocument, variables);
  if (result.__typename !== 'CreatedClient') throw new Error(JSON.stringify(result));
  return result.clientSecret;
}

/** Creates a supervisor, which must succeed. */
export async function createdSupervisor(
  p: Portcullis,
  token: string,
  input: Partial<SupervisorInput> & { username: string },
) {
  const { result } = await operate(p, token, CreateSupervisorDocument, {
    input: { password: PASSWORD, role: 'viewer', ...input },
  });
  if (result.__typename !== 'Supervisor') throw new Error(JSON.stringify(result));
  return result;
}

interface Pair {
  access_token: string;
  refresh_token: string;
}

/** A login of a supervisor through a client: the demo's by default. */
export async function login(
  p: Portcullis,
  username: string,
  { password = PASSWORD, client = p.demo.client as ClientCredentials } = {},
): Promise<Pair> {
  const json = { grant_type: 'password', ...client, username, password };
  const answer = await p.call('POST', '/v2/oauth/token', { json });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  return answer.json;
}

/** A login of the demo supervisor through a client: the demo's by default. */
export function loginOfDemo(p: Portcullis, client: ClientCredentials = p.demo.client): Promise<Pair> {
  const { username, password } = p.demo.supervisor;
  return login(p, username, { password, client });
}

/** The status of a token call with these credentials. */
export async function grantStatus(p: Portcullis, grant: object): Promise<number> {
  return (await p.call('POST', '/v2/oauth/token', { json: grant })).status;
}

/** The status of a request with this access token, which any token may make. */
export async function tokenStatus(p: Portcullis, token: string): Promise<number> {
  return (await p.call('POST', '/graphql', { token, json: { query: '{ me { subject } }' } })).status;
}
