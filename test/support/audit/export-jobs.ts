import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Portcullis } from '../harness.ts';
import { serviceAddress } from '../services/real.ts';

const MEMBERS =
  'id status asked records total bytes problems reason requestedBy createdAt finishedAt expiresAt downloadPath';
const REQUEST = `mutation ($filter: AuditFilter!) {
  requestAuditExport(filter: $filter) { __typename ... on AuditExport { ${MEMBERS} } ... on Error { message } ... on ForbiddenError { permission } }
}`;

/** An export, as GraphQL shows it. */
export type ShownExport = Record<'id' | 'status', string> & Record<string, unknown> & { downloadPath: string | null };

export async function requestExport(p: Portcullis, token: string, filter: object = {}): Promise<ShownExport> {
  const { json } = await p.call('POST', '/graphql', { token, json: { query: REQUEST, variables: { filter } } });
  return json.data.requestAuditExport;
}

export async function shownExport(p: Portcullis, token: string, id: string): Promise<ShownExport> {
  const query = `query ($id: ID!) { auditExport(id: $id) { ${MEMBERS} } }`;
  const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { id } } });
  return json.data.auditExport;
}

/** Waits until an export has ended. */
export async function endedExport(p: Portcullis, token: string, id: string): Promise<ShownExport> {
  await expect
    .poll(async () => (await shownExport(p, token, id)).status, { timeout: 20_000 })
    .not.toMatch(/WAITING|RUNNING/);
  return shownExport(p, token, id);
}

export async function readyExport(p: Portcullis, token: string, filter: object = {}): Promise<ShownExport> {
  await p.service.context.auditWriter.flush();
  const { id, ...other } = await requestExport(p, token, filter);
  expect(other).toMatchObject({ __typename: 'AuditExport' });
  const ended = await endedExport(p, token, id);
  expect(ended).toMatchObject({ status: 'READY', reason: null });
  return ended;
}

export function download(p: Portcullis, token: string, path: unknown): Promise<Response> {
  return fetch(`${p.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
}

/** Unpacks an archive, and returns the folder with its files. */
export async function unpacked(response: Response, scratch: string): Promise<string> {
  const folder = mkdtempSync(join(scratch, 'export-'));
  writeFileSync(`${folder}.zip`, Buffer.from(await response.arrayBuffer()));
  const python = spawn(serviceAddress('python'), ['-m', 'zipfile', '-e', `${folder}.zip`, folder]);
  expect(await once(python, 'close')).toEqual([0, null]);
  return folder;
}
