import { serverAudits } from 'graphql-http';
import { beforeAll, describe, expect, it } from 'vitest';
import { usePortcullis } from '../support/harness.ts';

const portcullis = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await portcullis.clientToken();
});

const audits = serverAudits({
  url: () => `${portcullis.url}/graphql`,
  fetchFn: (url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } }),
});

describe('GraphQL over HTTP', () => {
  it.each(audits.map(({ id, name, fn }) => [id, name, fn] as const))(
    'DG-08: passes audit %s: %s',
    async (_id, _name, fn) => {
      expect(await fn()).toMatchObject({ status: 'ok' });
    },
  );
});
