import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let portcullis: Portcullis;
let token: string;

beforeAll(async () => {
  portcullis = await startPortcullis();
  token = await portcullis.clientToken();
});

afterAll(() => portcullis[Symbol.asyncDispose]());

const audits = serverAudits({
  url: () => `${portcullis.url}/graphql`,
  fetchFn: (url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } }),
});

describe('GraphQL over HTTP', () => {
  it.each(audits.map(({ id, name, fn }) => [id, name, fn] as const))('DG-08: audit %s: %s', async (_id, _name, fn) => {
    expect(await fn()).toMatchObject({ status: 'ok' });
  });
});
